// SPDX-License-Identifier: Apache-2.0
//
// Which models and contexts the adapter takes, told before anything is computed. Whatever is
// refused is a headwise::error that says what was got and what is taken. What only the context
// shows (attention that is not causal) is found when it is made, what only the graph shows (learned
// sinks, ALiBi, soft-capped logits, unequal layers, two sets of rotation factors) when it first
// runs: handles.hpp, graph_nodes.hpp. O(1); any number of threads.
#pragma once

#include <cstddef>
#include <string>

#include <llama.h>

#include "headwise/core/types.hpp"

namespace headwise_llama_cpp {

// A value of the file's metadata as text; empty where there is none.
[[nodiscard]] std::string metadata(const llama_model& model, const std::string& key);

// What the model calls itself, else its architecture.
[[nodiscard]] std::string name_of(const llama_model& model);

// By the file's metadata; what the layers are in truth, the first graph shows.
[[nodiscard]] headwise::model_shape shape_of(const llama_model& model);

[[nodiscard]] std::size_t vocabulary_size(const llama_model& model);

// What options ask for, in tokens but for the sequences.
struct text_sizes {
  std::size_t capacity = 0;
  std::size_t micro_batch = 0;
  std::size_t sequences = 1;
};
// Throws headwise::error where one of them is 0 or more than llama.cpp counts. options: their name.
void require_sizes(const std::string& options, const text_sizes& sizes);

// Throws headwise::error(unsupported) on: recurrent, hybrid, diffusion and encoder models, sliding
// windows, multi-head latent attention, quantised cache types (llama.cpp rotates their rows), an
// evaluation callback of one's own.
void require_supported(const llama_model& model, const llama_context_params& params);

// For a model with rotation factors for short and for long texts, of which llama.cpp takes those
// for its number of cells: throws headwise::error(unsupported) where texts of `capacity` tokens
// want the others.
void require_rotation_of(const llama_model& model, std::size_t cells,
                         headwise::token_count capacity);

}  // namespace headwise_llama_cpp
