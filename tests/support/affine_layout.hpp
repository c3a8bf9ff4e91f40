// SPDX-License-Identifier: Apache-2.0
//
// Rows of int8_row and int4_group read by hand, from what their headers say of the bytes; nothing
// of the codecs is used but their names.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"

namespace headwise_tests {

[[nodiscard]] inline std::uint32_t word_at(const std::byte* at) {  // the lower byte first
  return std::to_integer<std::uint32_t>(at[0]) | std::to_integer<std::uint32_t>(at[1]) << 8;
}

struct read_step {
  double scale;
  int zero;
};
[[nodiscard]] inline read_step step_at(const std::byte* at) {
  const std::uint32_t scale = word_at(at), zero = word_at(at + 2);
  const int exponent = static_cast<int>(scale >> 7 & 255U);
  const double mantissa = 128.0 + (scale & 127U);
  return {exponent == 255 ? std::numeric_limits<double>::quiet_NaN()
                          : std::ldexp(mantissa, exponent - 127 - 7),
          zero < 0x8000U ? static_cast<int>(zero) : static_cast<int>(zero) - 0x10000};
}

// What differs between the two: how many elements share a step, and where a code lies.
template <class Codec>
struct affine_layout;
template <>
struct affine_layout<headwise::int8_row> {
  static constexpr int top = 255;
  static std::size_t row_bytes(std::size_t d) { return 4 + d; }
  static std::size_t shared(std::size_t d) { return d; }
  static int code(const std::byte* row, std::size_t, std::size_t i) {
    return std::to_integer<int>(row[4 + i]);
  }
};
template <>
struct affine_layout<headwise::int4_group> {
  static constexpr int top = 15;
  static std::size_t row_bytes(std::size_t d) { return (d + 31) / 32 * 20; }
  static std::size_t shared(std::size_t) { return 32; }
  static int code(const std::byte* row, std::size_t d, std::size_t i) {
    const std::byte* const group = row + (d + 31) / 32 * 4 + i / 32 * 16;
    const std::size_t in_group = i % 32, word = in_group % 8, nibble = in_group / 8;
    return static_cast<int>(word_at(group + 2 * word) >> (4 * nibble) & 15U);
  }
};

// One element: the step that it shares, and its code.
struct read_element {
  read_step step;
  int code;
  [[nodiscard]] double value() const { return step.scale * (code - step.zero); }
};
template <class Codec>
[[nodiscard]] read_element element_at(const std::byte* row, std::size_t d, std::size_t i) {
  using layout = affine_layout<Codec>;
  return {step_at(row + i / layout::shared(d) * 4), layout::code(row, d, i)};
}

// The largest step that the headers allow for elements that share one.
[[nodiscard]] inline double step_bound(std::span<const float> elements, int top) {
  const auto [lowest, highest] = std::minmax_element(elements.begin(), elements.end());
  const double range = double{*highest} - double{*lowest};
  return 1.008 * std::max({range / top, std::abs(double{*lowest}) / 32512.0, 0x1p-125});
}

}  // namespace headwise_tests
