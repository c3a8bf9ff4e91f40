// SPDX-License-Identifier: Apache-2.0

#include "stock_engine.hpp"

#include <algorithm>

#include "llama_cpp/model_support.hpp"

namespace headwise_llama_cpp {

stock_engine::stock_engine(llama_model& model, const stock_options& options)
    : vocabulary_(vocabulary_size(model)),
      micro_batch_(options.micro_batch),
      batch_(options.micro_batch),
      lengths_(options.sequences) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.cells);
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(options.micro_batch);
  params.n_seq_max = static_cast<std::uint32_t>(options.sequences);
  params.kv_unified = true;
  params.n_threads = params.n_threads_batch = options.threads;
  params.type_k = params.type_v = options.rows;
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  context_ = make_context(&model, params);
}

std::span<const float> stock_engine::feed(std::size_t sequence, std::span<const llama_token> ids) {
  while (!ids.empty()) {
    const auto some = ids.first(std::min(ids.size(), micro_batch_));
    ids = ids.subspan(some.size());
    for (std::size_t i = 0; i < some.size(); ++i) add(sequence, some[i], i + 1 == some.size());
    run();
  }
  return {llama_get_logits(context_.get()), vocabulary_};
}

headwise::rows<const float> stock_engine::step(std::span<const llama_token> next) {
  for (std::size_t i = 0; i < next.size(); ++i) add(i, next[i], true);
  run();
  return {llama_get_logits(context_.get()), next.size(), vocabulary_};
}

void stock_engine::add(std::size_t sequence, llama_token id, bool wants_logits) noexcept {
  batch_.add(id, lengths_[sequence]++, static_cast<llama_seq_id>(sequence), wants_logits);
}

void stock_engine::run() {
  const char* const problem = decode(context_.get(), batch_);
  batch_.clear();
  if (problem != nullptr)
    headwise::raise(headwise::error_code::unsupported, "stock llama.cpp", problem,
                    "a batch that it runs");
}

}  // namespace headwise_llama_cpp
