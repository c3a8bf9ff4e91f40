// SPDX-License-Identifier: Apache-2.0

#include "unicode.hpp"

#include <algorithm>
#include <array>

#include "unicode_ranges.hpp"

namespace headwise_vocabulary {
namespace {

constexpr char32_t replacement = 0xFFFD;

template <std::size_t N>
bool within(const std::array<detail::code_point_range, N>& ranges, char32_t value) noexcept {
  const auto range =
      std::upper_bound(ranges.begin(), ranges.end(), value,
                       [](char32_t v, const detail::code_point_range& r) { return v < r.first; });
  return range != ranges.begin() && value <= std::prev(range)->last;
}

bool is_blank(char32_t value) noexcept {
  return (value >= 0x09 && value <= 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 ||
         value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 ||
         value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

// The length that a first byte announces; 0 for bytes that start no code point.
std::size_t announced_length(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

struct decoded {
  char32_t value;
  std::size_t length;
};

decoded decode_one(std::string_view text) noexcept {
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = announced_length(lead);
  if (length == 1) return {lead, 1};
  if (length == 0 || length > text.size()) return {replacement, 1};
  char32_t value = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {replacement, 1};
    value = value << 6U | (next & 0x3FU);
  }
  const bool valid = value >= smallest[length] && value <= 0x10FFFF && (value >> 11U) != 0x1B;
  return valid ? decoded{value, length} : decoded{replacement, 1};
}

}  // namespace

code_point_kind kind_of(char32_t value) noexcept {
  if (is_blank(value)) return code_point_kind::blank;
  if (within(detail::letter_ranges, value)) return code_point_kind::letter;
  if (within(detail::number_ranges, value)) return code_point_kind::number;
  return code_point_kind::other;
}

bool is_punctuation(char32_t value) noexcept {
  if (value < 0x80) return value > 0x20 && value < 0x7F && kind_of(value) == code_point_kind::other;
  return within(detail::punctuation_ranges, value);
}

std::vector<code_point> decode_utf8(std::string_view text) {
  std::vector<code_point> result;
  result.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const decoded next = decode_one(text.substr(begin));
    result.push_back({next.value, kind_of(next.value), begin});
    begin += next.length;
  }
  return result;
}

void append_utf8(char32_t value, std::string& text) {
  const auto put = [&](char32_t byte) {
    text += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0U | value >> 6U);
    put(0x80U | (value & 0x3FU));
  } else if (value < 0x10000) {
    put(0xE0U | value >> 12U);
    put(0x80U | (value >> 6U & 0x3FU));
    put(0x80U | (value & 0x3FU));
  } else {
    put(0xF0U | value >> 18U);
    put(0x80U | (value >> 12U & 0x3FU));
    put(0x80U | (value >> 6U & 0x3FU));
    put(0x80U | (value & 0x3FU));
  }
}

}  // namespace headwise_vocabulary
