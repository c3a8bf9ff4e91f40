// SPDX-License-Identifier: Apache-2.0
//
// f16: IEEE 754 binary16. 2 bytes an element; rounds to nearest, ties to even: relative error at
// most 2^-11 from 2^-14 to 65504, absolute error at most 2^-25 below. From 65520 on the value
// becomes infinite, as IEEE 754 rounds; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "headwise/codec/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

// Both conversions choose by masks, not branches, so that a compiler turns a row into vector code,
// and use no float below 2^-126, so that an engine's flush-to-zero mode changes nothing.
[[nodiscard]] constexpr std::uint32_t mask_if(bool condition) noexcept {
  return 0U - static_cast<std::uint32_t>(condition);
}
[[nodiscard]] constexpr std::uint32_t choose(std::uint32_t mask, std::uint32_t yes,
                                             std::uint32_t no) noexcept {
  return (yes & mask) | (no & ~mask);
}

[[nodiscard]] constexpr std::uint16_t f16_from_float(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Normal range: rebias the exponent, add just under half a unit and the last kept bit.
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  // Below 2^-14: adding 0.5 makes the sum's own unit 2^-24, the subnormal step; the adder rounds.
  const std::uint32_t tiny = mask_if(magnitude < 0x38800000U);
  const float shifted = std::bit_cast<float>(magnitude & tiny) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  const std::uint32_t special = 0x7c00U | (mask_if(magnitude > 0x7f800000U) & 0x200U);
  const std::uint32_t finite = choose(tiny, subnormal, normal);
  return static_cast<std::uint16_t>(sign |
                                    choose(mask_if(magnitude >= 0x47800000U), special, finite));
}

[[nodiscard]] constexpr float float_from_f16(std::uint16_t half) noexcept {
  const std::uint32_t sign = (std::uint32_t{half} & 0x8000U) << 16;
  const std::uint32_t shifted = (std::uint32_t{half} & 0x7fffU) << 13;
  const std::uint32_t exponent = shifted & 0x0f800000U;
  // Infinity and NaN take the exponent 255, which is 112 more than the rebias gives.
  const std::uint32_t normal =
      shifted + (112U << 23) + (mask_if(exponent == 0x0f800000U) & (112U << 23));
  const float subnormal = std::bit_cast<float>((shifted & 0x007fffffU) | (113U << 23)) -
                          std::bit_cast<float>(113U << 23);
  return std::bit_cast<float>(
      sign | choose(mask_if(exponent == 0), std::bit_cast<std::uint32_t>(subnormal), normal));
}

}  // namespace detail

struct f16 {
  static constexpr std::string_view name = "f16";
  [[nodiscard]] static constexpr std::size_t row_bytes(std::size_t d) noexcept { return 2 * d; }
  static void encode(std::span<const float> in, std::byte* dst) noexcept {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::uint16_t half = detail::f16_from_float(in[i]);
      std::memcpy(dst + 2 * i, &half, sizeof half);
    }
  }
  static void decode(const std::byte* src, std::span<float> out) noexcept {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, src + 2 * i, sizeof half);
      out[i] = detail::float_from_f16(half);
    }
  }
};

HEADWISE_NAMESPACE_END
