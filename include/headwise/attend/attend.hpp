// SPDX-License-Identifier: Apache-2.0
//
// Decode attention of one query position over one head: softmax(scale * Q K^T) V over exactly the
// rows that the query sees, for all query heads of the group at once. One pass over the K rows, a
// stable softmax in float, one pass over the V rows; each row is decoded once for the whole group.
// The result does not depend on how the rows are spread over slabs. In an open step a head that
// ranks is shown the probabilities, once for each query. No allocation, no lock, no throw.
// Different heads may be attended by different threads, each with a scratch of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <span>

#include "headwise/core/flat_vector.hpp"
#include "headwise/core/rows.hpp"
#include "headwise/manager/head_view.hpp"

HEADWISE_NAMESPACE_BEGIN

// Room for one call of attend at a time; belongs to one thread.
class attend_scratch {
 public:
  // max_rows: the most rows that a query will see. 4 * (group_size * max_rows + head_dim) bytes.
  // Throws error(out_of_range) where that fills the address space.
  attend_scratch(std::uint32_t group_size, std::uint32_t head_dim, std::size_t max_rows,
                 std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : group_size_(group_size), max_rows_(max_rows), row_(memory), weights_(memory) {
    const std::size_t weights = checked_size(group_size, max_rows);
    row_.reserve(head_dim);
    row_.resize(head_dim);
    weights_.reserve(weights);
    weights_.resize(weights);
  }

  [[nodiscard]] std::uint32_t group_size() const noexcept { return group_size_; }
  [[nodiscard]] std::size_t max_rows() const noexcept { return max_rows_; }
  // The probabilities of the last attend, [group_size, rows seen], in the order of for_each_slab.
  [[nodiscard]] rows<const float> weights() const noexcept {
    return {weights_.data(), group_size_, seen_, max_rows_};
  }

 private:
  [[nodiscard]] static std::size_t checked_size(std::size_t group_size, std::size_t max_rows) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(float);
    if (group_size != 0 && max_rows > most / group_size)
      raise(error_code::out_of_range, "attend_scratch.max_rows", std::to_string(max_rows),
            "at most " + std::to_string(most / group_size) + ", which fills the address space");
    return group_size * max_rows;
  }

  template <row_codec Key, row_codec Value>
  friend void attend(const head_view<Key, Value>&, position, rows<const float>, float, rows<float>,
                     std::span<float>, attend_scratch&) noexcept;

  std::uint32_t group_size_;
  std::size_t max_rows_;
  std::size_t seen_ = 0;
  detail::flat_vector<float> row_;      // [head_dim], a decoded row
  detail::flat_vector<float> weights_;  // [group_size, max_rows]: logits, then probabilities
};

namespace detail {

// Sixteen partial sums: independent chains for the adder and, to a compiler, vector lanes.
[[nodiscard]] inline float dot(const float* a, const float* b, std::size_t d) noexcept {
  constexpr std::size_t lanes = 16;
  float sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= d; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (std::size_t lane = 0; i + lane < d; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

inline void add_scaled(float weight, const float* row, float* sum, std::size_t d) noexcept {
  for (std::size_t i = 0; i < d; ++i) sum[i] += weight * row[i];
}

// In place: logits become probabilities. Returns log(sum(exp(logits))).
[[nodiscard]] inline float softmax(std::span<float> logits) noexcept {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (float& logit : logits) {
    logit = std::exp(logit - top);
    sum += static_cast<double>(logit);
  }
  const float scale = static_cast<float>(1.0 / sum);
  for (float& weight : logits) weight *= scale;
  return top + static_cast<float>(std::log(sum));
}

}  // namespace detail

// queries, out: [group_size, head_dim]; the query heads of view's head, in order. query: their
// position. lse: [group_size], log of the sum of exponentials, or empty. scratch: at least as many
// rows as the query sees. O(group_size * rows seen * head_dim).
template <row_codec Key, row_codec Value>
void attend(const head_view<Key, Value>& view, position query, rows<const float> queries,
            float scale, rows<float> out, std::span<float> lse, attend_scratch& scratch) noexcept {
  const std::size_t d = view.head_dim();
  const std::size_t group = queries.count;
  HEADWISE_EXPECTS(
      group == view.group_size() && group == scratch.group_size() && out.count == group,
      "attend takes the query rows of one whole group");
  HEADWISE_EXPECTS(queries.width == d && out.width == d && scratch.row_.size() == d,
                   "a row of attend is not head_dim wide");
  HEADWISE_EXPECTS(lse.empty() || lse.size() == group, "lse holds one number for each query head");

  float* const row = scratch.row_.data();
  const auto weights = [&](std::size_t g) {
    return scratch.weights_.data() + g * scratch.max_rows_;
  };
  std::size_t seen = 0;
  [[maybe_unused]] bool own_row = false;
  view.for_each_slab(query, [&](const slab& s) {
    own_row |= s.positions[s.count - 1] == query;
    HEADWISE_EXPECTS(seen + s.count <= scratch.max_rows_, "attend_scratch has too few rows");
    for (std::uint32_t r = 0; r < s.count; ++r, ++seen) {
      Key::decode(s.keys + r * Key::row_bytes(d), {row, d});
      for (std::size_t g = 0; g < group; ++g)
        weights(g)[seen] = scale * detail::dot(queries[g].data(), row, d);
    }
  });
  HEADWISE_EXPECTS(own_row, "the query's own row is not written yet");
  scratch.seen_ = seen;

  for (std::size_t g = 0; g < group; ++g) {
    const float log_sum = detail::softmax({weights(g), seen});
    if (!lse.empty()) lse[g] = log_sum;
    std::fill(out[g].begin(), out[g].end(), 0.0F);
  }
  seen = 0;
  view.for_each_slab(query, [&](const slab& s) {
    for (std::uint32_t r = 0; r < s.count; ++r, ++seen) {
      Value::decode(s.values + r * Value::row_bytes(d), {row, d});
      for (std::size_t g = 0; g < group; ++g)
        detail::add_scaled(weights(g)[seen], row, out[g].data(), d);
    }
  });
  if (view.awaits_attention(query)) view.observe(query, scratch.weights());
}

HEADWISE_NAMESPACE_END
