// SPDX-License-Identifier: Apache-2.0
//
// Byte-level byte-pair encoding (tokenizer.ggml.model "gpt2"): words by the model's pre-tokenizer,
// bytes as first symbols, merges in the order of the file's list.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf.hpp"
#include "pre_tokenizer.hpp"
#include "symbol_merge.hpp"
#include "vocabulary.hpp"

namespace llama_example {

class byte_pair_encoder {
 public:
  byte_pair_encoder(const gguf_file& file, const vocabulary& tokens);  // throws headwise::error

  // Appends the ids. A byte that the vocabulary lacks becomes its unknown token, or nothing where
  // there is none.
  void encode(const vocabulary& tokens, std::string_view text,
              std::vector<std::int32_t>& ids) const;

  [[nodiscard]] bool begins_with_bos() const noexcept { return rule_.begins_with_bos; }

  // The bytes behind a token's text, in which each byte is written as one printable code point.
  [[nodiscard]] static std::string bytes_of(std::string_view token_text);

 private:
  void read_merges(const gguf_file& file, const vocabulary& tokens);
  void encode_word(const vocabulary& tokens, std::string_view word,
                   std::vector<std::int32_t>& ids) const;

  word_rule rule_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::unordered_map<std::uint64_t, merge_proposal> merges_;  // by left id, right id
};

}  // namespace llama_example
