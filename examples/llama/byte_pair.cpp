// SPDX-License-Identifier: Apache-2.0

#include "byte_pair.hpp"

#include <algorithm>

#include "vocabulary/unicode.hpp"

#include "headwise/core/printable.hpp"

namespace llama_example {
namespace {

using headwise_vocabulary::append_utf8;
using headwise_vocabulary::code_point;
using headwise_vocabulary::decode_utf8;

constexpr std::string_view merges_key = "tokenizer.ggml.merges";
constexpr std::string_view rule_key = "tokenizer.ggml.pre";

constexpr bool stands_for_itself(unsigned byte) noexcept {
  return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
}

// The code point that each byte is written as: itself where that is printable, else the next
// unused one from U+0100 on.
constexpr std::array<char32_t, 256> make_byte_alphabet() noexcept {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    alphabet[byte] = stands_for_itself(byte) ? char32_t{byte} : next++;
  }
  return alphabet;
}

constexpr auto alphabet = make_byte_alphabet();

std::string written(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(alphabet[static_cast<unsigned char>(byte)], text);
  return text;
}

std::uint64_t pair_key(std::int32_t left, std::int32_t right) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
}

}  // namespace

byte_pair_encoder::byte_pair_encoder(const gguf_file& file, const vocabulary& tokens) {
  const auto rule = word_rule_of(file.text(rule_key));
  if (!rule) {
    file.refuse(rule_key, headwise::in_quotes(file.text(rule_key)), "one of " + known_word_rules());
  }
  rule_ = *rule;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char plain = static_cast<char>(static_cast<unsigned char>(byte));
    byte_ids_[byte] = tokens.find(written({&plain, 1})).value_or(no_token);
  }
  read_merges(file, tokens);
}

void byte_pair_encoder::read_merges(const gguf_file& file, const vocabulary& tokens) {
  const auto id_of = [&](std::string_view text) { return tokens.find(text).value_or(no_token); };
  double rank = 0;
  for (const std::string_view line : file.strings(merges_key)) {
    const std::size_t blank =
        std::min(line.find(' ', 1), line.size());  // a part may begin with one
    const std::string_view left = line.substr(0, blank);
    const std::string_view right = line.substr(std::min(blank + 1, line.size()));
    const std::int32_t joined = id_of(std::string(left) + std::string(right));
    if (id_of(left) == no_token || id_of(right) == no_token || joined == no_token) {
      file.refuse(merges_key, headwise::in_quotes(line),
                  "two tokens whose joined text is a token as well");
    }
    merges_.emplace(pair_key(id_of(left), id_of(right)), merge_proposal{rank++, joined});
  }
}

void byte_pair_encoder::encode(const vocabulary& tokens, std::string_view text,
                               std::vector<std::int32_t>& ids) const {
  for (const std::string_view word : split_words(text, rule_)) encode_word(tokens, word, ids);
}

void byte_pair_encoder::encode_word(const vocabulary& tokens, std::string_view word,
                                    std::vector<std::int32_t>& ids) const {
  if (rule_.whole_words_first) {
    if (const auto id = tokens.find(written(word))) return ids.push_back(*id);
  }
  std::vector<symbol> symbols;
  symbols.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i) {
    symbols.push_back({i, 1, byte_ids_[static_cast<unsigned char>(word[i])]});
  }
  merge_symbols(symbols, [&](const symbol& left, const symbol& right) {
    const auto found = merges_.find(pair_key(left.id, right.id));
    return found == merges_.end() ? std::nullopt : std::optional(found->second);
  });
  for (std::size_t i = 0; i != no_symbol; i = symbols[i].next) {
    const std::int32_t id =
        symbols[i].id != no_token ? symbols[i].id : tokens.unknown().value_or(no_token);
    if (id != no_token) ids.push_back(id);
  }
}

std::string byte_pair_encoder::bytes_of(std::string_view token_text) {
  static const auto byte_of = [] {
    std::unordered_map<char32_t, char> inverse;
    for (unsigned byte = 0; byte < 256; ++byte) {
      inverse[alphabet[byte]] = static_cast<char>(static_cast<unsigned char>(byte));
    }
    return inverse;
  }();
  std::string bytes;
  for (const code_point& point : decode_utf8(token_text)) {
    if (const auto found = byte_of.find(point.value); found != byte_of.end()) {
      bytes += found->second;
    } else {
      append_utf8(point.value, bytes);
    }
  }
  return bytes;
}

}  // namespace llama_example
