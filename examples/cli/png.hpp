// SPDX-License-Identifier: Apache-2.0
//
// Small pictures of at most 16 colours as PNG, not compressed, for data: addresses in a page.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace headwise_tool {

using rgb = std::array<std::uint8_t, 3>;

// pixels: [size, size], indices into palette (at most 16). Returns the bytes of a PNG file.
[[nodiscard]] std::string png_of(std::span<const std::uint8_t> pixels, std::size_t size,
                                 std::span<const rgb> palette);

[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace headwise_tool
