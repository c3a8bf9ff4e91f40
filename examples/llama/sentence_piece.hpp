// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece-style tokens (tokenizer.ggml.model "llama"): blanks become U+2581, code points are
// the first symbols, the pair whose joined text has the highest score merges first, and what is no
// token falls back to its bytes.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf.hpp"
#include "vocabulary.hpp"

namespace llama_example {

class sentence_piece_encoder {
 public:
  sentence_piece_encoder(const gguf_file& file,
                         const vocabulary& tokens);  // throws headwise::error

  // Appends the ids. after_special: the text opens the input or follows a special token, where the
  // model may want a blank in front. A byte without a token becomes the unknown token, if any.
  void encode(const vocabulary& tokens, std::string_view text, bool after_special,
              std::vector<std::int32_t>& ids) const;

  [[nodiscard]] bool adds_blank() const noexcept { return adds_blank_; }

  // The bytes behind a token's text; `kind` tells plain text from a byte's "<0xAB>".
  [[nodiscard]] static std::string bytes_of(std::string_view token_text, token_kind kind);

 private:
  bool adds_blank_;
  std::vector<float> scores_;               // [vocabulary]
  std::array<std::int32_t, 256> byte_ids_;  // no_token where the vocabulary lacks the byte
};

}  // namespace llama_example
