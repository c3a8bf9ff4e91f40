// SPDX-License-Identifier: Apache-2.0

#include "text_engine.hpp"

#include "llama_cpp/emulation.hpp"
#include "llama_cpp/stock_engine.hpp"

namespace headwise_llama_cpp {
namespace {

std::string megabytes(std::size_t bytes) {
  return std::to_string((bytes + (1U << 19U)) >> 20U) + " MiB";
}

class takeover_text final : public text_engine {
 public:
  takeover_text(llama_model& model, const run_options& run, headwise::token_count capacity)
      : engine_(model, read_plan(model, run.blueprint), options_of(run, capacity)) {}

  std::span<const float> feed(std::span<const llama_token> ids) override {
    return engine_.feed(0, ids);
  }
  void feed(std::span<const llama_token> ids, const logits_visitor& visit) override {
    engine_.feed(0, ids, visit);
  }
  [[nodiscard]] std::string describe() const override {
    const headwise::cache_stats stats = engine_.stats(0);
    std::string line =
        engine_.form() == graph_form::op_swap ? "takeover, op swap" : "takeover, overwrite";
    if (!engine_.form_note().empty()) line += " (" + engine_.form_note() + ")";
    return line + ": " + megabytes(stats.held_bytes()) + " held for " +
           std::to_string(stats.length) + " tokens, " + megabytes(stats.full_bytes) +
           " if every row were kept";
  }

 private:
  static takeover_options options_of(const run_options& run, headwise::token_count capacity) {
    takeover_options options;
    options.rows = run.rows;
    options.form = run.form;
    options.capacity = capacity;
    options.context.n_threads = options.context.n_threads_batch = run.threads;
    return options;
  }

  takeover engine_;
};

class emulated_text final : public text_engine {
 public:
  emulated_text(llama_model& model, const run_options& run, headwise::token_count capacity)
      : engine_(model, read_plan(model, run.blueprint), options_of(run, capacity)) {}

  std::span<const float> feed(std::span<const llama_token> ids) override {
    return engine_.feed(ids);
  }
  void feed(std::span<const llama_token> ids, const logits_visitor& visit) override {
    engine_.feed(ids, visit);
  }
  [[nodiscard]] std::string describe() const override {
    return "emulation: every row kept, those that the blueprint gives up hidden";
  }

 private:
  static emulation_options options_of(const run_options& run, headwise::token_count capacity) {
    emulation_options options;
    options.capacity = capacity;
    options.context.n_threads = options.context.n_threads_batch = run.threads;
    return options;
  }

  emulation engine_;
};

class stock_text final : public text_engine {
 public:
  stock_text(llama_model& model, const run_options& run, headwise::token_count capacity)
      : engine_(model, options_of(run, capacity)) {}

  std::span<const float> feed(std::span<const llama_token> ids) override {
    length_ += ids.size();
    return engine_.feed(0, ids);
  }
  void feed(std::span<const llama_token> ids, const logits_visitor& visit) override {
    for (const llama_token& id : ids) {
      const auto first = static_cast<headwise::position>(length_);
      const std::span<const float> logits = feed({&id, 1});
      visit(first, {logits.data(), 1, logits.size()});
    }
  }
  [[nodiscard]] std::string describe() const override {
    return "stock llama.cpp: a cell for each of " + std::to_string(llama_n_ctx(engine_.context())) +
           " tokens";
  }

 private:
  static stock_options options_of(const run_options& run, headwise::token_count capacity) {
    stock_options options;
    options.cells = capacity;
    options.flash_attention = run.engine == engine_kind::stock_flash;
    options.rows = GGML_TYPE_F16;
    options.threads = run.threads;
    return options;
  }

  stock_engine engine_;
  std::size_t length_ = 0;
};

}  // namespace

std::unique_ptr<text_engine> make_text_engine(llama_model& model, const run_options& options,
                                              headwise::token_count capacity) {
  switch (options.engine) {
    case engine_kind::emulation:
      return std::make_unique<emulated_text>(model, options, capacity);
    case engine_kind::stock:
    case engine_kind::stock_flash:
      return std::make_unique<stock_text>(model, options, capacity);
    case engine_kind::takeover:
      break;
  }
  return std::make_unique<takeover_text>(model, options, capacity);
}

}  // namespace headwise_llama_cpp
