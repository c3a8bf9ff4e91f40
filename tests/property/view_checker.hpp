// SPDX-License-Identifier: Apache-2.0
//
// A check is one query of one head: exactly the right positions, each once, with the bytes that
// were written, and now and then what attend makes of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/attend/attend.hpp"
#include "support/expect.hpp"
#include "support/random.hpp"
#include "support/reference_attention.hpp"
#include "support/reference_cache.hpp"

namespace headwise_tests {

struct script_counts {
  std::size_t checks = 0;     // (head, query) visible sets
  std::size_t attends = 0;    // (query head, query) outputs
  std::size_t refusals = 0;   // steps and forks that got no memory
  std::size_t rollbacks = 0;  // that succeeded
  std::size_t blocked = 0;    // rollbacks that were refused
  std::size_t forks = 0;
  std::size_t cancels = 0;
  std::size_t ranked = 0;   // of the checks: on heads that rank, with a pool that is full
  std::size_t saves = 0;    // and restores
  std::size_t prompts = 0;  // of heads that rank, by their column sums
  std::size_t refills = 0;  // of heads, from one of another sequence
};

template <class Key, class Value>
class view_checker {
 public:
  using view = headwise::head_view<Key, Value>;

  view_checker(const headwise::model_shape& shape, std::size_t longest, random_source& random,
               script_counts& counts)
      : shape_(shape),
        random_(random),
        counts_(counts),
        scratch_(shape.group_size(), shape.head_dim, longest) {}

  void check(const reference_cache& expected, std::size_t head, const view& seen, position q,
             bool attend_too) {
    ++counts_.checks;
    if (expected.has_full_pool(head, q)) ++counts_.ranked;
    expected.visible(head, q, wanted_);
    const std::string problem = difference(seen, q);
    if (!problem.empty())
      ADD_FAILURE() << "head " << head << " query " << q << " length " << expected.length() << ": "
                    << problem;
    else if (attend_too && !wanted_.empty())
      check_attend(seen, q);
  }

  // Of the last check: the positions in the order of the slabs, and the probabilities of its
  // attend.
  [[nodiscard]] const std::vector<position>& order() const { return order_; }
  [[nodiscard]] headwise::rows<const float> weights() const { return scratch_.weights(); }

 private:
  // Empty where `seen` shows the query exactly wanted_.
  [[nodiscard]] std::string difference(const view& seen, position q) {
    got_.clear();
    order_.clear();
    bool filled = true;
    const std::size_t key_bytes = Key::row_bytes(shape_.head_dim);
    const std::size_t value_bytes = Value::row_bytes(shape_.head_dim);
    seen.for_each_slab(q, [&](const headwise::slab& s) {
      filled = filled && s.count > 0;
      for (std::uint32_t r = 0; r < s.count; ++r) {
        order_.push_back(s.positions[r]);
        got_.push_back({s.positions[r], s.keys + r * key_bytes, s.values + r * value_bytes});
      }
    });
    std::sort(got_.begin(), got_.end(), [](const row& a, const row& b) { return a.pos < b.pos; });
    if (!filled) return "an empty slab";
    if (got_.size() > seen.resident_rows()) return "more rows than the head says it holds";
    if (got_.size() != wanted_.size())
      return std::to_string(got_.size()) + " rows, not " + std::to_string(wanted_.size());
    for (std::size_t i = 0; i < got_.size(); ++i) {
      const reference_payload& payload = *wanted_[i]->payload;
      if (got_[i].pos != wanted_[i]->pos)
        return "position " + std::to_string(got_[i].pos) + ", not " +
               std::to_string(wanted_[i]->pos);
      if (std::memcmp(got_[i].key, payload.key_bytes.data(), key_bytes) != 0 ||
          std::memcmp(got_[i].value, payload.value_bytes.data(), value_bytes) != 0)
        return "other bytes at position " + std::to_string(got_[i].pos);
    }
    return {};
  }

  // How far logits may be off since quantised keys meet queries that are rounded to a 32767th of
  // their largest element: half of that for each element, times at most what the codes span, which
  // is the range of the row but for the rounding of its step, 1.008.
  [[nodiscard]] static double query_rounding(std::span<const float> query, double scale,
                                             const std::vector<std::span<const float>>& keys) {
    if (!headwise::detail::affine_codec<Key>) return 0.0;
    double largest = 0.0, range = 0.0;
    for (const float x : query) largest = std::max(largest, std::abs(double{x}));
    for (const std::span<const float> key : keys) {
      const auto [low, high] = std::minmax_element(key.begin(), key.end());
      range = std::max(range, 1.02 * (double{*high} - double{*low}));
    }
    return scale * static_cast<double>(query.size()) * largest * range / 65534;
  }

  // Rows are compared as bytes above, so what is left is the arithmetic of one pass in float, 1e-5,
  // and for quantised keys the rounding of the query: lse moves as far as a logit may, and a weight
  // by the exponential of twice that.
  void check_attend(const view& seen, position q) {
    const std::size_t d = shape_.head_dim;
    const std::size_t group = shape_.group_size();
    const float scale = 0.5F;
    const std::vector<float> queries = random_.numbers(group * d);
    std::vector<float> out(group * d, -1.0F);
    std::vector<float> lse(group);
    headwise::attend(seen, q, headwise::rows<const float>(queries.data(), group, d), scale,
                     headwise::rows<float>(out.data(), group, d), lse, scratch_);
    std::vector<std::span<const float>> keys, values;
    for (const reference_row* wanted : wanted_) {
      keys.emplace_back(wanted->payload->key);
      values.emplace_back(wanted->payload->value);
    }
    for (std::size_t g = 0; g < group; ++g) {
      ++counts_.attends;
      const reference_output dense =
          reference_attention({queries.data() + g * d, d}, double{scale}, keys, values);
      const double moved = query_rounding({queries.data() + g * d, d}, double{scale}, keys);
      const double bound = 1e-5 + std::expm1(2 * moved) * largest_of(values);
      expect_near(lse[g], dense.lse, 1e-5 + moved, "lse");
      for (std::size_t i = 0; i < d; ++i)
        expect_near(out[g * d + i], dense.values[i], bound, "an output");
    }
  }

  [[nodiscard]] static double largest_of(const std::vector<std::span<const float>>& rows) {
    double largest = 0.0;
    for (const std::span<const float> row : rows)
      for (const float x : row) largest = std::max(largest, std::abs(double{x}));
    return largest;
  }

  struct row {
    position pos;
    const std::byte* key;
    const std::byte* value;
  };

  headwise::model_shape shape_;
  random_source& random_;
  script_counts& counts_;
  headwise::attend_scratch scratch_;
  std::vector<const reference_row*> wanted_;
  std::vector<row> got_;
  std::vector<position> order_;
};

}  // namespace headwise_tests
