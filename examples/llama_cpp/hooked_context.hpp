// SPDX-License-Identifier: Apache-2.0
//
// hooked_context: a llama_context whose graphs a graph_hook works on, with cells for one
// micro-batch and no more. One owner thread.
#pragma once

#include <cstddef>

#include "graph_hook.hpp"
#include "handles.hpp"
#include "token_batch.hpp"

namespace headwise_llama_cpp {

class hooked_context {
 public:
  // params: threads, rotation and the like; cells, batches and what the hook relies on are set
  // here. micro_batch: the most tokens of a run. Throws headwise::error where llama.cpp refuses.
  hooked_context(llama_model& model, llama_context_params params, std::size_t micro_batch,
                 std::size_t sequences);

  [[nodiscard]] graph_hook& hook() noexcept { return hook_; }
  [[nodiscard]] const graph_hook& hook() const noexcept { return hook_; }
  [[nodiscard]] llama_context* get() const noexcept { return context_.get(); }

  // Runs the batch; nullptr: done, else what went wrong, a literal. The cells stay as llama_decode
  // leaves them. Throws what llama.cpp throws.
  [[nodiscard]] const char* run(const token_batch& batch);
  // Positions of later batches go on where the texts are, whatever the cells held.
  void empty_cells() noexcept { llama_memory_clear(llama_get_memory(get()), false); }
  // Of the batch that ran, [outputs, vocabulary], in its order.
  [[nodiscard]] const float* logits() const noexcept { return llama_get_logits(get()); }

 private:
  graph_hook hook_;  // outlives the context
  context_handle context_;
};

}  // namespace headwise_llama_cpp
