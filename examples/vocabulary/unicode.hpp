// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 and the four kinds of code points that tokenizers tell apart.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headwise_vocabulary {

enum class code_point_kind : std::uint8_t { letter, number, blank, other };

struct code_point {
  char32_t value;
  code_point_kind kind;
  std::size_t begin;  // first byte in the text
};

[[nodiscard]] code_point_kind kind_of(char32_t value) noexcept;

// General category P, and the ASCII symbols ($ + < = > ^ ` | ~) that C counts as punctuation too.
[[nodiscard]] bool is_punctuation(char32_t value) noexcept;

// Every byte belongs to exactly one code point: a byte that is no valid UTF-8 stands alone as
// U+FFFD, so no text is refused and none is lost.
[[nodiscard]] std::vector<code_point> decode_utf8(std::string_view text);

void append_utf8(char32_t value, std::string& text);

}  // namespace headwise_vocabulary
