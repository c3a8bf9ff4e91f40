// SPDX-License-Identifier: Apache-2.0
//
// Which tokens are special, punctuation, line ends or digits: read off the vocabulary, since the
// same mark has several ids (".", " .", ".\n"). One rule for every engine, so that a blueprint made
// by one serves the other.
//
//   special      control and user-defined tokens, by the file's own word
//   punctuation  without the blanks around it, the token is punctuation and nothing else: Unicode's
//                general category P or an ASCII symbol
//   newline      the token holds a line feed                       (user bit 0)
//   digits       without the blanks around it, only numbers        (user bit 1)
//
// A token may have several: ".\n" is punctuation and newline. Sinks are positions, not ids.
// Of headwise it needs the headers that need nothing else, of tokenizers none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_vocabulary {

// By the numbers that GGUF files give them.
enum class token_kind : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

inline constexpr headwise::token_classes newline_class{headwise::first_user_class};
inline constexpr headwise::token_classes digits_class{headwise::first_user_class << 1U};

// The classes of one token's bytes.
[[nodiscard]] headwise::token_classes classes_of(std::string_view piece, token_kind kind);

// The ids of each class among `size` tokens, of which classes(id) gives those of one. The first
// sink_count positions are sinks. O(size), beside the calls.
[[nodiscard]] headwise::token_rules make_token_rules(
    std::size_t size, headwise::token_count sink_count,
    const std::function<headwise::token_classes(std::int32_t)>& classes);

}  // namespace headwise_vocabulary
