// SPDX-License-Identifier: Apache-2.0

#include <iostream>

#include "llama_cpp/recorder.hpp"
#include "llama_cpp/vocabulary.hpp"
#include "options.hpp"

namespace headwise_llama_cpp {
namespace {

// Pieces of equal length, each with the first token that the model wants of a text.
std::vector<std::vector<llama_token>> cut(const llama_model& model, const record_options& options) {
  const llama_vocab* const vocabulary = llama_model_get_vocab(&model);
  const bool has_first = llama_vocab_get_add_bos(vocabulary);
  const std::vector<llama_token> ids = encode(model, read_text(options.text));
  const std::size_t own = options.length - (has_first ? 1U : 0U);
  std::vector<std::vector<llama_token>> pieces;
  auto next = ids.begin() + (has_first ? 1 : 0);
  while (pieces.size() < options.prompts &&
         static_cast<std::size_t>(ids.end() - next) >= std::max<std::size_t>(own, 1)) {
    pieces.emplace_back();
    if (has_first) pieces.back().push_back(llama_vocab_bos(vocabulary));
    pieces.back().insert(pieces.back().end(), next, next + static_cast<std::ptrdiff_t>(own));
    next += static_cast<std::ptrdiff_t>(own);
  }
  if (pieces.size() < options.prompts)
    headwise::raise(
        headwise::error_code::truncated, options.text.string(),
        std::to_string(ids.size()) + " tokens",
        std::to_string(options.prompts) + " pieces of " + std::to_string(options.length));
  return pieces;
}

}  // namespace

void run_record(const record_options& options) {
  if (options.length < 2 || options.length > headwise::max_length)
    headwise::raise(headwise::error_code::out_of_range, "--length", std::to_string(options.length),
                    "from 2 to " + std::to_string(headwise::max_length));
  const model_handle model = load_model(options.model);
  recorder_options how;
  how.capacity = static_cast<headwise::token_count>(options.length);
  how.sinks = options.sinks;
  how.context.n_threads = how.context.n_threads_batch = options.threads;
  recorder maps(*model, how);
  maps.record(options.out, cut(*model, options));
  std::cout << "recorded " << options.prompts << " prompts of " << options.length << " tokens in "
            << options.out.string() << '\n';
}

}  // namespace headwise_llama_cpp
