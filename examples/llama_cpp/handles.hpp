// SPDX-License-Identifier: Apache-2.0
//
// llama.cpp's objects as owners that free them, and the two ways in which they come to be. Whatever
// llama.cpp refuses is a headwise::error. One thread at a time.
#pragma once

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include <llama.h>

#include "headwise/core/error.hpp"
#include "headwise/io/mapped_file.hpp"

namespace headwise_llama_cpp {

struct handle_deleter {
  void operator()(llama_model* model) const noexcept { llama_model_free(model); }
  void operator()(llama_context* context) const noexcept { llama_free(context); }
};
using model_handle = std::unique_ptr<llama_model, handle_deleter>;
using context_handle = std::unique_ptr<llama_context, handle_deleter>;

// llama.cpp's defaults, but every layer on the CPU, where the adapter's attention is.
[[nodiscard]] inline llama_model_params cpu_model_params() {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  return params;
}

[[nodiscard]] inline model_handle load_model(const std::filesystem::path& path,
                                             llama_model_params params = cpu_model_params()) {
  static_cast<void>(headwise::mapped_file(path));  // says what is wrong with a file that is none
  model_handle model(llama_model_load_from_file(path.string().c_str(), params));
  if (!model)
    headwise::raise(headwise::error_code::unreadable, path.string(), "what llama.cpp refuses",
                    "a GGUF file of an architecture that this llama.cpp knows");
  return model;
}

// A context of a model that writes one token after the other, from a cache of keys and values.
[[nodiscard]] inline context_handle make_context(llama_model* model,
                                                 const llama_context_params& params) {
  context_handle context(llama_init_from_model(model, params));
  if (!context)
    headwise::raise(headwise::error_code::unsupported, "llama_init_from_model",
                    std::to_string(params.n_ctx) + " cells, micro-batches of " +
                        std::to_string(params.n_ubatch) + ", " + std::to_string(params.n_seq_max) +
                        " sequences",
                    "a context that llama.cpp can make; its log says why not");
  if (llama_get_memory(context.get()) == nullptr || !llama_get_causal_attn(context.get()))
    headwise::raise(headwise::error_code::unsupported, "llama_init_from_model",
                    "no cache, or attention that is not causal",
                    "a model that writes one token after the other");
  return context;
}

// Lets llama.cpp say nothing but errors, on standard error. For the whole process.
inline void log_errors_only() {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::cerr << text;
      },
      nullptr);
}

}  // namespace headwise_llama_cpp
