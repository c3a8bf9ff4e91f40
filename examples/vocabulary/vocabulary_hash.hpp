// SPDX-License-Identifier: Apache-2.0
//
// What tells one vocabulary from another: 16 hexadecimal digits that change with any text, kind or
// order of the tokens (FNV-1a, 64 bits). O(bytes of the texts).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headwise_vocabulary {

class vocabulary_hash {
 public:
  // The next token; kind: the number that GGUF gives its type.
  void add(std::int32_t kind, std::string_view text) noexcept {
    add(static_cast<std::uint64_t>(kind));
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(std::uint64_t{0xFF});  // in no UTF-8 text: marks its end
  }
  [[nodiscard]] std::string digits() const {
    std::string result;
    for (int shift = 60; shift >= 0; shift -= 4)
      result += "0123456789abcdef"[state_ >> shift & 0xFU];
    return result;
  }

 private:
  void add(std::uint64_t byte) noexcept { state_ = (state_ ^ byte) * 0x100000001b3U; }

  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace headwise_vocabulary
