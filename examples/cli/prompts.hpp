// SPDX-License-Identifier: Apache-2.0
//
// A text file as pieces of equal length for a model: consecutive, not overlapping, each beginning
// with the beginning-of-sequence token where the model's tokenizer wants one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine.hpp"

namespace headwise_tool {

// Throws headwise::error on a file that is not there or holds no text.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

// What the model says of a text that it cannot encode, it says of `place`.
[[nodiscard]] token_ids encode_from(const std::string& place, const engine& model,
                                    std::string_view text, engine::special_tokens special);

// Throws headwise::error where a model's context, if it states one, is shorter than `tokens`.
// place: what has them.
void require_context(const model_facts& model, std::size_t tokens, const std::string& place);

struct piece_options {
  std::size_t count = 1;              // of pieces
  std::size_t length = 0;             // tokens of each, the first one included
  std::size_t again = 0;              // its last so many tokens are its first ones once more
  std::string asked_by = "--length";  // what states the length, for messages
};

// Throws headwise::error where the text is too short, a piece longer than the model's context, or
// more of it is to stand there again than half.
[[nodiscard]] std::vector<token_ids> cut_pieces(const engine& model,
                                                const std::filesystem::path& text,
                                                const piece_options& options);

// As many whole pieces as the text has, at most options.count, at least one.
[[nodiscard]] std::vector<token_ids> cut_up_to(const engine& model,
                                               const std::filesystem::path& text,
                                               const piece_options& options);

}  // namespace headwise_tool
