// SPDX-License-Identifier: Apache-2.0
//
// All contestants live at once and take turns, a few tokens at a time, so that a machine that is
// busy for a while is so for all; the least time counts.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "commands.hpp"

namespace headwise_llama_cpp {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t turn = 4;  // tokens

std::size_t turns(std::size_t tokens) {
  return (tokens + turn - 1) / turn;
}

// That a text grows by at each length: one more in each turn warms up.
std::size_t timed_tokens(const contest_options& options, std::size_t tokens) {
  return turns(tokens) * (turn + 1) * options.threads.size();
}

// What is timed at a length must leave the text no longer than the next, and none too long.
void require_lengths(const contest_options& options, std::size_t tokens) {
  const std::size_t timed = timed_tokens(options, tokens);
  for (std::size_t i = 1; i < options.lengths.size(); ++i)
    if (options.lengths[i] < options.lengths[i - 1] + timed)
      headwise::raise(
          headwise::error_code::invalid_argument, "--lengths",
          std::to_string(options.lengths[i]) + " after " + std::to_string(options.lengths[i - 1]),
          "ascending lengths, at least the " + std::to_string(timed) +
              " tokens apart that are fed at each");
  const std::size_t longest = options.lengths.back() + timed;
  if (longest > longest_text)
    headwise::raise(headwise::error_code::out_of_range, "--lengths and --tokens",
                    "a text of " + std::to_string(longest) + " tokens in the end",
                    "at most " + std::to_string(longest_text));
}

class comparison {
 public:
  comparison(llama_model& model, const contest_options& options, std::size_t tokens)
      : model_(model), options_(options), tokens_(tokens) {
    for (const contestant_kind kind : contestant_kinds)
      contestants_.push_back(make_contestant(kind, model, options, most_tokens(), most_threads()));
  }

  void run() {
    std::printf("| tokens | engine | KV MiB |");
    for (const int threads : options_.threads)
      std::printf(" ms, %d thread%s | tokens/s |", threads, threads == 1 ? "" : "s");
    std::printf("\n|---|---|---|");
    for (std::size_t i = 0; i < options_.threads.size(); ++i) std::printf("---|---|");
    std::printf("\n");
    for (const std::size_t length : options_.lengths) {
      for (contestant& c : contestants_) fill(c, length);
      length_ = length;
      measure();
      length_ += timed_tokens(options_, tokens_);
    }
  }

 private:
  [[nodiscard]] std::size_t most_tokens() const {
    return options_.lengths.back() + timed_tokens(options_, tokens_);
  }
  [[nodiscard]] int most_threads() const {
    return *std::max_element(options_.threads.begin(), options_.threads.end());
  }
  void fill(contestant& c, std::size_t length) const {
    llama_set_n_threads(c.context, most_threads(), most_threads());
    if (length > length_) c.feed(id_source(model_).next(length - length_));  // lengths ascend
  }
  void measure() {
    const double never = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> best(contestants_.size(),
                                          std::vector<double>(options_.threads.size(), never));
    for (std::size_t i = 0; i < turns(tokens_); ++i)
      for (std::size_t t = 0; t < options_.threads.size(); ++t)
        for (std::size_t c = 0; c < contestants_.size(); ++c)
          best[c][t] = std::min(best[c][t], time_turn(contestants_[c], options_.threads[t]));
    for (std::size_t c = 0; c < contestants_.size(); ++c) {
      std::printf("| %zu | %s | %.1f |", length_, contestants_[c].name.c_str(),
                  static_cast<double>(contestants_[c].held_bytes()) / (1U << 20U));
      for (const double ms : best[c]) std::printf(" %.2f | %.1f |", ms, 1000.0 / ms);
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  // Milliseconds a token, the least of a turn; the first token warms up.
  [[nodiscard]] double time_turn(contestant& c, int threads) const {
    llama_set_n_threads(c.context, threads, threads);
    id_source ids(model_);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i <= turn; ++i) {
      const llama_token id = ids.next();
      const auto start = clock::now();
      c.feed({&id, 1});
      const std::chrono::duration<double, std::milli> took = clock::now() - start;
      if (i > 0) least = std::min(least, took.count());
    }
    return least;
  }

  llama_model& model_;
  const contest_options& options_;
  std::size_t tokens_;
  std::size_t length_ = 0;
  std::vector<contestant> contestants_;
};

}  // namespace

void run_compare(const contest_options& options, std::size_t tokens) {
  require_lengths(options, tokens);
  const model_handle model = load_model(options);
  comparison(*model, options, tokens).run();
}

}  // namespace headwise_llama_cpp
