// SPDX-License-Identifier: Apache-2.0
//
// The two callbacks by which the adapter takes part in a context's graphs: one that is shown the
// nodes, and one that may end the graph, which asks the one that was there before. One context's.
#pragma once

#include <llama.h>

namespace headwise_llama_cpp {

// The abort callback that somebody else gave, if any.
class other_abort {
 public:
  other_abort() = default;
  explicit other_abort(const llama_context_params& params) noexcept
      : callback_(params.abort_callback), data_(params.abort_callback_data) {}
  [[nodiscard]] bool wanted() const noexcept { return callback_ != nullptr && callback_(data_); }

 private:
  ggml_abort_callback callback_ = nullptr;
  void* data_ = nullptr;
};

// Both are called with `self`, which must outlive the context.
[[nodiscard]] inline other_abort install_callbacks(llama_context_params& params,
                                                   ggml_backend_sched_eval_callback on_node,
                                                   ggml_abort_callback on_abort,
                                                   void* self) noexcept {
  const other_abort other(params);
  params.cb_eval = on_node;
  params.abort_callback = on_abort;
  params.cb_eval_user_data = params.abort_callback_data = self;
  return other;
}

}  // namespace headwise_llama_cpp
