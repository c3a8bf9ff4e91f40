// SPDX-License-Identifier: Apache-2.0
//
// JSON as this library writes it: appended to a string, no stream and no locale in between, numbers
// in the shortest form that reads back as the same value. What JSON cannot hold is refused.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "headwise/core/error.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

// The length of the UTF-8 sequence at the start of `text`, which is not empty; 0: none is there.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

// Throws error(invalid_argument) naming place where text is no UTF-8.
inline void append_json_text(std::string& out, std::string_view text, const std::string& place) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0)
      raise(error_code::invalid_argument, place,
            "a text whose byte " + std::to_string(i) + " is no UTF-8", "text in UTF-8");
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (length == 1 && c < ' ') {
      out += "\\u00";
      out += hex[static_cast<std::size_t>(c) / 16];
      out += hex[static_cast<std::size_t>(c) % 16];
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  out += '"';
}

// Throws error(out_of_range) naming place unless value is finite and from low to high.
inline void append_json_real(std::string& out, double value, double low, double high,
                             const std::string& place) {
  char text[32];
  const auto written = [&](double v) {
    return std::string_view(
        text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, v).ptr - text));
  };
  if (!(value >= low && value <= high)) {
    const std::string got(written(value));
    raise(error_code::out_of_range, place, got,
          "a number from " + std::string(written(low)) + " to " + std::string(written(high)));
  }
  out += written(value);
}

}  // namespace detail

HEADWISE_NAMESPACE_END
