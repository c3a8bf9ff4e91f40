// SPDX-License-Identifier: Apache-2.0

#include "png.hpp"

namespace headwise_tool {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xffU);
  return bytes;
}

std::uint32_t crc32(std::string_view bytes) noexcept {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

std::uint32_t adler32(std::string_view bytes) noexcept {
  std::uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return (b << 16) | a;
}

std::string chunk(std::string_view type, std::string_view data) {
  const std::string body = std::string(type) + std::string(data);
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(crc32(body));
}

// A zlib stream of one stored block; data has less than 64 KiB.
std::string stored(std::string_view data) {
  const auto size = static_cast<std::uint32_t>(data.size());
  std::string bytes = "\x78\x01\x01";
  for (const std::uint32_t length : {size, ~size})
    for (const int shift : {0, 8}) bytes += static_cast<char>((length >> shift) & 0xffU);
  return bytes + std::string(data) + big_endian(adler32(data));
}

}  // namespace

std::string png_of(std::span<const std::uint8_t> pixels, std::size_t size,
                   std::span<const rgb> palette) {
  std::string rows;
  for (std::size_t y = 0; y < size; ++y) {
    rows += '\0';  // no filter
    for (std::size_t x = 0; x < size; x += 2) {
      const unsigned right = x + 1 < size ? pixels[y * size + x + 1] : 0U;
      rows += static_cast<char>((static_cast<unsigned>(pixels[y * size + x]) << 4) | right);
    }
  }
  std::string colours;
  for (const rgb& colour : palette) colours.append(colour.begin(), colour.end());
  const std::string side = big_endian(static_cast<std::uint32_t>(size));
  const std::string four_bits_of_palette("\x04\x03\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", side + side + four_bits_of_palette) +
         chunk("PLTE", colours) + chunk("IDAT", stored(rows)) + chunk("IEND", "");
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = (group << 8) | (i < count ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? digits[(group >> (18 - 6 * i)) & 63U] : '=';
  }
  return text;
}

}  // namespace headwise_tool
