// SPDX-License-Identifier: Apache-2.0

#include "vocabulary.hpp"

#include <array>
#include <utility>

#include "model_support.hpp"
#include "vocabulary/token_classes.hpp"
#include "vocabulary/vocabulary_hash.hpp"

#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace headwise_llama_cpp {
namespace {

using headwise_vocabulary::token_kind;

// llama.cpp turns the file's type numbers into bits; no bit is an ordinary token of a file that
// gives no types.
token_kind kind_of(const llama_vocab* vocabulary, llama_token id) {
  constexpr std::array<std::pair<llama_token_attr, token_kind>, 5> kinds{
      {{LLAMA_TOKEN_ATTR_UNKNOWN, token_kind::unknown},
       {LLAMA_TOKEN_ATTR_CONTROL, token_kind::control},
       {LLAMA_TOKEN_ATTR_USER_DEFINED, token_kind::user_defined},
       {LLAMA_TOKEN_ATTR_UNUSED, token_kind::unused},
       {LLAMA_TOKEN_ATTR_BYTE, token_kind::byte}}};
  const auto bits = static_cast<unsigned>(llama_vocab_get_attr(vocabulary, id));
  for (const auto& [bit, kind] : kinds)
    if ((bits & static_cast<unsigned>(bit)) != 0) return kind;
  return token_kind::normal;
}

// For other bytes llama.cpp takes U+FFFD, unless it has a token for each.
void require_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = headwise::detail::utf8_length(text.substr(at));
    if (length == 0)
      headwise::raise(headwise::error_code::unsupported, "text",
                      "byte " + std::to_string(at) + " of it, which is no UTF-8",
                      "text in UTF-8: this model has no tokens for other bytes in llama.cpp");
    at += length;
  }
}

}  // namespace

headwise::model_fingerprint fingerprint_of(const llama_model& model) {
  const llama_vocab* const vocabulary = llama_model_get_vocab(&model);
  const std::int32_t size = llama_vocab_n_tokens(vocabulary);
  std::string name = name_of(model);
  if (llama_vocab_type(vocabulary) == LLAMA_VOCAB_TYPE_NONE)
    return {std::move(name), static_cast<std::uint32_t>(size), {}};
  headwise_vocabulary::vocabulary_hash hash;
  for (llama_token id = 0; id < size; ++id)
    hash.add(static_cast<std::int32_t>(kind_of(vocabulary, id)),
             llama_vocab_get_text(vocabulary, id));
  return {std::move(name), static_cast<std::uint32_t>(size), hash.digits()};
}

headwise::token_rules vocabulary_rules(const llama_model& model, headwise::token_count sink_count) {
  using headwise::token_classes;
  const llama_vocab* const vocabulary = llama_model_get_vocab(&model);
  const bool has_texts = llama_vocab_type(vocabulary) != LLAMA_VOCAB_TYPE_NONE;
  return headwise_vocabulary::make_token_rules(
      has_texts ? vocabulary_size(model) : 0, sink_count, [&](llama_token id) {
        const token_classes classes =
            headwise_vocabulary::classes_of(piece_of(model, id), kind_of(vocabulary, id));
        return llama_vocab_is_eog(vocabulary, id) ? classes | token_classes::special : classes;
      });
}

headwise::token_classifier classifier_for(const headwise::blueprint& plan,
                                          const llama_model& model) {
  const headwise::model_fingerprint fingerprint = fingerprint_of(model);
  headwise::require_match(plan, shape_of(model), fingerprint);
  return headwise::make_classifier(plan.tokens, fingerprint.vocab_size);
}

std::vector<llama_token> encode(const llama_model& model, std::string_view text,
                                encode_options options) {
  const llama_vocab* const vocabulary = llama_model_get_vocab(&model);
  if (llama_vocab_type(vocabulary) == LLAMA_VOCAB_TYPE_NONE)
    headwise::raise(headwise::error_code::unsupported, "text", "a model without a vocabulary",
                    "one with a tokenizer");
  if (llama_vocab_type(vocabulary) != LLAMA_VOCAB_TYPE_SPM) require_utf8(text);
  std::vector<llama_token> ids;
  if (const llama_token first = llama_vocab_bos(vocabulary);
      options.bos && llama_vocab_get_add_bos(vocabulary) && first != LLAMA_TOKEN_NULL)
    ids.push_back(first);
  const std::size_t start = ids.size();
  ids.resize(start + text.size() + 2);
  const std::int32_t count =
      !std::in_range<std::int32_t>(ids.size())
          ? -1
          : llama_tokenize(vocabulary, text.data(), static_cast<std::int32_t>(text.size()),
                           ids.data() + start, static_cast<std::int32_t>(ids.size() - start), false,
                           options.special_tokens);
  if (count < 0)
    headwise::raise(headwise::error_code::unsupported, "text",
                    std::to_string(text.size()) + " bytes",
                    "a text that llama.cpp's tokenizer takes");
  ids.resize(start + static_cast<std::size_t>(count));
  return ids;
}

std::string piece_of(const llama_model& model, llama_token id) {
  const llama_vocab* const vocabulary = llama_model_get_vocab(&model);
  std::string piece(32, '\0');
  const auto read = [&] {
    return llama_token_to_piece(vocabulary, id, piece.data(),
                                static_cast<std::int32_t>(piece.size()), 0, true);
  };
  std::int32_t size = read();
  if (size < 0) {
    piece.resize(static_cast<std::size_t>(-size));
    size = read();
  }
  piece.resize(static_cast<std::size_t>(size < 0 ? 0 : size));
  return piece;
}

}  // namespace headwise_llama_cpp
