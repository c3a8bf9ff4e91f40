// SPDX-License-Identifier: Apache-2.0

#include "sentence_piece.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "symbol_merge.hpp"
#include "vocabulary/unicode.hpp"

namespace llama_example {
namespace {

using headwise_vocabulary::code_point;
using headwise_vocabulary::decode_utf8;

constexpr std::string_view scores_key = "tokenizer.ggml.scores";
constexpr std::string_view blank = "\xE2\x96\x81";  // U+2581

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(from, begin)) != std::string::npos;
       begin = at + from.size()) {
    result.append(text, begin, at - begin).append(to);
  }
  text = result.append(text, begin);
}

// The byte that "<0xAB>" stands for.
std::optional<unsigned char> byte_value(std::string_view text) noexcept {
  unsigned char value = 0;
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text.back() != '>') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc{} || end != text.data() + 5) return std::nullopt;
  return value;
}

}  // namespace

sentence_piece_encoder::sentence_piece_encoder(const gguf_file& file, const vocabulary& tokens)
    : adds_blank_(file.flag("tokenizer.ggml.add_space_prefix", true)),
      scores_(file.floats(scores_key)) {
  if (scores_.size() != tokens.size()) {
    file.refuse(scores_key, std::to_string(scores_.size()) + " scores",
                "one for each of the " + std::to_string(tokens.size()) + " tokens");
  }
  for (std::size_t id = 0; id < scores_.size(); ++id) {
    if (std::isnan(scores_[id])) {
      file.refuse(scores_key, "NaN at index " + std::to_string(id), "scores that can be ordered");
    }
  }
  byte_ids_.fill(no_token);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens.kind(id) != token_kind::byte) continue;
    if (const auto value = byte_value(tokens.text(id))) {
      byte_ids_[*value] = static_cast<std::int32_t>(id);
    }
  }
}

void sentence_piece_encoder::encode(const vocabulary& tokens, std::string_view text,
                                    bool after_special, std::vector<std::int32_t>& ids) const {
  std::string escaped(adds_blank_ && after_special ? " " : "");
  escaped += text;
  replace_all(escaped, " ", blank);
  const auto stretch = [&](std::size_t begin, std::size_t length) {
    return std::string_view(escaped).substr(begin, length);
  };

  std::vector<symbol> symbols;
  const std::vector<code_point> points = decode_utf8(escaped);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t end = i + 1 < points.size() ? points[i + 1].begin : escaped.size();
    const std::size_t length = end - points[i].begin;
    symbols.push_back({points[i].begin, length,
                       tokens.find(stretch(points[i].begin, length)).value_or(no_token)});
  }
  merge_symbols(symbols, [&](const symbol& left, const symbol& right) {
    const auto id = tokens.find(stretch(left.begin, left.length + right.length));
    return id ? std::optional(merge_proposal{-double{scores_[static_cast<std::size_t>(*id)]}, *id})
              : std::nullopt;
  });

  const auto append = [&](std::int32_t id) {
    if (id == no_token) id = tokens.unknown().value_or(no_token);
    if (id != no_token) ids.push_back(id);
  };
  for (std::size_t i = symbols.empty() ? no_symbol : 0; i != no_symbol; i = symbols[i].next) {
    if (symbols[i].id != no_token) {
      append(symbols[i].id);
      continue;
    }
    for (const char byte : stretch(symbols[i].begin, symbols[i].length)) {
      append(byte_ids_[static_cast<unsigned char>(byte)]);
    }
  }
}

std::string sentence_piece_encoder::bytes_of(std::string_view token_text, token_kind kind) {
  std::string bytes(token_text);
  if (kind == token_kind::byte) {
    if (const auto value = byte_value(token_text)) bytes.assign(1, static_cast<char>(*value));
  } else {
    replace_all(bytes, blank, " ");
  }
  return bytes;
}

}  // namespace llama_example
