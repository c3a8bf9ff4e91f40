// SPDX-License-Identifier: Apache-2.0
//
// What a codec makes of rows, measured: for an engine's own keys and values, before a codec is
// chosen for them. With decoded = decode(encode(row)), over all elements of rows [count, d]:
//
//   largest  = the greatest |decoded - element|
//   rms      = the root of the mean of (decoded - element)^2
//   relative = rms / the root of the mean of (element - mean of its channel)^2
//
// Taking one and the same vector from all keys of a head changes no probability, so by what keys
// differ from their mean is all that a query can tell them apart; `relative` says how much of that
// the codec's error amounts to. At 1 there is nothing left. A channel that is far from the others
// for every token shows as a `relative` that falls once the mean row is taken from all rows.
// O(count * d) time, O(d) memory. Any number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "headwise/codec/concepts.hpp"
#include "headwise/core/rows.hpp"

HEADWISE_NAMESPACE_BEGIN

struct row_error {
  double largest = 0.0;
  double rms = 0.0;
  double relative = 0.0;  // infinite where rows are equal and yet not exact
};

// A NaN or an infinity among the elements, or a decoded one, makes all three NaN. No rows: zeros.
template <row_codec Codec>
[[nodiscard]] row_error measure_row_error(rows<const float> given) {
  if (given.count == 0 || given.width == 0) return {};
  const auto count = static_cast<double>(given.count);
  std::vector<double> mean(given.width, 0.0);
  for (std::size_t r = 0; r < given.count; ++r)
    for (std::size_t i = 0; i < given.width; ++i) mean[i] += double{given[r][i]} / count;

  std::vector<std::byte> encoded(Codec::row_bytes(given.width));
  std::vector<float> decoded(given.width);
  double largest = 0.0, errors = 0.0, spread = 0.0;
  for (std::size_t r = 0; r < given.count; ++r) {
    Codec::encode(given[r], encoded.data());
    Codec::decode(encoded.data(), decoded);
    for (std::size_t i = 0; i < given.width; ++i) {
      const double error = double{decoded[i]} - double{given[r][i]};
      const double distance = double{given[r][i]} - mean[i];
      largest = std::max(largest, std::abs(error));
      errors += error * error;
      spread += distance * distance;
    }
  }
  if (!std::isfinite(errors)) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan};
  }
  const double rms = std::sqrt(errors / (count * static_cast<double>(given.width)));
  if (errors == 0.0) return {};
  return {largest, rms,
          spread == 0.0 ? std::numeric_limits<double>::infinity() : std::sqrt(errors / spread)};
}

HEADWISE_NAMESPACE_END
