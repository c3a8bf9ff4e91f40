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
#include "headwise/core/printable.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

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
