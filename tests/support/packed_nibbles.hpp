// SPDX-License-Identifier: Apache-2.0
//
// A codec that headwise does not know, as a stranger would write it: two elements a byte behind one
// scale for the row, which need not be a whole number of anything.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace stranger {

struct packed_nibbles {
  static constexpr std::string_view name = "packed_nibbles";

  [[nodiscard]] static constexpr std::size_t row_bytes(std::size_t d) noexcept {
    return sizeof(float) + (d + 1) / 2;
  }
  // Codes 1 .. 15 stand for -7 .. 7 of a seventh of the largest magnitude.
  static void encode(std::span<const float> in, std::byte* dst) noexcept {
    float largest = 0.0F;
    for (const float x : in) largest = std::max(largest, std::abs(x));
    std::memcpy(dst, &largest, sizeof(largest));
    std::memset(dst + sizeof(largest), 0, (in.size() + 1) / 2);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float step = largest == 0.0F ? 0.0F : std::round(in[i] / largest * 7.0F);
      const auto code = static_cast<unsigned>(static_cast<int>(step) + 8);
      dst[sizeof(largest) + i / 2] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4);
    }
  }
  static void decode(const std::byte* src, std::span<float> out) noexcept {
    float largest;
    std::memcpy(&largest, src, sizeof(largest));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto both = std::to_integer<unsigned>(src[sizeof(largest) + i / 2]);
      const auto code = static_cast<int>(i % 2 == 0 ? both & 15U : both >> 4);
      out[i] = static_cast<float>(code - 8) * largest / 7.0F;
    }
  }
};

}  // namespace stranger
