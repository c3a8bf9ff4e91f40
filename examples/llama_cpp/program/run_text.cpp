// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>

#include "llama_cpp/vocabulary.hpp"
#include "options.hpp"
#include "text_engine.hpp"

namespace headwise_llama_cpp {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

// What the system counts for the process now; 0 where it does not say.
std::size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == "VmRSS:" && status >> word) return static_cast<std::size_t>(std::stoul(word));
  return 0;
}

void report(const text_engine& engine, std::size_t tokens, double seconds,
            std::size_t resident_before) {
  std::cerr << '\n'
            << engine.describe() << '\n'
            << tokens << " tokens in " << seconds << " s, " << static_cast<double>(tokens) / seconds
            << " a second\nresident set: " << resident_before << " KiB with the model loaded, "
            << resident_kilobytes() << " KiB now\n";
}

llama_token best(std::span<const float> logits) {
  return static_cast<llama_token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double log_probability(std::span<const float> logits, llama_token id) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(double{x} - top);
  return double{logits[static_cast<std::size_t>(id)]} - top - std::log(sum);
}

std::vector<llama_token> prompt_ids(const llama_model& model, const run_options& options) {
  auto ids = encode(model, options.text.empty() ? options.prompt : read_text(options.text));
  if (ids.empty())
    headwise::raise(headwise::error_code::missing, "--prompt", "no token", "some text");
  return ids;
}

}  // namespace

void run_generate(const run_options& options) {
  const model_handle model = load_model(options.model);
  const std::vector<llama_token> prompt = prompt_ids(*model, options);
  const std::size_t before = resident_kilobytes();
  const auto capacity = static_cast<headwise::token_count>(prompt.size() + options.tokens);
  const auto engine = make_text_engine(*model, options, capacity);
  const llama_vocab* const vocabulary = llama_model_get_vocab(model.get());
  std::span<const float> logits = engine->feed(prompt);
  const auto start = clock::now();
  std::size_t written = 0;
  for (; written < options.tokens; ++written) {
    const llama_token next = best(logits);
    if (llama_vocab_is_eog(vocabulary, next)) break;
    std::cout << piece_of(*model, next) << std::flush;
    logits = engine->feed({&next, 1});
  }
  std::cout << '\n';
  report(*engine, written, seconds_since(start), before);
}

void run_eval(const run_options& options) {
  const model_handle model = load_model(options.model);
  std::vector<llama_token> ids = prompt_ids(*model, options);
  ids.resize(std::min(ids.size(), options.tokens));
  if (ids.size() < 2)
    headwise::raise(headwise::error_code::truncated, "text", std::to_string(ids.size()) + " tokens",
                    "at least 2");
  const std::size_t before = resident_kilobytes();
  const auto engine =
      make_text_engine(*model, options, static_cast<headwise::token_count>(ids.size()));
  const auto start = clock::now();
  double sum = 0.0;
  engine->feed(ids, [&](headwise::position first, headwise::rows<const float> logits) {
    for (std::size_t i = 0; i < logits.count && first + i + 1 < ids.size(); ++i)
      sum += log_probability(logits[i], ids[first + i + 1]);
  });
  std::cout << "perplexity " << std::exp(-sum / static_cast<double>(ids.size() - 1)) << " over "
            << ids.size() << " tokens\n";
  report(*engine, ids.size(), seconds_since(start), before);
}

}  // namespace headwise_llama_cpp
