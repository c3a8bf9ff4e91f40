// SPDX-License-Identifier: Apache-2.0
//
// Which tokens are special, punctuation, line ends or digits: read off the vocabulary, since the
// same mark has several ids (".", " .", ".\n").
//
//   special      control and user-defined tokens, by the file's own word
//   punctuation  without the blanks around it, the token is punctuation and nothing else: Unicode's
//                general category P or an ASCII symbol
//   newline      the token holds a line feed                       (user bit 0)
//   digits       without the blanks around it, only numbers        (user bit 1)
//
// A token may have several: ".\n" is punctuation and newline. Sinks are positions, not ids.

#pragma once

#include "tokenizer.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace llama_example {

inline constexpr headwise::token_classes newline_class{headwise::first_user_class};
inline constexpr headwise::token_classes digits_class{headwise::first_user_class << 1U};

// The first sink_count positions are sinks. O(bytes of the vocabulary).
[[nodiscard]] headwise::token_rules vocabulary_rules(const tokenizer& tokens,
                                                     headwise::token_count sink_count);

// The classes of one token's bytes; `control`: the file says that it is a control token.
[[nodiscard]] headwise::token_classes classes_of(std::string_view piece, token_kind kind);

}  // namespace llama_example
