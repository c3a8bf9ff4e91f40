// SPDX-License-Identifier: Apache-2.0
//
// What a blueprint needs to know of a model's vocabulary, by llama.cpp's functions: its
// fingerprint, the classes of its tokens, texts as ids. The rules of the classes and the hash are
// those of every engine (vocabulary/), so that a blueprint made by one serves the other.
// O(bytes of the vocabulary). Pure: any number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <llama.h>

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_llama_cpp {

// The model's name, the size of its vocabulary and its hash.
[[nodiscard]] headwise::model_fingerprint fingerprint_of(const llama_model& model);

// special, punctuation, newline, digits, as vocabulary/token_classes.hpp says; a token that ends a
// text is special too. The first sink_count positions are sinks.
[[nodiscard]] headwise::token_rules vocabulary_rules(const llama_model& model,
                                                     headwise::token_count sink_count);

// What classes the tokens of a text as the blueprint wants it. Throws headwise::error where the
// blueprint is for another model.
[[nodiscard]] headwise::token_classifier classifier_for(const headwise::blueprint& plan,
                                                        const llama_model& model);

struct encode_options {
  bool bos = true;              // the beginning-of-sequence token first, where the model wants one
  bool special_tokens = false;  // control tokens written in the text ("<|im_start|>") become ids
};

// The ids of a text. Throws headwise::error where llama.cpp refuses, the model has no vocabulary,
// or the text is no UTF-8 and the model has no tokens for single bytes.
[[nodiscard]] std::vector<llama_token> encode(const llama_model& model, std::string_view text,
                                              encode_options options = {});

// The bytes that an id adds to a text.
[[nodiscard]] std::string piece_of(const llama_model& model, llama_token id);

}  // namespace headwise_llama_cpp
