// SPDX-License-Identifier: Apache-2.0
//
// step_writer: the rows of one step and its attention, on a sequence and on the reference at once;
// what a head shows is checked as soon as it is written.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "property/view_checker.hpp"

#include "headwise/manager/cache_manager.hpp"
#include "support/every_nth.hpp"

namespace headwise_tests {

// A sequence and what it should be.
template <class Key, class Value>
struct mirrored {
  typename headwise::cache_manager<test_policies, Key, Value>::sequence_type real;
  reference_cache expected;
};

[[nodiscard]] inline headwise::head_id head_at(const headwise::model_shape& shape,
                                               std::size_t head) {
  return {static_cast<std::uint32_t>(head) / shape.kv_heads,
          static_cast<std::uint32_t>(head) % shape.kv_heads};
}

template <class Key, class Value>
class step_writer {
 public:
  using pair = mirrored<Key, Value>;
  using step = headwise::append_step<test_policies, Key, Value>;
  using view = headwise::head_view<Key, Value>;

  step_writer(const headwise::model_shape& shape, random_source& random, script_counts& counts,
              view_checker<Key, Value>& checker)
      : shape_(shape), random_(random), counts_(counts), checker_(&checker) {}

  // Has put(head) write the heads in random order, not all where the step is going to be cancelled,
  // and checks each as soon as it is written.
  template <class Put>
  void write_heads(pair& p, step& opened, bool cancelled, bool prompt, Put&& put) {
    std::vector<std::size_t> order(shape_.heads());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      std::swap(order[i], order[random_.below(static_cast<std::uint32_t>(i) + 1)]);
    }
    if (cancelled) order.resize(random_.below(static_cast<std::uint32_t>(order.size()) + 1));
    const position newest = p.real.length() + static_cast<token_count>(opened.tokens().size());
    for (const std::size_t head : order) {
      if (prompt && p.expected.ranks(head)) show_prompt(p, opened, head, newest);
      put(head);
      const position end = cancelled && random_.one_in(2) ? p.real.length() : newest;
      const position first = opened.head(id(head)).first_query();
      expect_equal(first, p.expected.first_query(head), "first_query of a step");
      for (position q = first; q < end; ++q) {
        const view seen = opened.head(id(head));
        if (seen.awaits_attention(q))
          check_and_observe(p, head, seen, q, prompt && q + 1 == newest);
        else
          checker_->check(p.expected, head, seen, q, true);
      }
    }
  }

  // With new rows.
  void write_head(pair& p, step& opened, std::size_t head) {
    const std::size_t d = shape_.head_dim;
    const std::size_t count = opened.tokens().size();
    const std::vector<float> keys = random_.numbers(count * d);
    const std::vector<float> values = random_.numbers(count * d);
    const std::size_t key_bytes = Key::row_bytes(d);
    const std::size_t value_bytes = Value::row_bytes(d);
    std::vector<std::byte> encoded_keys, encoded_values;
    for (std::size_t i = 0; i < count; ++i) {
      auto payload = std::make_shared<reference_payload>();
      payload->key_bytes.resize(key_bytes);
      payload->value_bytes.resize(value_bytes);
      payload->key.resize(d);
      payload->value.resize(d);
      Key::encode({keys.data() + i * d, d}, payload->key_bytes.data());
      Value::encode({values.data() + i * d, d}, payload->value_bytes.data());
      Key::decode(payload->key_bytes.data(), payload->key);
      Value::decode(payload->value_bytes.data(), payload->value);
      encoded_keys.insert(encoded_keys.end(), payload->key_bytes.begin(), payload->key_bytes.end());
      encoded_values.insert(encoded_values.end(), payload->value_bytes.begin(),
                            payload->value_bytes.end());
      p.expected.write(head, i, std::move(payload));
    }
    if (random_.one_in(2))
      opened.write(id(head), {keys.data(), count, d}, {values.data(), count, d});
    else
      opened.write_encoded(id(head), {encoded_keys.data(), count, key_bytes},
                           {encoded_values.data(), count, value_bytes});
  }
  // With the rows of a head of `source`, which has the step's tokens: any whose streams hold what
  // this head stores, or with new rows where there is none.
  void refill_head(pair& p, step& opened, std::size_t head, const pair& source) {
    const auto heads = static_cast<std::uint32_t>(shape_.heads());
    const std::uint32_t first = random_.below(heads);
    for (std::uint32_t i = 0; i < heads; ++i) {
      const std::size_t from = (first + i) % heads;
      if (!holds_all(source, from, p, head)) continue;
      for (const token& t : opened.tokens())
        p.expected.write(head, t.pos, source.expected.payload(from, t.pos));
      opened.write(id(head), source.real.head(id(from)));
      ++counts_.refills;
      return;
    }
    write_head(p, opened, head);
  }

 private:
  [[nodiscard]] headwise::head_id id(std::size_t head) const { return head_at(shape_, head); }

  // The step of `p` starts at position 0.
  [[nodiscard]] static bool holds_all(const pair& source, std::size_t from, const pair& p,
                                      std::size_t head) {
    for (position pos = 0; pos < source.expected.length(); ++pos)
      if (p.expected.stores(head, pos) && !source.expected.streams_hold(from, pos)) return false;
    return true;
  }

  // Sums of eighths, so that it makes no difference in which order they are added.
  [[nodiscard]] float random_weight() {
    if (random_.one_in(2'000)) return std::numeric_limits<float>::quiet_NaN();
    return random_.one_in(3) ? 0.0F : static_cast<float>(random_.below(64)) / 8.0F;
  }
  void show_prompt(pair& p, step& opened, std::size_t head, position length) {
    std::vector<float> sums(length);
    for (float& sum : sums) sum = random_weight();
    opened.observe_prompt(id(head), sums);
    p.expected.observe_prompt(head, sums);
    ++counts_.prompts;
  }
  // By weights of our own, or by attend: then with its probabilities, whose output is checked. The
  // newest query of a prompt may be left out.
  void check_and_observe(pair& p, std::size_t head, const view& seen, position q, bool optional) {
    const bool ours = random_.one_in(2);
    checker_->check(p.expected, head, seen, q, !ours && !(optional && random_.one_in(2)));
    if (ours && !(optional && random_.one_in(2))) {
      const std::size_t heads = random_.one_in(2) ? shape_.group_size() : 1;
      std::vector<float> weights(heads * checker_->order().size());
      for (float& weight : weights) weight = random_weight();
      seen.observe(q, {weights.data(), heads, checker_->order().size()});
      tell(p, head, q, {weights.data(), heads, checker_->order().size()});
    } else if (!seen.awaits_attention(q)) {
      tell(p, head, q, checker_->weights());
    } else {
      expect(optional, "attend shows a pool the attention");
    }
  }
  // weights: [heads, rows seen] in the order of the slabs, as check() has left it in the checker.
  void tell(pair& p, std::size_t head, position q, headwise::rows<const float> weights) {
    std::vector<std::pair<position, float>> sums;
    for (std::size_t i = 0; i < checker_->order().size(); ++i) {
      float sum = 0.0F;
      for (std::size_t g = 0; g < weights.count; ++g) sum += weights[g][i];
      sums.emplace_back(checker_->order()[i], sum);
    }
    std::sort(sums.begin(), sums.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<float> by_position;
    for (const auto& sum : sums) by_position.push_back(sum.second);
    p.expected.observe(head, q, by_position);
  }

  headwise::model_shape shape_;
  random_source& random_;
  script_counts& counts_;
  view_checker<Key, Value>* checker_;
};

}  // namespace headwise_tests
