// SPDX-License-Identifier: Apache-2.0
//
// A Llama-style decoder out of a GGUF file: its sizes, its weights as float matrices [out, in] and
// its tokenizer. Architectures "llama" (rotary pairs are neighbours) and "qwen2" (pairs are halves,
// biases on query, key and value).
//
// Threads: immutable once loaded; any number of sessions may share one model.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "layers.hpp"
#include "tokenizer.hpp"

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/core/types.hpp"

namespace llama_example {

struct layer_weights {
  std::vector<float> attention_norm;                    // [embedding]
  matrix query, key, value;                             // [heads * head_dim, embedding]
  std::vector<float> query_bias, key_bias, value_bias;  // [heads * head_dim], or empty
  matrix attention_output;                              // [embedding, query heads * head_dim]
  std::vector<float> feed_forward_norm;                 // [embedding]
  matrix gate, up;                                      // [hidden, embedding]
  matrix down;                                          // [embedding, hidden]
};

struct model_sizes {
  headwise::model_shape attention;
  std::size_t embedding = 0;
  std::size_t hidden = 0;
  std::size_t vocabulary = 0;
  std::size_t context_length = 0;  // what the model was trained on, as the file says
  float norm_epsilon = 0.0F;
};

class model {
 public:
  explicit model(const std::filesystem::path& path);  // throws headwise::error

  [[nodiscard]] const model_sizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] const headwise::model_shape& shape() const noexcept { return sizes_.attention; }
  [[nodiscard]] headwise::model_fingerprint fingerprint() const;
  [[nodiscard]] const tokenizer& tokens() const noexcept { return tokens_; }

  [[nodiscard]] const rope_parameters& rotation() const noexcept { return rotation_; }
  [[nodiscard]] const matrix& embeddings() const noexcept { return embeddings_; }
  [[nodiscard]] const std::vector<layer_weights>& layers() const noexcept { return layers_; }
  [[nodiscard]] const std::vector<float>& output_norm() const noexcept { return output_norm_; }
  // [vocabulary, embedding]; the embeddings themselves where the file ties the two.
  [[nodiscard]] const matrix& output() const noexcept {
    return output_.values.empty() ? embeddings_ : output_;
  }

 private:
  explicit model(const gguf_file& file);

  std::string name_;
  tokenizer tokens_;
  model_sizes sizes_;
  rope_parameters rotation_;
  matrix embeddings_;
  std::vector<layer_weights> layers_;
  std::vector<float> output_norm_;
  matrix output_;
};

}  // namespace llama_example
