// SPDX-License-Identifier: Apache-2.0

#include "profile.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "blueprint_file.hpp"
#include "budget.hpp"
#include "head_class.hpp"
#include "loss_limit.hpp"
#include "measure.hpp"
#include "numbers.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "usage_error.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/io/mapped_file.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

headwise::profiler<> measured(const headwise::map_archive& archive, const profile_options& options,
                              std::uint64_t length) {
  headwise::measure_options how = options.measure;
  how.length = sequence_length(length);
  const bool within_budget = !options.budget.empty() || options.max_loss;
  if (!options.windows.empty())
    how.ladder.windows = options.windows;
  else if (within_budget)  // of any length: the ladder leaves out what is beyond its own
    how.ladder.windows = headwise::budget_windows(headwise::max_length);
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  return measure(archive, how, options.threads == 0 ? cores : options.threads);
}

// The files that the blueprint is made from. Called before the text is read.
std::vector<headwise::map_file> source_files(const profile_options& options,
                                             const headwise::map_archive& archive) {
  std::vector<headwise::map_file> files = archive.files();
  const fs::path& text = options.text.text;
  if (options.max_loss) files.push_back({text, headwise::mapped_file(text).version()});
  return files;
}

std::vector<headwise::profile_source> hash_sources(std::span<const headwise::map_file> files) {
  progress bar("hashing", files.size(), "files");
  std::vector<headwise::profile_source> sources;
  for (const headwise::map_file& file : files) {
    sources.push_back(headwise::hash_source(file));
    bar.reach(sources.size());
  }
  return sources;
}

double rows_of(const headwise::blueprint& plan) {
  double resident = 0.0;
  for (const headwise::head_plan& head : plan.heads) resident += head.resident_fraction;
  return resident / static_cast<double>(plan.heads.size());
}

void print_summary(const headwise::blueprint& plan) {
  std::cout << (plan.origin.budget ? "budget " + percent(*plan.origin.budget)
                                   : "target " + fixed(plan.origin.recovery_target, 2))
            << ": " << percent(rows_of(plan)) << " of the rows expected at "
            << counted(plan.origin.length, "token") << '\n';
  for (const class_count& c : classes_of(plan))
    std::cout << "  " << c.heads << (c.heads == 1 ? " head keeps " : " heads keep ")
              << in_words(c.what) << '\n';
}

// The most that heavy hitters recover of a head; nullopt where none were tried, or the head could
// do with less than every token.
std::optional<double> best_of_hitters(const headwise::head_plan& head,
                                      std::span<const headwise::candidate> candidates,
                                      double required) {
  std::optional<double> best;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const head_class tried = class_of(candidates[c].policy);
    const double recovery = head.candidates[c].recovery;
    if (tried.kind != head_kind::global && recovery >= required) return std::nullopt;
    if (tried.frequent) best = std::max(best.value_or(0.0), recovery);
  }
  return best;
}

// Where they do not suffice a head keeps everything, so with fewer heavy hitters a cache may grow.
void print_unserved(const headwise::blueprint& plan,
                    std::span<const headwise::candidate> candidates, double required) {
  std::size_t heads = 0;
  double sum = 0.0;
  for (const headwise::head_plan& head : plan.heads)
    if (const std::optional<double> best = best_of_hitters(head, candidates, required)) {
      sum += *best;
      ++heads;
    }
  if (heads == 0) return;
  std::cout << "  " << heads << (heads == 1 ? " head keeps" : " heads keep")
            << " every token although heavy hitters were tried: they recover at best "
            << fixed(sum / static_cast<double>(heads), 3) << " on average, and "
            << fixed(required, 3)
            << " is asked; try larger pools of them, a lower --target, or --budget\n";
}

// "b.json" and 0.9: "b_0.9.json".
fs::path beside(const fs::path& out, double target) {
  std::string digits = fixed(target, 4);
  digits.erase(digits.find_last_not_of('0') + 1);
  return out.parent_path() / (out.stem().string() + "_" + digits + out.extension().string());
}

struct planned_file {
  fs::path path;
  double target = 0.0;
};

// The main one first. All are checked before anything is read or written.
std::vector<planned_file> planned_files(const profile_options& options) {
  const double main = options.classify.recovery_target;
  require_share("--target", main);
  std::vector<planned_file> files{{options.out, main}};
  for (const double target : options.also) {
    require_share("--also", target);
    files.push_back({beside(options.out, target), target});
  }
  std::vector<fs::path> inputs = options.maps;
  inputs.insert(inputs.end(), {options.text.model, options.text.text});
  for (const planned_file& file : files) require_output("--out", file.path, inputs);
  return files;
}

budget stated_budget(const profile_options& options) {
  const budget limit = parse_budget("--budget", options.budget);
  if (limit.length != 0 && options.length != 0 && limit.length != options.length)
    throw usage_error("--budget and --length state two lengths, " + with_commas(limit.length) +
                      " and " + with_commas(options.length));
  return limit;
}

// Loads the model, which the maps must be of, before they are measured.
std::optional<loss_limit> stated_loss_limit(const profile_options& options,
                                            const headwise::map_archive& archive) {
  if (!options.max_loss) return std::nullopt;
  evaluated_text text = options.text;
  if (text.engine.kind == engine_kind::llama_cpp) text.engine.threads = options.threads;
  std::optional<loss_limit> limit(std::in_place, text, options.type, *options.max_loss);
  headwise::blueprint of_maps =
      headwise::uniform_blueprint(archive.shape(), headwise::make_spec(headwise::global{}));
  of_maps.model = archive.fingerprint();
  require_match(of_maps, options.maps.front(), limit->model(), text.model);
  return limit;
}

// Of what is tried: Where bisection begins, since no plan of these candidates holds less.
unsigned lowest_percent(const headwise::profiler<>& work, headwise::classify_options how) {
  constexpr unsigned low = 5, all = 100;
  how.budget.reset();
  const auto rounded_up = static_cast<unsigned>(100.0 * rows_of(work.plan(how))) + 1;
  return std::clamp(rounded_up, low, all);
}

void print_loss(const plan_within& found, const loss_limit& limit, const evaluated_text& text) {
  std::cout << "  perplexity " << fixed(found.perplexity, 3) << ", "
            << change(found.perplexity, found.full_perplexity, 2)
            << " against the full cache, measured on " << counted(limit.tokens(), "token") << " of "
            << text.text.filename().string() << '\n';
}

}  // namespace

void run_profile(const profile_options& options) {
  const std::vector<planned_file> files = planned_files(options);
  budget limit;
  if (!options.budget.empty()) limit = stated_budget(options);
  const headwise::map_archive archive(options.maps);
  const std::vector<headwise::map_file> read = source_files(options, archive);
  const std::optional<loss_limit> loss = stated_loss_limit(options, archive);
  const headwise::profiler<> work =
      measured(archive, options, limit.length == 0 ? options.length : limit.length);
  headwise::classify_options classify = options.classify;
  if (!options.budget.empty())
    classify.budget = share_of(limit, archive.shape(), work.length(), options.type);
  const auto plan_at = [&](double share) {
    classify.budget = share;
    return work.plan(classify, archive.fingerprint());
  };
  std::optional<plan_within> found;
  if (loss) found = loss->smallest(lowest_percent(work, classify), plan_at);
  const auto sources = hash_sources(read);
  for (const planned_file& file : files) {
    classify.recovery_target = file.target;
    headwise::blueprint plan = found ? found->plan : work.plan(classify, archive.fingerprint());
    plan.origin.sources = sources;
    write_blueprint(file.path, plan);
    if (&file == &files.front()) {
      print_summary(plan);
      print_unserved(plan, work.candidates(), headwise::required_recovery(classify));
    }
    if (found) print_loss(*found, *loss, options.text);
    std::cout << "written: " << file.path.string() << '\n';
  }
}

}  // namespace headwise_tool
