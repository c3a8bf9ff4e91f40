// SPDX-License-Identifier: Apache-2.0

#include "evaluation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "llama/sampler.hpp"
#include "prompts.hpp"
#include "surprise.hpp"

namespace headwise_tool {
namespace {

using clock = std::chrono::steady_clock;
using headwise::token_count;

// Feeds windows to caches of one plan and adds up what shows.
class plan_run {
 public:
  plan_run(engine& model, const headwise::blueprint& plan) : model_(model), plan_(plan) {}

  void feed(const token_ids& window, cache_type type) {
    measured_memory memory;
    const auto text = model_.open(plan_, {static_cast<token_count>(window.size()), step_tokens,
                                          type, evaluated_cache(memory)});
    const std::span<const std::int32_t> ids(window);
    for (std::size_t at = 0; at < ids.size(); at += step_tokens) {
      clock::duration judging{};
      const auto start = clock::now();
      text->feed(ids.subspan(at, std::min(step_tokens, ids.size() - at)),
                 [&](headwise::position first, headwise::rows<const float> logits) {
                   const auto fed = clock::now();
                   judge(first, logits, ids);
                   judging = clock::now() - fed;
                 });
      feeding_ += clock::now() - start - judging;
      resident_ += static_cast<double>(memory.held());
      payload_ += static_cast<double>(text->stats().payload_bytes);
      dense_ += static_cast<double>(text->stats().full_bytes);
      ++steps_;
    }
    peak_ = std::max(peak_, memory.peak());
    tokens_ += ids.size();
  }

  // Likeliest tokens, in order of position.
  [[nodiscard]] const token_ids& choices() const noexcept { return choices_; }
  [[nodiscard]] double dense_bytes() const noexcept { return dense_ / steps(); }
  [[nodiscard]] double perplexity() const {
    return std::exp(surprise_ / static_cast<double>(predictions_));
  }
  [[nodiscard]] plan_score score(const token_ids& reference) const {
    plan_score result;
    result.perplexity = perplexity();
    std::size_t same = 0;
    for (std::size_t i = 0; i < choices_.size(); ++i) same += choices_[i] == reference[i] ? 1U : 0U;
    result.agreement = static_cast<double>(same) / static_cast<double>(choices_.size());
    result.resident_bytes = resident_ / steps();
    result.payload_bytes = payload_ / steps();
    result.peak_bytes = peak_;
    result.tokens_per_second =
        static_cast<double>(tokens_) / std::chrono::duration<double>(feeding_).count();
    return result;
  }

 private:
  void judge(headwise::position first, headwise::rows<const float> logits,
             std::span<const std::int32_t> ids) {
    for (std::size_t i = 0; i < logits.count; ++i) {
      choices_.push_back(llama_example::greedy(logits[i]));
      if (first + i + 1 == ids.size()) continue;  // what comes next is not known
      surprise_ += surprise(logits[i], ids[first + i + 1]);
      ++predictions_;
    }
  }
  [[nodiscard]] double steps() const noexcept { return static_cast<double>(steps_); }

  engine& model_;
  const headwise::blueprint& plan_;
  token_ids choices_;
  double surprise_ = 0.0;
  std::size_t predictions_ = 0;
  double resident_ = 0.0, payload_ = 0.0, dense_ = 0.0;  // sums over steps
  std::size_t steps_ = 0;
  std::size_t tokens_ = 0;
  std::uint64_t peak_ = 0;
  clock::duration feeding_{};
};

class evaluator {
 public:
  evaluator(engine& model, const std::vector<token_ids>& windows, cache_type type,
            const evaluation_progress& report)
      : model_(model), windows_(windows), type_(type), report_(report) {}

  void run_full(evaluation& result) {
    const auto plan =
        headwise::uniform_blueprint(model_.facts().shape, headwise::make_spec(headwise::global{}));
    const plan_run run = run_plan(plan);
    reference_ = run.choices();
    result.full_bytes = run.dense_bytes();
    result.full = run.score(reference_);
  }

  [[nodiscard]] blueprint_score run(const headwise::blueprint& plan) {
    blueprint_score result;
    result.recovery_target = plan.origin.recovery_target;
    result.blueprint = run_plan(plan).score(reference_);
    const double bytes = result.blueprint.resident_bytes;
    result.window = window_for(bytes, 0);
    result.plain_window =
        run_plan(uniform_window_plan(model_.facts().shape, 0, result.window)).score(reference_);
    result.sinks = std::max<token_count>(plan.tokens.sink_count, 1);
    result.window_behind_sinks = window_for(bytes, result.sinks);
    result.sinks_and_window = run_plan(uniform_window_plan(model_.facts().shape, result.sinks,
                                                           result.window_behind_sinks))
                                  .score(reference_);
    return result;
  }

  [[nodiscard]] plan_run run_plan(const headwise::blueprint& plan) {
    plan_run run(model_, plan);
    for (const token_ids& window : windows_) {
      run.feed(window, type_);
      report_(fed_ += window.size());
    }
    return run;
  }

 private:
  [[nodiscard]] token_count window_for(double bytes, token_count sinks) const {
    const auto length = static_cast<token_count>(windows_.front().size());
    return window_that_holds(bytes, model_.facts().shape, sinks, length, type_);
  }

  engine& model_;
  const std::vector<token_ids>& windows_;
  cache_type type_;
  const evaluation_progress& report_;
  token_ids reference_;  // what the full cache chose
  std::uint64_t fed_ = 0;
};

}  // namespace

std::vector<token_ids> cut_windows(const engine& model, const evaluated_text& what) {
  const std::size_t count = std::max<std::size_t>(1, what.tokens / what.window);
  return cut_up_to(model, what.text, {count, what.window, 0, "--windows-of"});
}

double perplexity_of(engine& model, const std::vector<token_ids>& windows,
                     const headwise::blueprint& plan, cache_type type,
                     const evaluation_progress& report) {
  headwise::require_match(plan, model.facts().shape, model.facts().fingerprint);
  return evaluator(model, windows, type, report).run_plan(plan).perplexity();
}

evaluation evaluate(engine& model, const std::vector<token_ids>& windows,
                    const std::vector<headwise::blueprint>& blueprints, cache_type type,
                    const evaluation_progress& report) {
  for (const headwise::blueprint& plan : blueprints)
    headwise::require_match(plan, model.facts().shape, model.facts().fingerprint);
  evaluation result;
  result.model = model.facts().fingerprint.name;
  result.shape = model.facts().shape;
  result.cache = to_string(type);
  result.tokens_profiled = blueprints.front().origin.queries;
  result.window_tokens = windows.front().size();
  result.tokens_evaluated = windows.size() * windows.front().size();
  evaluator work(model, windows, type, report);
  work.run_full(result);
  for (const headwise::blueprint& plan : blueprints) result.scores.push_back(work.run(plan));
  return result;
}

}  // namespace headwise_tool
