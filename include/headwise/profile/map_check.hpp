// SPDX-License-Identifier: Apache-2.0
//
// Is a recorded map what it claims to be? Weights [queries, keys] that are finite, not negative,
// causal, and rows that sum to one.
//
// A row: O(keys) in one pass; a second one only to find what to complain of. A map's sizes:
// O(keys), no weight is read. Pure: any number of threads.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>

#include "headwise/profile/attention_map.hpp"
#include "headwise/profile/map_kernels.hpp"

HEADWISE_NAMESPACE_BEGIN

// How far a row's sum may be from 1. Rounding each weight to f16 moves the sum by at most 2^-11 and
// keys * 2^-25 (subnormal weights), to bf16 by 2^-9, cutting to bf16 by 2^-8; this is twice the
// worst of them. Dropout that was left on (sums of 1 / (1 - p)) is refused from p = 0.8 % up.
inline constexpr double default_row_sum_tolerance = 1.0 / 128;

namespace detail {

[[nodiscard]] inline std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

[[nodiscard]] inline std::string map_place(const attention_map_view& map) {
  return (map.place.empty() ? "" : std::string(map.place) + ": ") + "prompt " +
         std::to_string(map.prompt) + " layer " + std::to_string(map.layer) + " query head " +
         std::to_string(map.query_head);
}
[[nodiscard]] inline std::string row_place(const attention_map_view& map, std::size_t row) {
  return map_place(map) + " row " + std::to_string(row);
}

[[noreturn]] inline void refuse_row(const attention_map_view& map, std::size_t row, double sum,
                                    double tolerance) {
  const std::size_t query = map.first_query + row;
  for (std::size_t key = 0; key < map.weights.width; ++key) {
    const float weight = map.weights.at(row, key);
    const std::string got = "weight " + number_text(static_cast<double>(weight)) + " at query " +
                            std::to_string(query) + " key " + std::to_string(key);
    if (!std::isfinite(weight))
      raise(error_code::not_normalized, row_place(map, row), got, "finite weights");
    if (weight < 0.0F)
      raise(error_code::not_normalized, row_place(map, row), got, "no negative weight");
    if (key > query && weight != 0.0F)
      raise(error_code::not_causal, row_place(map, row), got, "0 on every key after the query");
  }
  raise(error_code::not_normalized, row_place(map, row), "row sum " + number_text(sum),
        sum == 0.0 ? "1 (all zeros: this attention back end recorded no weights)"
                   : "1 within " + number_text(tolerance));
}

}  // namespace detail

// The sum of row `row`, after checking it. The map's sizes are checked before, by
// check_map_shape(). width: one that the processor has; ask for it once for many rows, it changes
// no bit. Throws error(not_normalized or not_causal) naming place, prompt, layer, head, row and
// value.
[[nodiscard]] inline double checked_row_sum(const attention_map_view& map, std::size_t row,
                                            double tolerance = default_row_sum_tolerance,
                                            simd_width width = widest_simd()) {
  HEADWISE_EXPECTS(row < map.weights.count && map.first_query + row < map.weights.width,
                   "no such row, or its query is behind the last key");
  const detail::row_scan scan =
      detail::map_kernels_at(map.weights.type, width)
          .scan({map.weights.row(row).data(), map.first_query + row + 1, map.weights.width});
  if (scan.negative || scan.late_mass || !(std::abs(scan.sum - 1.0) <= tolerance))
    detail::refuse_row(map, row, scan.sum, tolerance);
  return scan.sum;
}

// Sizes and positions, without looking at a weight. Throws error(missing, shape_mismatch or
// out_of_range) naming place, prompt, layer and head.
inline void check_map_shape(const attention_map_view& map, const model_shape& shape) {
  const std::string place = detail::map_place(map);
  if (map.layer >= shape.layers)
    raise(error_code::out_of_range, place, "layer " + std::to_string(map.layer),
          "a layer below " + std::to_string(shape.layers));
  if (map.query_head >= shape.query_heads)
    raise(error_code::out_of_range, place, "query head " + std::to_string(map.query_head),
          "a query head below " + std::to_string(shape.query_heads));
  const std::size_t queries = map.weights.count, keys = map.weights.width;
  const std::string sizes = "[" + std::to_string(queries) + ", " + std::to_string(keys) + "]";
  if (queries == 0 || keys == 0)
    raise(error_code::missing, place, "an empty map " + sizes, "at least one query and one key");
  if (keys != map.keys.size())
    raise(error_code::shape_mismatch, place, "a map " + sizes,
          std::to_string(map.keys.size()) + " keys, one for each token");
  if (keys > max_length || queries > keys || map.first_query > keys - queries)
    raise(error_code::shape_mismatch, place,
          "a map " + sizes + " whose first query is at " + std::to_string(map.first_query),
          "every query at the position of one of the keys");
  for (std::size_t i = 0; i < keys; ++i)
    if (map.keys[i].pos != i)
      raise(error_code::out_of_range, place + " key " + std::to_string(i),
            "position " + std::to_string(map.keys[i].pos), "position " + std::to_string(i));
}

HEADWISE_NAMESPACE_END
