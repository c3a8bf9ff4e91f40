// SPDX-License-Identifier: Apache-2.0
//
// Small models with random weights, of the architecture that a test asks for.
#pragma once

#include <string>

#include "llama_cpp/program/random_model.hpp"
#include "models.hpp"

namespace headwise_tests {

// Two layers, four query heads, two KV heads, head_dim 16, 300 tokens, and what is said beside it.
inline hlc::model_handle make_small_model(const std::string& architecture,
                                          const hlc::metadata_map& more = {}) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  hlc::metadata_map all{{"block_count", 2U},
                        {"context_length", 512U},
                        {"embedding_length", 64U},
                        {"feed_forward_length", 96U},
                        {"attention.head_count", 4U},
                        {"attention.head_count_kv", 2U},
                        {"attention.layer_norm_rms_epsilon", 1e-5F},
                        {"attention.layer_norm_epsilon", 1e-5F},
                        {"rope.dimension_count", 16U},
                        {"vocab_size", 300U}};
  for (const auto& [key, value] : more) all[key] = value;
  return hlc::make_random_model(architecture, all);
}

// Ids from all over their vocabulary.
inline token_ids some_ids(std::size_t count, llama_token step) {
  token_ids ids;
  for (std::size_t i = 0; i < count; ++i)
    ids.push_back((static_cast<llama_token>(i) * step + 1) % 300);
  return ids;
}

}  // namespace headwise_tests
