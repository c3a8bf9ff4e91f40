// SPDX-License-Identifier: Apache-2.0
//
// llama.cpp as it is, to compare with: full caches, positions given. Without flash attention and
// with rows of 32 bits it computes in 32 bits throughout; with flash attention it rounds rows and
// queries to 16 (found by comparing the two).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "llama_cpp/token_batch.hpp"
#include "models.hpp"

namespace headwise_tests {

struct stock_options {
  std::size_t cells = 1024;
  std::size_t micro_batch = 256;
  std::size_t sequences = 1;
  bool flash_attention = false;
  ggml_type rows = GGML_TYPE_F32;
};

class stock_engine {
 public:
  explicit stock_engine(llama_model& model, const stock_options& options = {})
      : vocabulary_(static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(&model)))),
        micro_batch_(options.micro_batch),
        batch_(options.micro_batch),
        lengths_(options.sequences) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<std::uint32_t>(options.cells);
    params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(options.micro_batch);
    params.n_seq_max = static_cast<std::uint32_t>(options.sequences);
    params.kv_unified = true;
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = params.type_v = options.rows;
    params.flash_attn_type =
        options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    context_ = hlc::make_context(&model, params);
  }

  // The logits of the last token.
  std::span<const float> feed(std::size_t sequence, std::span<const llama_token> ids) {
    while (!ids.empty()) {
      const auto some = ids.first(std::min(ids.size(), micro_batch_));
      ids = ids.subspan(some.size());
      batch_.clear();
      for (std::size_t i = 0; i < some.size(); ++i) add(sequence, some[i], i + 1 == some.size());
      EXPECT_EQ(llama_decode(context_.get(), batch_.get()), 0);
    }
    return {llama_get_logits(context_.get()), vocabulary_};
  }
  // One token for each sequence: [sequences, vocabulary].
  headwise::rows<const float> step(std::span<const llama_token> next) {
    batch_.clear();
    for (std::size_t i = 0; i < next.size(); ++i) add(i, next[i], true);
    EXPECT_EQ(llama_decode(context_.get(), batch_.get()), 0);
    return {llama_get_logits(context_.get()), next.size(), vocabulary_};
  }

 private:
  void add(std::size_t sequence, llama_token id, bool wants_logits) {
    batch_.add(id, lengths_[sequence]++, static_cast<llama_seq_id>(sequence), wants_logits);
  }

  std::size_t vocabulary_, micro_batch_;
  hlc::token_batch batch_;
  hlc::context_handle context_;
  std::vector<llama_pos> lengths_;
};

inline llama_token greedy(std::span<const float> logits) {
  return static_cast<llama_token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

inline float most_apart(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float most = 0.0F;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= most)) most = std::abs(a[i] - b[i]);  // a NaN counts
  return most;
}

}  // namespace headwise_tests
