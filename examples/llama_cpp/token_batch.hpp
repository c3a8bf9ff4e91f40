// SPDX-License-Identifier: Apache-2.0
//
// token_batch: a llama_batch that is freed, filled token by token, with positions that are given
// and never inferred, and the call that runs one. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <llama.h>

#include "headwise/core/config.hpp"

namespace headwise_llama_cpp {

class token_batch {
 public:
  explicit token_batch(std::size_t capacity)
      : batch_(llama_batch_init(static_cast<std::int32_t>(capacity), 0, 1)), capacity_(capacity) {}
  token_batch(const token_batch&) = delete;
  token_batch& operator=(const token_batch&) = delete;
  ~token_batch() { llama_batch_free(batch_); }

  void clear() noexcept { batch_.n_tokens = 0; }
  // At most `capacity` tokens; wants_logits: that the model says what comes next.
  void add(llama_token id, llama_pos position, llama_seq_id sequence, bool wants_logits) noexcept {
    HEADWISE_EXPECTS(size() < capacity_, "a token_batch has no more room");
    const std::int32_t i = batch_.n_tokens++;
    batch_.token[i] = id;
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = wants_logits ? 1 : 0;
  }
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(batch_.n_tokens);
  }
  [[nodiscard]] const llama_batch& get() const noexcept { return batch_; }

 private:
  llama_batch batch_;
  std::size_t capacity_;
};

// Runs a batch to its end; nullptr, or why llama.cpp did not. Throws what llama.cpp throws, which
// is whatever its containers do.
[[nodiscard]] inline const char* decode(llama_context* context, const token_batch& batch) {
  const std::int32_t result = llama_decode(context, batch.get());
  llama_synchronize(context);
  switch (result) {
    case 0:
      return nullptr;
    case 1:
      return "llama_decode found no cells for the tokens (1)";
    case 2:
      return "llama_decode was aborted (2)";
    case -1:
      return "llama_decode takes no such batch (-1)";
    case -2:
      return "llama_decode got no memory (-2)";
    case -3:
      return "llama_decode could not compute the graph (-3)";
    default:
      return "llama_decode failed in a way that llama.h does not name";
  }
}

}  // namespace headwise_llama_cpp
