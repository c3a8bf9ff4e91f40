// SPDX-License-Identifier: Apache-2.0

#include "recorder.hpp"

#include <algorithm>
#include <string>

#include "model_support.hpp"
#include "vocabulary.hpp"

namespace headwise_llama_cpp {
namespace {

headwise::map_info info_of(llama_model& model, const recorder_options& options) {
  require_sizes("recorder_options", {options.capacity, options.micro_batch});
  require_supported(model, options.context);
  return {shape_of(model), fingerprint_of(model), vocabulary_rules(model, options.sinks)};
}

}  // namespace

recorder::recorder(llama_model& model, const recorder_options& options)
    : info_(info_of(model, options)),
      type_(options.type),
      last_queries_(options.last_queries),
      context_(model, options.context, options.capacity, options.micro_batch,
               attention_stage::probabilities,
               [this](const watched_context::layer_view& seen) { write(seen); }) {}

void recorder::record(const std::filesystem::path& path,
                      std::span<const std::vector<llama_token>> prompts,
                      const std::function<void()>& done) {
  headwise::map_writer writer(path, info_, prompts, type_, last_queries_);
  writer_ = &writer;
  for (prompt_ = 0; prompt_ < prompts.size(); ++prompt_) {
    run(prompts[prompt_]);
    done();
  }
  writer.finish();
}

void recorder::run(std::span<const llama_token> prompt) {
  context_.clear();
  while (!prompt.empty()) {
    const auto some = prompt.first(std::min(prompt.size(), context_.micro_batch()));
    prompt = prompt.subspan(some.size());
    context_.run(some, false);
  }
}

void recorder::write(const watched_context::layer_view& seen) {
  const headwise::position first = context_.length();
  const std::size_t tokens = seen.head(0).count;
  const auto cells = context_.cell_positions();
  for (std::size_t c = 0; c < first + tokens; ++c)
    if (cells[c] != c)
      headwise::raise(headwise::error_code::unsupported, "cell " + std::to_string(c),
                      "the token at position " + std::to_string(cells[c]),
                      "cells that are filled in order where a cache was empty");
  for (std::uint32_t head = 0; head < info_.shape.query_heads; ++head) {
    headwise::rows<float> weights = seen.head(head);
    weights.width = first + tokens;  // behind them is what fills up the last block of cells
    writer_->write(prompt_, seen.layer, head, first, weights);
  }
}

}  // namespace headwise_llama_cpp
