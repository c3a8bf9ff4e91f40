// SPDX-License-Identifier: Apache-2.0

#include "hooked_context.hpp"

namespace headwise_llama_cpp {
namespace {

llama_context_params with_small_cache(llama_context_params params, std::size_t micro_batch,
                                      std::size_t sequences) {
  params.n_ctx = static_cast<std::uint32_t>(micro_batch);  // llama.cpp rounds it up to 256
  params.n_batch = static_cast<std::uint32_t>(micro_batch);
  params.n_ubatch = static_cast<std::uint32_t>(micro_batch);
  params.n_seq_max = static_cast<std::uint32_t>(sequences);
  params.kv_unified = true;  // a batch runs in its own order, as one stream
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  // What the cells hold is looked at by the self-check alone; with other types the attention reads
  // a copy of them, and is not known by its cache any more.
  params.type_k = params.type_v = GGML_TYPE_F16;
  params.offload_kqv = false;
  return params;
}

}  // namespace

hooked_context::hooked_context(llama_model& model, llama_context_params params,
                               std::size_t micro_batch, std::size_t sequences)
    : hook_(static_cast<std::uint32_t>(llama_model_n_layer(&model))) {
  params = with_small_cache(params, micro_batch, sequences);
  hook_.install(params);
  context_ = make_context(&model, params);
}

const char* hooked_context::run(const token_batch& batch) {
  hook_.begin(batch.size());
  const char* const problem = decode(get(), batch);
  // Where the hook ended the graph, llama.cpp knows of no reason; where llama.cpp did, layers are
  // missing.
  if (const char* const why = hook_.failure()) return why;
  if (problem != nullptr) return problem;
  return hook_.missing_work();
}

}  // namespace headwise_llama_cpp
