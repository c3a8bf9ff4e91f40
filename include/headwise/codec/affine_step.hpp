// SPDX-License-Identifier: Apache-2.0
//
// affine_step: what stands before quantised elements. An element is scale * (code - zero) with a
// code of 0 .. top. The scale is a bf16 and the zero an integer of 16 bits, so that the product is
// a float without rounding: an element up to 2^127 decodes to the same bits in any order. Four
// bytes serve the whole range of float, and elements that are all equal. O(elements). Pure.
//
//   bytes = [scale | zero], the lower byte of each first
//   step  = at most 1.008 * max((highest - lowest) / top, |lowest| / 32512, 2^-125)
//   error = at most step / 2, for elements up to 2^127
//
// Elements below 2^-126 are taken for 0, so that an engine's flush-to-zero mode changes nothing. A
// NaN or an infinity makes all elements NaN that share its step.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "headwise/codec/bf16.hpp"

HEADWISE_NAMESPACE_BEGIN
namespace detail {

struct affine_step {
  static constexpr std::size_t bytes = 4;

  std::uint16_t scale;  // bf16
  std::int16_t zero;    // the code, outside of 0 .. top perhaps, that would stand for 0

  [[nodiscard]] static affine_step read(const std::byte* from) noexcept {
    affine_step step;
    std::memcpy(&step.scale, from, sizeof step.scale);
    std::memcpy(&step.zero, from + sizeof step.scale, sizeof step.zero);
    return step;
  }
  void write(std::byte* to) const noexcept {
    std::memcpy(to, &scale, sizeof scale);
    std::memcpy(to + sizeof scale, &zero, sizeof zero);
  }
  [[nodiscard]] float decode(unsigned code) const noexcept {
    return float_from_bf16(scale) * static_cast<float>(static_cast<int>(code) - zero);
  }
};

// Finds the step of some elements and their codes: code_of(x) is 0 .. top, rounded to nearest.
class affine_encoder {
 public:
  affine_encoder(std::span<const float> elements, int top) noexcept : top_(top) {
    float lowest = std::numeric_limits<float>::max(), highest = -lowest;
    std::uint32_t exponents = 0;  // reaches that of infinity where an element does
    for (const float element : elements) {
      const float x = flushed(element);
      lowest = std::min(lowest, x);
      highest = std::max(highest, x);
      exponents = std::max(exponents, std::bit_cast<std::uint32_t>(x) & infinity_bits);
    }
    if (exponents == infinity_bits) {
      step_ = {0x7fc0, 0};  // a NaN; codes of 0
      return;
    }
    const double range = double{highest} - double{lowest};
    const double least = std::max(std::abs(double{lowest}) / most_zero, 0x1p-125);
    step_.scale = bf16_at_least(std::max(range / top, least));
    per_step_ = 1.0 / double{float_from_bf16(step_.scale)};
    const double zero = -std::round(double{lowest} * per_step_);
    step_.zero = static_cast<std::int16_t>(zero);
    rounding_ = zero + 0.5;
  }

  [[nodiscard]] const affine_step& step() const noexcept { return step_; }
  // Needs no care for floats below 2^-126: they are less than half a step.
  [[nodiscard]] unsigned code_of(float x) const noexcept {
    if (per_step_ == 0.0) return 0;
    const double code = std::clamp(double{x} * per_step_ + rounding_, 0.0, top_);
    return static_cast<unsigned>(static_cast<int>(code));
  }

 private:
  static constexpr std::uint32_t infinity_bits = 0x7f800000U;
  static constexpr double most_zero = 32512.0;  // leaves room for rounding, and for the codes

  [[nodiscard]] static float flushed(float x) noexcept {
    return (std::bit_cast<std::uint32_t>(x) & infinity_bits) == 0 ? 0.0F : x;
  }
  [[nodiscard]] static std::uint16_t bf16_at_least(double x) noexcept {
    auto near = static_cast<float>(x);
    if (double{near} < x) near = std::nextafter(near, std::numeric_limits<float>::max());
    return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(near) + 0xffffU) >> 16);
  }

  double top_;
  affine_step step_{};
  double per_step_ = 0.0;  // 0 where the step is NaN
  double rounding_ = 0.0;  // the zero and a half: what truncating rounds to nearest
};

}  // namespace detail
HEADWISE_NAMESPACE_END
