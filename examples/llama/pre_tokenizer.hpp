// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE merges inside words only. Which words a text has is the model's pre-tokenizer, a
// regular expression that a GGUF file names (tokenizer.ggml.pre) and that is written out here.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llama_example {

enum class word_style {
  gpt2,   // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  llama3  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,d}
          //   | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
};

struct word_rule {
  word_style style = word_style::gpt2;
  bool split_numbers_first = false;  // gpt2: every \p{N} is a word, then the rest is split
  std::size_t most_digits = 3;       // llama3: d above
  bool whole_words_first = false;    // a word that is a token is taken as it is, not merged
  bool begins_with_bos = false;      // unless the file says otherwise
};

// The rule behind a name of GGUF's; empty for the ones that this engine does not know.
[[nodiscard]] std::optional<word_rule> word_rule_of(std::string_view name) noexcept;
[[nodiscard]] std::string known_word_rules();

// The words, which put together are the text. O(bytes).
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text,
                                                        const word_rule& rule);

}  // namespace llama_example
