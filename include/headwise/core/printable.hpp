// SPDX-License-Identifier: Apache-2.0
//
// printable: a name or text out of a stranger's file, made fit for a message and a terminal.
//
// O(bytes that are kept). Pure: any number of threads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headwise/core/config.hpp"

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

// C0, DEL and, as UTF-8, C1: what a terminal may act upon. sequence: not empty.
[[nodiscard]] inline bool is_control(std::string_view sequence) noexcept {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

}  // namespace detail

// `text` in UTF-8, with '?' for each control character and each byte that is no UTF-8. Of a text
// that is longer than `longest` bytes as many whole characters as fit, and "...".
[[nodiscard]] inline std::string printable(std::string_view text,
                                           std::size_t longest = std::string_view::npos) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = detail::utf8_length(text.substr(at));
    const std::string_view next = text.substr(at, length == 0 ? 1 : length);
    if (text.size() > longest && at + next.size() > longest) return result + "...";
    if (length == 0 || detail::is_control(next))
      result += '?';
    else
      result += next;
    at += next.size();
  }
  return result;
}

// 'text', as a message names something: at most 160 bytes of it.
[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  return "'" + printable(text, 160) + "'";
}

HEADWISE_NAMESPACE_END
