// SPDX-License-Identifier: Apache-2.0

#include "suite_run.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "held_bytes.hpp"
#include "llama/sampler.hpp"
#include "numbers.hpp"
#include "suite_plans.hpp"
#include "surprise.hpp"

#include "headwise/io/blueprint_json.hpp"
#include "headwise/io/mapped_file.hpp"
#include "headwise/io/sha256.hpp"
#include "headwise/version.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;
using headwise::blueprint;
using headwise::token_count;

// What one text showed.
struct exam_run {
  exam_score score;
  double resident = 0.0, dense_bytes = 0.0, steps = 0.0;  // sums over steps
  double kept_rows = 0.0, end_bytes = 0.0;  // at the end: rows and bytes of a full one
};

exam_run take(engine& model, const blueprint& plan, const exam& asked, cache_type type) {
  measured_memory memory;
  const auto dense_row =
      static_cast<double>(row_bytes(cache_type::f16, model.facts().shape.head_dim));
  const auto text = model.open(plan, {static_cast<token_count>(asked.ids.size()), step_tokens, type,
                                      evaluated_cache(memory)});
  exam_run run;
  const auto judge = [&](headwise::position first, headwise::rows<const float> logits) {
    for (std::size_t i = 0; i < logits.count && first + i + 1 < asked.ids.size(); ++i) {
      const std::int32_t next = asked.ids[first + i + 1];
      run.score.surprise += surprise(logits[i], next);
      run.score.correct += llama_example::greedy(logits[i]) == next ? 1U : 0U;
      ++run.score.predicted;
    }
  };
  const std::span<const std::int32_t> ids(asked.ids);
  const std::size_t unasked = asked.first_answer - 1;  // whose next token is given
  for (std::size_t at = 0; at < ids.size();) {
    const std::size_t end = at < unasked ? unasked : ids.size();
    const auto some = ids.subspan(at, std::min(step_tokens, end - at));
    if (at < unasked)
      static_cast<void>(text->feed(some));
    else
      text->feed(some, judge);
    at += some.size();
    run.resident += static_cast<double>(memory.held());
    run.dense_bytes += dense_row * static_cast<double>(text->stats().full_rows);
    run.steps += 1.0;
  }
  const headwise::cache_stats stats = text->stats();
  const auto full_rows = static_cast<double>(stats.full_rows);
  run.kept_rows = static_cast<double>(stats.resident_rows) / full_rows;
  run.end_bytes = static_cast<double>(memory.held()) / (dense_row * full_rows);
  return run;
}

// The texts one after the other, or on all cores where the engine can.
std::vector<exam_run> take_all(engine& model, const blueprint& plan, const std::vector<exam>& exams,
                               cache_type type) {
  std::vector<exam_run> runs(exams.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < exams.size(); i = next++)
        runs[i] = take(model, plan, exams[i], type);
    } catch (...) {
      next = exams.size();  // nobody goes on
      throw;
    }
  };
  const std::size_t cores =
      model.runs_texts_at_once() ? std::max(1U, std::thread::hardware_concurrency()) : 1;
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < std::min(cores, exams.size()); ++i)
    others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();
  return runs;
}

// To be counted up where the same plan and texts are to give other figures.
constexpr int measurement = 1;

// What runs the texts, so that figures of another one are not taken for its own.
std::string runner_of(const engine_choice& choice, const fs::path& model) {
  const headwise::mapped_file file(model);
  headwise::sha256 hash;
  hash.add(file.bytes());
  return std::string(HEADWISE_VERSION_STRING) + " " + std::to_string(measurement) + " " +
         std::to_string(static_cast<int>(choice.kind)) + " " + hash.hex();
}

std::string key_of(const blueprint& plan, const std::vector<exam>& exams, cache_type type,
                   const std::string& runner) {
  blueprint bare = plan;
  bare.origin = {};
  for (headwise::head_plan& head : bare.heads) {
    headwise::head_plan kept;
    kept.name = head.name;
    kept.policy = head.policy;
    head = std::move(kept);
  }
  std::ostringstream text;
  headwise::write_blueprint(text, bare);
  headwise::sha256 hash;
  const auto add = [&](const auto& items) { hash.add(std::as_bytes(std::span(items))); };
  add(text.str());
  add(to_string(type) + runner);
  for (const exam& asked : exams) {
    add(asked.ids);
    add(std::vector<std::uint64_t>{asked.ids.size(), asked.first_answer});
  }
  return hash.hex();
}

class suite_runner {
 public:
  suite_runner(const suite& what, const fs::path& file, const engine_choice& choice)
      : suite_(what),
        file_(file),
        known_(load_results(file)),
        model_(load_engine(choice, what.model)),
        runner_(runner_of(choice, what.model)) {}

  [[nodiscard]] suite_outcome run() {
    // All texts first: one that is too short shows before hours of work.
    std::vector<std::vector<std::vector<exam>>> texts(suite_.lengths.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
      for (const task_options& task : suite_.tasks)
        texts[i].push_back(make_exams(*model_, task, suite_.lengths[i]));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::size_t length = suite_.lengths[i];
      const suite_plans plans(model_->facts(), suite_, static_cast<token_count>(length));
      for (const plan_family& family : suite_.plans)
        for (const double level : family.levels) {
          std::optional<blueprint> plan = plans.make(family, level);
          if (!plan) {
            std::cerr << family.name << " at " << percent(level, 0) << ", " << with_commas(length)
                      << " tokens: even its smallest plan holds more\n";
            continue;
          }
          outcome_.plans.push_back(
              {family.name, level, static_cast<token_count>(length), std::move(*plan)});
          run_plan(outcome_.plans.back(), texts[i]);
        }
    }
    return std::move(outcome_);
  }

 private:
  void run_plan(const suite_plan& plan, const std::vector<std::vector<exam>>& exams) {
    for (const cache_type type : suite_.row_types)
      for (std::size_t task = 0; task < exams.size(); ++task)
        run_task(plan, type, suite_.tasks[task].name, exams[task]);
  }

  void run_task(const suite_plan& plan, cache_type type, const std::string& task,
                const std::vector<exam>& exams) {
    suite_result result;
    result.plan = plan.name;
    result.level = plan.level;
    result.task = task;
    result.length = plan.length;
    result.rows = to_string(type);
    result.key = key_of(plan.plan, exams, type, runner_);
    const auto same = [&](const suite_result& r) {
      return r.key == result.key && r.exams.size() == exams.size();
    };
    const auto found = std::find_if(known_.begin(), known_.end(), same);
    const bool known = found != known_.end();
    if (known) {
      copy_measured(*found, result);
    } else {
      measure(plan.plan, type, exams, result);
      known_.push_back(result);
    }
    outcome_.results.push_back(result);
    save_results(file_, with_known());
    report(result, known);
  }
  static void copy_measured(const suite_result& from, suite_result& to) {
    to.kept_rows = from.kept_rows;
    to.resident_bytes = from.resident_bytes;
    to.full_bytes = from.full_bytes;
    to.end_bytes = from.end_bytes;
    to.exams = from.exams;
  }
  void measure(const blueprint& plan, cache_type type, const std::vector<exam>& exams,
               suite_result& result) {
    double steps = 0.0;
    for (const exam_run& run : take_all(*model_, plan, exams, type)) {
      result.exams.push_back(run.score);
      result.kept_rows += run.kept_rows / static_cast<double>(exams.size());
      result.resident_bytes += run.resident;
      result.full_bytes += run.dense_bytes;
      result.end_bytes += run.end_bytes / static_cast<double>(exams.size());
      steps += run.steps;
    }
    result.resident_bytes /= steps;
    result.full_bytes /= steps;
    require_figures(result);
  }
  // What was run before stays in the file, but for what goes by the same name as something new.
  [[nodiscard]] std::vector<suite_result> with_known() const {
    const auto name = [](const suite_result& r) {
      return std::tie(r.plan, r.task, r.rows, r.level, r.length);
    };
    std::vector<suite_result> all = outcome_.results;
    for (const suite_result& known : known_)
      if (std::none_of(all.begin(), all.end(),
                       [&](const suite_result& r) { return name(r) == name(known); }))
        all.push_back(known);
    return all;
  }
  void report(const suite_result& result, bool known) {
    std::cerr << ++done_ << " of at most " << total() << ": " << result.plan << " "
              << fixed(result.level, 3) << ", " << result.task << ", " << with_commas(result.length)
              << " tokens, " << result.rows << ": " << percent(result.kept_rows)
              << " of the rows, perplexity " << fixed(perplexity(result), 3) << ", "
              << percent(accuracy(result)) << " of the tokens" << (known ? " (known)" : "") << '\n';
  }

  [[nodiscard]] std::size_t total() const {
    std::size_t levels = 0;
    for (const plan_family& family : suite_.plans) levels += family.levels.size();
    return levels * suite_.lengths.size() * suite_.row_types.size() * suite_.tasks.size();
  }

  const suite& suite_;
  fs::path file_;
  std::vector<suite_result> known_;
  std::unique_ptr<engine> model_;
  std::string runner_;
  suite_outcome outcome_;
  std::size_t done_ = 0;
};

}  // namespace

suite_outcome run_suite(const suite& what, const fs::path& results, const engine_choice& choice) {
  return suite_runner(what, results, choice).run();
}

}  // namespace headwise_tool
