// SPDX-License-Identifier: Apache-2.0
//
// Text to token ids and back, as a GGUF file's metadata says (tokenizer.ggml.*): byte-level BPE
// ("gpt2") or SentencePiece-style ("llama"). The ids are those of llama.cpp.
//
// Threads: immutable once built; any number of threads may use one.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "byte_pair.hpp"
#include "gguf.hpp"
#include "sentence_piece.hpp"
#include "vocabulary.hpp"

namespace llama_example {

struct encode_options {
  bool bos = true;              // the beginning-of-sequence token first, where the model wants one
  bool special_tokens = false;  // control tokens written in the text ("<|im_start|>") become ids
};

class tokenizer {
 public:
  explicit tokenizer(const gguf_file& file);  // throws headwise::error

  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 encode_options options = {}) const;

  // The text of the ids, control tokens left out; ids outside of the vocabulary are an error.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const;

  // The bytes that one id adds to a text, not always whole code points. A control token's name.
  [[nodiscard]] const std::string& piece(std::int32_t id) const;
  [[nodiscard]] token_kind kind(std::int32_t id) const;

  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  [[nodiscard]] std::optional<std::int32_t> bos() const noexcept { return bos_; }
  [[nodiscard]] bool adds_bos() const noexcept { return adds_bos_; }
  // Whether generation stops at this id: end of sequence or end of turn.
  [[nodiscard]] bool is_end(std::int32_t id) const noexcept { return id == eos_ || id == eot_; }
  [[nodiscard]] std::string hash() const { return tokens_.hash(); }

 private:
  struct fragment {
    std::string_view text;
    std::int32_t id;  // of a special token; no_token for plain text
  };

  [[nodiscard]] std::vector<fragment> split_at_special(std::string_view text, bool control) const;
  [[nodiscard]] std::size_t checked(std::int32_t id) const;

  vocabulary tokens_;
  std::variant<byte_pair_encoder, sentence_piece_encoder> encoder_;
  std::vector<std::string> pieces_;
  std::vector<std::int32_t> special_;  // longest text first
  std::optional<std::int32_t> bos_, eos_, eot_;
  bool adds_bos_;
};

// The ids of each class, as vocabulary/token_classes.hpp says. The first sink_count positions are
// sinks. O(bytes of the vocabulary).
[[nodiscard]] headwise::token_rules vocabulary_rules(const tokenizer& tokens,
                                                     headwise::token_count sink_count);

}  // namespace llama_example
