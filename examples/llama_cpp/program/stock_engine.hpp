// SPDX-License-Identifier: Apache-2.0
//
// stock_engine: llama.cpp as it is, to compare with: full caches, positions given. Without flash
// attention and with rows of 32 bits it computes in 32 bits throughout; with flash attention it
// rounds rows and queries to 16 (found by comparing the two). One owner thread; the model must
// outlive it.
#pragma once

#include <span>
#include <vector>

#include "llama_cpp/handles.hpp"
#include "llama_cpp/token_batch.hpp"

#include "headwise/core/rows.hpp"

namespace headwise_llama_cpp {

struct stock_options {
  std::size_t cells = 1024;
  std::size_t micro_batch = 256;
  std::size_t sequences = 1;
  bool flash_attention = false;
  ggml_type rows = GGML_TYPE_F32;
  int threads = 1;
};

class stock_engine {
 public:
  explicit stock_engine(llama_model& model, const stock_options& options = {});

  // Appends tokens; the last one's logits, [vocabulary], valid until the next call. Throws
  // headwise::error where llama.cpp refuses.
  std::span<const float> feed(std::size_t sequence, std::span<const llama_token> ids);
  // One token for each sequence: logits [sequences, vocabulary].
  headwise::rows<const float> step(std::span<const llama_token> next);

  [[nodiscard]] llama_context* context() const noexcept { return context_.get(); }

 private:
  void add(std::size_t sequence, llama_token id, bool wants_logits) noexcept;
  void run();

  std::size_t vocabulary_, micro_batch_;
  token_batch batch_;
  context_handle context_;
  std::vector<llama_pos> lengths_;  // [sequences]
};

}  // namespace headwise_llama_cpp
