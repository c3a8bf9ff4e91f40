// SPDX-License-Identifier: Apache-2.0

#include "tokenizer.hpp"

#include <algorithm>

#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace llama_example {
namespace {

using encoder = std::variant<byte_pair_encoder, sentence_piece_encoder>;

encoder make_encoder(const gguf_file& file, const vocabulary& tokens) {
  constexpr std::string_view key = "tokenizer.ggml.model";
  const std::string_view model = file.text(key);
  if (model == "gpt2") return byte_pair_encoder(file, tokens);
  if (model == "llama") return sentence_piece_encoder(file, tokens);
  file.refuse(key, headwise::in_quotes(model), "gpt2 or llama");
}

std::string piece_of(const encoder& how, const std::string& text, token_kind kind) {
  const bool plain = kind == token_kind::normal || kind == token_kind::byte;
  if (!plain) return text;
  if (std::holds_alternative<byte_pair_encoder>(how)) return byte_pair_encoder::bytes_of(text);
  return sentence_piece_encoder::bytes_of(text, kind);
}

bool adds_bos_by_default(const encoder& how) noexcept {
  const auto* bytes = std::get_if<byte_pair_encoder>(&how);
  return bytes == nullptr || bytes->begins_with_bos();
}

}  // namespace

tokenizer::tokenizer(const gguf_file& file)
    : tokens_(file),
      encoder_(make_encoder(file, tokens_)),
      bos_(special_id(file, "tokenizer.ggml.bos_token_id", tokens_.size())),
      eos_(special_id(file, "tokenizer.ggml.eos_token_id", tokens_.size())),
      eot_(special_id(file, "tokenizer.ggml.eot_token_id", tokens_.size())),
      adds_bos_(file.flag("tokenizer.ggml.add_bos_token", adds_bos_by_default(encoder_))) {
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    const token_kind kind = tokens_.kind(id);
    pieces_.push_back(piece_of(encoder_, tokens_.text(id), kind));
    const bool special = kind == token_kind::control || kind == token_kind::user_defined ||
                         kind == token_kind::unknown;
    if (special && !tokens_.text(id).empty()) special_.push_back(static_cast<std::int32_t>(id));
  }
  std::sort(special_.begin(), special_.end(), [this](std::int32_t a, std::int32_t b) {
    const std::size_t a_size = tokens_.text(checked(a)).size();
    const std::size_t b_size = tokens_.text(checked(b)).size();
    return a_size != b_size ? a_size > b_size : a < b;
  });
}

std::size_t tokenizer::checked(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) {
    headwise::raise(headwise::error_code::out_of_range, "token id", std::to_string(id),
                    "an id from 0 to " + std::to_string(tokens_.size() - 1));
  }
  return static_cast<std::size_t>(id);
}

const std::string& tokenizer::piece(std::int32_t id) const {
  return pieces_[checked(id)];
}

token_kind tokenizer::kind(std::int32_t id) const {
  return tokens_.kind(checked(id));
}

// Longer tokens are found first, everywhere, so that none is cut by a shorter one inside it.
std::vector<tokenizer::fragment> tokenizer::split_at_special(std::string_view text,
                                                             bool control) const {
  std::vector<fragment> fragments{{text, no_token}};
  for (const std::int32_t id : special_) {
    if (!control && kind(id) != token_kind::user_defined) continue;
    const std::string& name = tokens_.text(checked(id));
    std::vector<fragment> finer;
    for (const fragment& piece : fragments) {
      std::string_view rest = piece.text;
      for (std::size_t at; piece.id == no_token && (at = rest.find(name)) != std::string_view::npos;
           rest.remove_prefix(at + name.size())) {
        finer.push_back({rest.substr(0, at), no_token});
        finer.push_back({rest.substr(at, name.size()), id});
      }
      finer.push_back({rest, piece.id});
    }
    fragments = std::move(finer);
  }
  std::erase_if(fragments, [](const fragment& piece) { return piece.text.empty(); });
  return fragments;
}

std::vector<std::int32_t> tokenizer::encode(std::string_view text, encode_options options) const {
  std::vector<std::int32_t> ids;
  if (options.bos && adds_bos_ && bos_) ids.push_back(*bos_);
  bool after_special = true;
  for (const fragment& piece : split_at_special(text, options.special_tokens)) {
    if (piece.id != no_token) {
      ids.push_back(piece.id);
    } else if (const auto* bytes = std::get_if<byte_pair_encoder>(&encoder_)) {
      bytes->encode(tokens_, piece.text, ids);
    } else {
      std::get<sentence_piece_encoder>(encoder_).encode(tokens_, piece.text, after_special, ids);
    }
    after_special = piece.id != no_token;
  }
  return ids;
}

std::string tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (kind(id) != token_kind::control) text += piece(id);
  }
  const auto* pieces = std::get_if<sentence_piece_encoder>(&encoder_);
  if (pieces != nullptr && pieces->adds_blank() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

headwise::token_rules vocabulary_rules(const tokenizer& tokens, headwise::token_count sink_count) {
  return headwise_vocabulary::make_token_rules(tokens.size(), sink_count, [&](std::int32_t id) {
    return headwise_vocabulary::classes_of(tokens.piece(id), tokens.kind(id));
  });
}

}  // namespace llama_example
