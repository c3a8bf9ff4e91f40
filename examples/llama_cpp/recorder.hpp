// SPDX-License-Identifier: Apache-2.0
//
// recorder: what every query head of a model attended to, prompt by prompt, into a file of maps
// that headwise profiles (io/map_writer.hpp). Any decoder whose layers have the same heads. Nothing
// is held but what a micro-batch gives. One owner thread; the model must outlive it.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "watched_context.hpp"

#include "headwise/io/map_writer.hpp"

namespace headwise_llama_cpp {

struct recorder_options {
  headwise::token_count capacity = 4096;  // tokens of the longest prompt
  std::size_t micro_batch = 256;
  headwise::token_count sinks = 4;  // the first positions that count as sinks
  headwise::element_type type = headwise::element_type::f16;
  headwise::token_count last_queries = headwise::max_length;  // of each prompt
  llama_context_params context = llama_context_default_params();
};

class recorder {
 public:
  // Throws headwise::error where the model is none that the adapter takes, or a size none that
  // llama.cpp takes.
  recorder(llama_model& model, const recorder_options& options);

  // Writes the prompts' maps; done() after each. The file appears whole or not at all. Throws
  // headwise::error on a prompt that is too long, where llama.cpp cannot run it, or where the file
  // cannot be written.
  void record(
      const std::filesystem::path& path, std::span<const std::vector<llama_token>> prompts,
      const std::function<void()>& done = [] {});

  // Model name and shape, fingerprint, token classes of the vocabulary: what the files say.
  [[nodiscard]] const headwise::map_info& info() const noexcept { return info_; }

 private:
  void run(std::span<const llama_token> prompt);
  void write(const watched_context::layer_view& probabilities);

  headwise::map_info info_;
  headwise::element_type type_;
  headwise::token_count last_queries_;
  watched_context context_;
  // While a file is written.
  headwise::map_writer* writer_ = nullptr;
  std::size_t prompt_ = 0;
};

}  // namespace headwise_llama_cpp
