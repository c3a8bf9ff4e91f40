// SPDX-License-Identifier: Apache-2.0
//
// f32: rows as they come. 4 bytes an element, exact.
#pragma once

#include <cstring>

#include "headwise/codec/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

struct f32 {
  static constexpr std::string_view name = "f32";
  [[nodiscard]] static constexpr std::size_t row_bytes(std::size_t d) noexcept { return 4 * d; }
  static void encode(std::span<const float> in, std::byte* dst) noexcept {
    std::memcpy(dst, in.data(), in.size_bytes());
  }
  static void decode(const std::byte* src, std::span<float> out) noexcept {
    std::memcpy(out.data(), src, out.size_bytes());
  }
};

HEADWISE_NAMESPACE_END
