// SPDX-License-Identifier: Apache-2.0
//
// Between try_append and commit any threads may write and attend different heads: four of them do,
// and what comes out, the scores of heads that rank included, is bitwise what one thread computes.
// Run under the thread sanitizer as well.
#include <barrier>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/attend/attend.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "support/every_nth.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::position;
using headwise::token;

constexpr headwise::model_shape shape{4, 8, 4, 24};
constexpr std::uint32_t longest = 400;

std::vector<test_policy> mixed_plan() {
  std::vector<test_policy> plan;
  for (std::uint32_t i = 0; i < shape.heads(); ++i) {
    const headwise::special_tokens special(headwise::token_classes::sink, {2, 4});
    switch (i % 8) {
      case 0:
        plan.emplace_back(headwise::global{});
        break;
      case 1:
        plan.emplace_back(headwise::local_window(1 + i * 3));
        break;
      case 2:
        plan.emplace_back(special);
        break;
      case 3:
        plan.emplace_back(headwise::union_of(special, headwise::local_window(20)));
        break;
      case 4:
        plan.emplace_back(stranger::every_nth(10, 3, 30));
        break;
      case 5:
        plan.emplace_back(headwise::heavy_hitters(12));
        break;
      case 6:
        plan.emplace_back(
            headwise::union_of(headwise::local_window(10), headwise::heavy_hitters(8)));
        break;
      default:
        plan.emplace_back(
            headwise::union_of(special, headwise::local_window(6), headwise::heavy_hitters(10)));
    }
  }
  return plan;
}

headwise::head_id head_at(std::uint32_t i) {
  return {i / shape.kv_heads, i % shape.kv_heads};
}

// The same numbers for the same head and position, whichever thread asks.
std::vector<float> numbers(std::uint32_t seed, position first, std::uint32_t head,
                           std::size_t count) {
  return random_source(seed + first * 64 + head).numbers(count);
}

class decoder {
 public:
  explicit decoder(std::uint32_t threads) : threads_(threads) {
    headwise::cache_config config;
    config.page_tokens = 8;
    config.rollback_horizon = 4;
    cache_.emplace(shape, mixed_plan(), config);
    text_.emplace(cache_->open());
    for (std::uint32_t i = 0; i < threads; ++i)
      scratch_.emplace_back(shape.group_size(), shape.head_dim, longest);
  }

  // Steps of these sizes; the heads of each are dealt out over the threads. Returns all outputs,
  // [tokens, heads, group, head_dim], and then the positions and scores of all heads that rank.
  std::vector<float> run(const std::vector<std::uint32_t>& sizes) {
    std::uint32_t total = 0;
    for (const std::uint32_t size : sizes) total += size;
    out_.assign(total * row_floats(), 0.0F);
    std::barrier opened(static_cast<std::ptrdiff_t>(threads_) + 1);
    std::barrier finished(static_cast<std::ptrdiff_t>(threads_) + 1);
    std::vector<std::jthread> workers;
    for (std::uint32_t t = 0; t < threads_; ++t)
      workers.emplace_back([&, t] {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          opened.arrive_and_wait();
          for (std::uint32_t head = t; head < shape.heads(); head += threads_) work(head, t);
          finished.arrive_and_wait();
        }
      });
    for (const std::uint32_t size : sizes) {
      std::vector<token> tokens;
      for (position i = 0; i < size; ++i)
        tokens.push_back({text_->length() + i, static_cast<std::int32_t>(i % 6)});
      step_ = text_->try_append(tokens);
      opened.arrive_and_wait();
      finished.arrive_and_wait();
      std::move(*step_).commit();
      step_.reset();
    }
    for (std::uint32_t head = 0; head < shape.heads(); ++head)
      text_->head(head_at(head)).for_each_score([&](position pos, float score) {
        out_.push_back(static_cast<float>(pos));
        out_.push_back(score);
      });
    return out_;
  }

 private:
  using manager = headwise::cache_manager<test_policies>;

  static std::size_t row_floats() { return shape.heads() * shape.group_size() * shape.head_dim; }

  void work(std::uint32_t head, std::uint32_t thread) {
    const std::size_t count = step_->tokens().size();
    const position first = step_->tokens().front().pos;
    const std::size_t d = shape.head_dim;
    const std::size_t group_floats = shape.group_size() * d;
    const std::vector<float> keys = numbers(1, first, head, count * d);
    const std::vector<float> values = numbers(2, first, head, count * d);
    step_->write(head_at(head), {keys.data(), count, d}, {values.data(), count, d});
    for (std::size_t i = 0; i < count; ++i) {
      const position pos = step_->tokens()[i].pos;
      const std::vector<float> query = numbers(3, pos, head, group_floats);
      float* const out = out_.data() + pos * row_floats() + head * group_floats;
      headwise::attend(step_->head(head_at(head)), pos, {query.data(), shape.group_size(), d}, 0.2F,
                       {out, shape.group_size(), d}, {}, scratch_[thread]);
    }
  }

  std::uint32_t threads_;
  std::optional<manager> cache_;
  std::optional<manager::sequence_type> text_;
  std::optional<manager::step_type> step_;
  std::vector<headwise::attend_scratch> scratch_;
  std::vector<float> out_;
};

std::vector<std::uint32_t> step_sizes() {
  std::vector<std::uint32_t> sizes{50, 7, 20};
  for (int i = 0; i < 100; ++i) sizes.push_back(1);
  return sizes;
}

TEST(threads, four_over_disjoint_heads_compute_what_one_does) {
  const std::vector<float> one = decoder(1).run(step_sizes());
  const std::vector<float> four = decoder(4).run(step_sizes());
  EXPECT_EQ(one, four);
  EXPECT_NE(one, std::vector<float>(one.size(), 0.0F));
}

// No state is shared between managers: each thread may own one.
TEST(threads, four_managers_in_four_threads_compute_what_one_does) {
  const std::vector<float> alone = decoder(1).run(step_sizes());
  std::vector<std::vector<float>> results(4);
  {
    std::vector<std::jthread> owners;
    for (auto& result : results)
      owners.emplace_back([&result] { result = decoder(1).run(step_sizes()); });
  }
  for (const auto& result : results) EXPECT_EQ(result, alone);
}

}  // namespace
}  // namespace headwise_tests
