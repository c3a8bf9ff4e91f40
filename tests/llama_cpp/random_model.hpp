// SPDX-License-Identifier: Apache-2.0
//
// Small models of any architecture that llama.cpp knows, with random weights of 32 bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include <ggml-backend.h>

#include "altered_model.hpp"

#include "support/random.hpp"

namespace headwise_tests {

using metadata_value = std::variant<std::uint32_t, float, bool, std::string>;
using metadata_map = std::map<std::string, metadata_value>;  // without the architecture's name

// Two layers, four query heads, two KV heads, head_dim 16, 300 tokens.
inline metadata_map usual_metadata() {
  return {{"block_count", 2U},
          {"context_length", 512U},
          {"embedding_length", 64U},
          {"feed_forward_length", 96U},
          {"attention.head_count", 4U},
          {"attention.head_count_kv", 2U},
          {"attention.layer_norm_rms_epsilon", 1e-5F},
          {"attention.layer_norm_epsilon", 1e-5F},
          {"rope.dimension_count", 16U},
          {"vocab_size", 300U}};
}

inline void set(gguf_context* file, const std::string& key, const metadata_value& value) {
  const char* const name = key.c_str();
  if (const auto* number = std::get_if<std::uint32_t>(&value))
    gguf_set_val_u32(file, name, *number);
  if (const auto* real = std::get_if<float>(&value)) gguf_set_val_f32(file, name, *real);
  if (const auto* truth = std::get_if<bool>(&value)) gguf_set_val_bool(file, name, *truth);
  if (const auto* text = std::get_if<std::string>(&value))
    gguf_set_val_str(file, name, text->c_str());
}

inline void fill(ggml_tensor* tensor, void* data) {
  auto& random = *static_cast<random_source*>(data);
  const bool is_norm = std::string(tensor->name).find("norm.weight") != std::string::npos;
  std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
  for (float& v : values) v = (is_norm ? 1.0F : 0.0F) + 0.2F * random.number();
  ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
}

inline hlc::model_handle random_model(const std::string& architecture, metadata_map metadata) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  const std::unique_ptr<gguf_context, gguf_deleter> file(gguf_init_empty());
  set(file.get(), "general.architecture", architecture);
  set(file.get(), "tokenizer.ggml.model", std::string("no_vocab"));
  for (const auto& [key, value] : metadata) set(file.get(), architecture + "." + key, value);
  random_source random(1);
  return hlc::model_handle(
      llama_model_init_from_user(file.get(), &fill, &random, llama_model_default_params()));
}

}  // namespace headwise_tests
