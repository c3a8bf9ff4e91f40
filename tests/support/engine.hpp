// SPDX-License-Identifier: Apache-2.0
//
// A toy engine: it feeds a sequence the rows of a fixture and attends every head, as a real engine
// would, and can say what a dense computation over given positions gives.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/attend/attend.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/manager/saved_sequence.hpp"
#include "support/every_nth.hpp"
#include "support/fixture.hpp"
#include "support/reference_attention.hpp"
#include "support/saved.hpp"

namespace headwise_tests {

using headwise::position;
using headwise::token;
using headwise::token_classes;
using headwise::token_count;

inline constexpr headwise::model_shape one_head{1, 1, 1, 4};

// The outputs of one step, [tokens, layers * query_heads, head_dim].
struct outputs {
  std::size_t query_heads = 0;
  std::size_t head_dim = 0;
  std::vector<float> values;

  [[nodiscard]] std::span<const float> row(std::size_t token, std::size_t query_head = 0) const {
    return std::span(values).subspan((token * query_heads + query_head) * head_dim, head_dim);
  }
  // The first element, which is all of them where V is constant in a row.
  [[nodiscard]] float at(std::size_t token, std::size_t query_head = 0) const {
    return row(token, query_head)[0];
  }
  [[nodiscard]] float last(std::size_t query_head = 0) const {
    return values[values.size() - (query_heads - query_head) * head_dim];
  }
  friend bool operator==(const outputs& a, const outputs& b) {  // bitwise
    return a.values.size() == b.values.size() &&
           std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
  }
};

template <class Key = headwise::f32, class Value = Key, class Policies = test_policies>
class engine {
 public:
  using manager = headwise::cache_manager<Policies, Key, Value>;
  using sequence = typename manager::sequence_type;
  using policy = typename Policies::variant;

  engine(const headwise::model_shape& shape, std::vector<policy> plan, fixture rows,
         const headwise::cache_config& config = {},
         headwise::token_classifier classifier = headwise::token_classifier(0))
      : engine(std::make_shared<manager>(shape, std::move(plan), config), std::move(rows),
               std::move(classifier)) {}
  // Another sequence of a manager that there is already.
  engine(std::shared_ptr<manager> cache, fixture rows,
         headwise::token_classifier classifier = headwise::token_classifier(0))
      : cache_(std::move(cache)),
        text_(cache_->open()),
        rows_(std::move(rows)),
        classifier_(std::move(classifier)) {}

  [[nodiscard]] engine fork() { return engine(*this, text_.fork()); }

  [[nodiscard]] std::string saved() const { return headwise_tests::saved(text_); }
  // What goes on from a file, beside this one.
  [[nodiscard]] engine restored(const std::string& file) {
    std::istringstream in(file);
    return engine(*this, headwise::try_restore(*cache_, in).value());
  }

  // The next tokens in one step: written, attended, committed.
  outputs feed(const std::vector<std::int32_t>& ids) { return step(ids, true); }
  outputs feed(std::size_t count) { return feed(std::vector<std::int32_t>(count, 0)); }
  // The same as steps of one token; the outputs of the last.
  outputs feed_singly(std::size_t count) {
    outputs result;
    for (std::size_t i = 0; i < count; ++i) result = feed(1);
    return result;
  }
  // Without attention: a prompt that the engine attended by itself.
  void append(std::size_t count,
              headwise::attend_scope scope = headwise::attend_scope::last_query) {
    static_cast<void>(step(std::vector<std::int32_t>(count, 0), false, scope));
  }
  // A step that is written in part and cancelled.
  void cancel(std::size_t count) {
    auto opened = text_.try_append(next_tokens(std::vector<std::int32_t>(count, 0)));
    ASSERT_TRUE(opened.has_value());
    write(*opened, 0);
  }

  // What the newest query of a head sees; at rollback_horizon 0 also all that it holds.
  [[nodiscard]] std::vector<position> kept(headwise::head_id head = {0, 0}) const {
    return visible(text_.head(head), text_.length() - 1);
  }
  // Of a head that ranks: what its rows drew so far, by position.
  [[nodiscard]] std::map<position, float> scores(headwise::head_id head) const {
    std::map<position, float> result;
    text_.head(head).for_each_score([&](position pos, float score) { result[pos] = score; });
    return result;
  }
  // softmax(q K^T) V in double over these positions, of the fixture's own rows.
  [[nodiscard]] reference_output dense(std::uint32_t layer, std::uint32_t query_head,
                                       position query,
                                       const std::vector<position>& positions) const {
    const std::size_t d = shape().head_dim;
    const headwise::head_id head{layer, query_head / shape().group_size()};
    std::vector<std::vector<float>> storage;
    std::vector<std::span<const float>> keys, values;
    storage.reserve(2 * positions.size());
    for (const position pos : positions) {
      keys.emplace_back(filled(storage, d, [&](auto row) { rows_.key(head, pos, row); }));
      values.emplace_back(filled(storage, d, [&](auto row) { rows_.value(head, pos, row); }));
    }
    std::vector<float> q(d);
    rows_.query(layer, query_head, query, q);
    return reference_attention(q, double{rows_.scale}, keys, values);
  }

  [[nodiscard]] sequence& text() noexcept { return text_; }
  [[nodiscard]] const sequence& text() const noexcept { return text_; }
  [[nodiscard]] manager& cache() noexcept { return *cache_; }
  [[nodiscard]] const std::shared_ptr<manager>& shared_cache() const noexcept { return cache_; }
  [[nodiscard]] const headwise::model_shape& shape() const noexcept { return cache_->shape(); }
  void set_rows(fixture rows) { rows_ = std::move(rows); }

  [[nodiscard]] std::vector<token> next_tokens(const std::vector<std::int32_t>& ids) const {
    return classifier_.tokens(std::span<const std::int32_t>(ids), text_.length());
  }
  template <class View>
  [[nodiscard]] static std::vector<position> visible(const View& view, position query) {
    std::vector<position> result;
    view.for_each_slab(query, [&](const headwise::slab& s) {
      result.insert(result.end(), s.positions, s.positions + s.count);
    });
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  engine(const engine& parent, sequence text)
      : cache_(parent.cache_),
        text_(std::move(text)),
        rows_(parent.rows_),
        classifier_(parent.classifier_) {}

  template <class Fill>
  static std::span<const float> filled(std::vector<std::vector<float>>& storage, std::size_t d,
                                       Fill&& fill_row) {
    fill_row(std::span<float>(storage.emplace_back(d)));
    return storage.back();
  }

  outputs step(const std::vector<std::int32_t>& ids, bool attended,
               headwise::attend_scope scope = headwise::attend_scope::every_query) {
    outputs result{std::size_t{shape().layers} * shape().query_heads, shape().head_dim, {}};
    auto opened = text_.try_append(next_tokens(ids), scope);
    if (!opened) {
      ADD_FAILURE() << "a step of " << ids.size() << " tokens was refused";
      return result;
    }
    if (attended) result.values.resize(ids.size() * result.query_heads * result.head_dim);
    for (std::size_t head = 0; head < shape().heads(); ++head) {
      write(*opened, head);
      if (attended) attend(*opened, head, result);
    }
    std::move(*opened).commit();
    return result;
  }

  [[nodiscard]] headwise::head_id id(std::size_t head) const {
    return {static_cast<std::uint32_t>(head) / shape().kv_heads,
            static_cast<std::uint32_t>(head) % shape().kv_heads};
  }
  template <class Step>
  void write(Step& opened, std::size_t head) {
    const std::size_t d = shape().head_dim;
    const std::size_t count = opened.tokens().size();
    std::vector<float> keys(count * d), values(count * d);
    for (std::size_t i = 0; i < count; ++i) {
      rows_.key(id(head), opened.tokens()[i].pos, std::span(keys).subspan(i * d, d));
      rows_.value(id(head), opened.tokens()[i].pos, std::span(values).subspan(i * d, d));
    }
    opened.write(id(head), {keys.data(), count, d}, {values.data(), count, d});
  }
  template <class Step>
  void attend(const Step& opened, std::size_t head, outputs& result) {
    const std::uint32_t group = shape().group_size();
    const std::size_t d = shape().head_dim;
    const std::size_t first_query_head = head * group;
    headwise::attend_scratch scratch(group, shape().head_dim,
                                     text_.length() + opened.tokens().size());
    std::vector<float> queries(group * d);
    for (std::size_t i = 0; i < opened.tokens().size(); ++i) {
      const position pos = opened.tokens()[i].pos;
      for (std::uint32_t g = 0; g < group; ++g)
        rows_.query(id(head).layer, id(head).kv_head * group + g, pos,
                    std::span(queries).subspan(g * d, d));
      float* const out = result.values.data() + (i * result.query_heads + first_query_head) * d;
      headwise::attend(opened.head(id(head)), pos,
                       headwise::rows<const float>(queries.data(), group, d), rows_.scale,
                       headwise::rows<float>(out, group, d), {}, scratch);
    }
  }

  std::shared_ptr<manager> cache_;
  sequence text_;
  fixture rows_;
  headwise::token_classifier classifier_;
};

// --- plans of one layer, for the cases ---

[[nodiscard]] inline headwise::local_window window(token_count w) {
  return headwise::local_window(w);
}
[[nodiscard]] inline headwise::special_tokens special_ids(std::vector<std::int32_t> ids) {
  return headwise::special_tokens(token_classes::none, std::move(ids));
}
[[nodiscard]] inline headwise::special_tokens sinks() {
  return headwise::special_tokens(token_classes::sink);
}
[[nodiscard]] inline test_policy sinks_and_window(token_count w) {
  return headwise::union_of(sinks(), window(w));
}
[[nodiscard]] inline test_policy ids_and_window(std::vector<std::int32_t> ids, token_count w) {
  return headwise::union_of(special_ids(std::move(ids)), window(w));
}

using positions = std::vector<position>;
[[nodiscard]] inline positions range(position first, position last) {  // both included
  positions result;
  for (position pos = first; pos <= last; ++pos) result.push_back(pos);
  return result;
}

}  // namespace headwise_tests
