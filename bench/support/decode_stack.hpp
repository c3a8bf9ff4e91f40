// SPDX-License-Identifier: Apache-2.0
//
// decode_stack: a whole stack of layers that decodes token after token, the time of a step taken
// apart: bookkeeping (try_append, write of every head, commit) and attention.
#pragma once

#include <chrono>
#include <optional>

#include "headwise/headwise.hpp"
#include "support/layer_problem.hpp"

namespace headwise_bench {

class decode_stack {
 public:
  static constexpr headwise::model_shape shape{32, 32, kv_heads, 128};
  using clock = std::chrono::steady_clock;

  // Begins with `length` tokens, and again when `most_steps` were decoded.
  decode_stack(headwise::token_count length, const std::vector<policy>& plan)
      : length_(length), plan_(plan), cache_(shape, plan, {}), out_(shape.query_heads * width) {
    start_over();
  }

  [[nodiscard]] bool is_spent() const { return text_->length() == length_ + most_steps; }
  void start_over() {
    text_.reset();
    text_.emplace(cache_.open());
    std::vector<headwise::token> tokens;
    for (headwise::position first = 0; first < length_; first += fresh_rows) {
      tokens.clear();
      for (headwise::position i = 0; i < fresh_rows; ++i) tokens.push_back(token_at(first + i));
      auto step = text_->try_append(tokens, headwise::attend_scope::last_query);
      for (headwise::head_id head; head.layer < shape.layers; ++head.layer)
        for (head.kv_head = 0; head.kv_head < kv_heads; ++head.kv_head)
          step->write(head, keys_.view(head.kv_head, 0, fresh_rows),
                      values_.view(head.kv_head, 0, fresh_rows));
      std::move(*step).commit();
    }
  }

  // One token through all layers; returns what of the time was bookkeeping.
  clock::duration step() {
    const auto begin = clock::now();
    auto step = text_->try_append(token_at(text_->length()));
    const headwise::position newest = step->tokens()[0].pos;
    auto bookkeeping = clock::now() - begin;
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
      const auto write_begin = clock::now();
      for (std::uint32_t head = 0; head < kv_heads; ++head)
        step->write({layer, head}, keys_.view(head, newest % fresh_rows, 1),
                    values_.view(head, newest % fresh_rows, 1));
      bookkeeping += clock::now() - write_begin;
      for (std::uint32_t head = 0; head < kv_heads; ++head)
        headwise::attend(step->head({layer, head}), newest, queries_.view(head, 0, group), scale,
                         {out_.data() + head * group * width, group, width}, {}, scratch_);
    }
    const auto commit_begin = clock::now();
    std::move(*step).commit();
    return bookkeeping + (clock::now() - commit_begin);
  }

  // Of the last layer: what the newest step put out, and what it should have.
  [[nodiscard]] double checksum() const { return magnitude(out_); }
  [[nodiscard]] double expected() const {
    double sum = 0.0;
    for (std::uint32_t head = 0; head < kv_heads; ++head)
      for (std::uint32_t g = 0; g < group; ++g) {
        reference_attention query(queries_.view(head, g, 1)[0], scale);
        const policy& kept_by = plan_[(shape.layers - 1) * kv_heads + head];
        for (headwise::position pos = 0; pos < text_->length(); ++pos)
          if (newest_sees(kept_by, text_->length(), pos))
            query.see(keys_.view(head, pos % fresh_rows, 1)[0],
                      values_.view(head, pos % fresh_rows, 1)[0]);
        sum += query.checksum();
      }
    return sum;
  }
  [[nodiscard]] headwise::cache_stats stats() const { return text_->stats(); }

 private:
  static constexpr std::uint32_t group = shape.query_heads / kv_heads, width = shape.head_dim;
  static constexpr headwise::token_count fresh_rows = 1024, most_steps = 64;
  static constexpr float scale = 0.0884F;  // 1 / sqrt(head_dim)

  headwise::token_count length_;
  std::vector<policy> plan_;
  headwise::cache_manager<> cache_;
  std::optional<headwise::cache_manager<>::sequence_type> text_;
  row_table keys_{1, kv_heads, fresh_rows, width}, values_{2, kv_heads, fresh_rows, width};
  row_table queries_{3, kv_heads, group, width};
  headwise::attend_scratch scratch_{group, width, length_ + most_steps};
  std::vector<float> out_;  // [query_heads, head_dim], of one layer
};

}  // namespace headwise_bench
