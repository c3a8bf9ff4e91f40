// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds a token behind a text of each length. All engines live at once and take turns, a few
// tokens at a time, so that a machine that is busy for a while is so for all; the least time
// counts.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>

#include "llama_cpp/model_support.hpp"
#include "llama_cpp/random_model.hpp"
#include "llama_cpp/stock_engine.hpp"
#include "options.hpp"

namespace headwise_llama_cpp {
namespace {

using clock = std::chrono::steady_clock;

struct contestant {
  std::string name;
  std::function<void(std::span<const llama_token>)> feed;
  std::function<std::size_t()> held_bytes;
  llama_context* context;
};

class comparison {
 public:
  comparison(llama_model& model, const compare_options& options)
      : model_(model),
        options_(options),
        vocabulary_(llama_vocab_n_tokens(llama_model_get_vocab(&model))) {
    for (const bool flash : {true, false}) add_stock(flash);
    add_takeover(
        "takeover, all global",
        headwise::uniform_blueprint(shape_of(model_), headwise::make_spec(headwise::global{})));
    add_takeover("takeover, blueprint",
                 options.blueprint.empty() ? half_plan() : read_plan(model, options.blueprint));
  }

  void run() {
    std::printf("| tokens | engine | KV held MiB |");
    for (const int threads : options_.threads) std::printf(" ms, %d threads | tokens/s |", threads);
    std::printf("\n|---|---|---|");
    for (std::size_t i = 0; i < options_.threads.size(); ++i) std::printf("---|---|");
    std::printf("\n");
    for (const std::size_t length : options_.lengths) {
      for (contestant& c : contestants_) fill(c, length);
      length_ = std::max(length_, length);
      measure(length);
    }
  }

 private:
  static constexpr std::size_t turn = 4;  // tokens

  [[nodiscard]] std::size_t most_tokens() const {
    const std::size_t longest = *std::max_element(options_.lengths.begin(), options_.lengths.end());
    return longest + 2 * options_.tokens * options_.threads.size() * options_.lengths.size();
  }
  [[nodiscard]] int most_threads() const {
    return *std::max_element(options_.threads.begin(), options_.threads.end());
  }
  // Every other KV head keeps all, the others the first four tokens and a window.
  [[nodiscard]] headwise::blueprint half_plan() const {
    using namespace headwise;
    blueprint plan = uniform_blueprint(shape_of(model_), make_spec(global{}));
    plan.tokens.sink_count = 4;
    for (std::size_t i = 1; i < plan.heads.size(); i += 2) {
      plan.heads[i].policy =
          make_spec(union_of(special_tokens(token_classes::sink), local_window(options_.window)));
      plan.heads[i].name = "sinks and window";
    }
    return plan;
  }
  void add_stock(bool flash) {
    stock_options options;
    options.cells = most_tokens();
    options.flash_attention = flash;
    options.rows = GGML_TYPE_F16;
    options.threads = most_threads();
    stock_.push_back(std::make_unique<stock_engine>(model_, options));
    stock_engine* const engine = stock_.back().get();
    const headwise::model_shape shape = shape_of(model_);
    const std::size_t bytes = std::size_t{2} * sizeof(ggml_fp16_t) * shape.heads() *
                              shape.head_dim * llama_n_ctx(engine->context());
    contestants_.push_back({flash ? "stock, flash attention" : "stock, without",
                            [engine](auto ids) { engine->feed(0, ids); }, [bytes] { return bytes; },
                            engine->context()});
  }
  void add_takeover(std::string name, const headwise::blueprint& plan) {
    takeover_options options;
    options.rows = options_.rows;
    options.capacity = static_cast<headwise::token_count>(most_tokens());
    options.context.n_threads = options.context.n_threads_batch = most_threads();
    taken_.push_back(std::make_unique<takeover>(model_, plan, options));
    takeover* const engine = taken_.back().get();
    if (!engine->form_note().empty()) std::cerr << engine->form_note() << '\n';
    contestants_.push_back({std::move(name), [engine](auto ids) { engine->feed(0, ids); },
                            [engine] { return engine->stats().held_bytes; }, engine->context()});
  }
  [[nodiscard]] std::vector<llama_token> some_ids(std::size_t count) {
    std::vector<llama_token> ids(count);
    for (llama_token& id : ids) id = (next_id_ = (next_id_ * 31 + 7) % vocabulary_);
    return ids;
  }
  void fill(contestant& c, std::size_t length) {
    next_id_ = 1;
    llama_set_n_threads(c.context, most_threads(), most_threads());
    if (length > length_) c.feed(some_ids(length - length_));
  }
  void measure(std::size_t length) {
    const double never = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> best(contestants_.size(),
                                          std::vector<double>(options_.threads.size(), never));
    for (std::size_t done = 0; done < options_.tokens; done += turn)
      for (std::size_t t = 0; t < options_.threads.size(); ++t)
        for (std::size_t c = 0; c < contestants_.size(); ++c)
          best[c][t] = std::min(best[c][t], time_turn(contestants_[c], options_.threads[t]));
    length_ += (options_.tokens + turn - 1) / turn * (turn + 1) * options_.threads.size();
    for (std::size_t c = 0; c < contestants_.size(); ++c) {
      std::printf("| %zu | %s | %.1f |", length, contestants_[c].name.c_str(),
                  static_cast<double>(contestants_[c].held_bytes()) / (1U << 20U));
      for (const double ms : best[c]) std::printf(" %.2f | %.1f |", ms, 1000.0 / ms);
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  // Milliseconds a token, the least of a turn; the first token warms up.
  [[nodiscard]] double time_turn(contestant& c, int threads) {
    llama_set_n_threads(c.context, threads, threads);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i <= turn; ++i) {
      const llama_token id = some_ids(1)[0];
      const auto start = clock::now();
      c.feed({&id, 1});
      const std::chrono::duration<double, std::milli> took = clock::now() - start;
      if (i > 0) least = std::min(least, took.count());
    }
    return least;
  }

  llama_model& model_;
  compare_options options_;
  llama_token vocabulary_;
  llama_token next_id_ = 1;
  std::size_t length_ = 0;
  std::vector<std::unique_ptr<stock_engine>> stock_;
  std::vector<std::unique_ptr<takeover>> taken_;
  std::vector<contestant> contestants_;
};

}  // namespace

void run_compare(const compare_options& options) {
  const model_handle model = options.random_layers != 0 ? make_8b_like_model(options.random_layers)
                                                        : load_model(options.model);
  comparison(*model, options).run();
}

}  // namespace headwise_llama_cpp
