// SPDX-License-Identifier: Apache-2.0

#include "printable.hpp"

namespace llama_example {

std::string printable(std::string_view text) {
  constexpr std::size_t most = 80;
  constexpr const char* digits = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      result += c;
    } else {
      result += {'\\', 'x', digits[byte >> 4U], digits[byte & 0xFU]};
    }
  }
  return result + (text.size() > most ? "...\"" : "\"");
}

}  // namespace llama_example
