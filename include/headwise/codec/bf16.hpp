// SPDX-License-Identifier: Apache-2.0
//
// bf16: the upper half of a float. 2 bytes an element; rounds to nearest, ties to even: relative
// error at most 2^-8. NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "headwise/codec/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

[[nodiscard]] constexpr std::uint16_t bf16_from_float(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  // A NaN whose set bits are all in the lower half would round to infinity: set the quiet bit.
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

[[nodiscard]] constexpr float float_from_bf16(std::uint16_t upper) noexcept {
  return std::bit_cast<float>(std::uint32_t{upper} << 16);
}

}  // namespace detail

struct bf16 {
  static constexpr std::string_view name = "bf16";
  [[nodiscard]] static constexpr std::size_t row_bytes(std::size_t d) noexcept { return 2 * d; }
  static void encode(std::span<const float> in, std::byte* dst) noexcept {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::uint16_t upper = detail::bf16_from_float(in[i]);
      std::memcpy(dst + 2 * i, &upper, sizeof upper);
    }
  }
  static void decode(const std::byte* src, std::span<float> out) noexcept {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::uint16_t upper = 0;
      std::memcpy(&upper, src + 2 * i, sizeof upper);
      out[i] = detail::float_from_bf16(upper);
    }
  }
};

HEADWISE_NAMESPACE_END
