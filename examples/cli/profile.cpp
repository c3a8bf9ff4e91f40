// SPDX-License-Identifier: Apache-2.0

#include "profile.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include "blueprint_file.hpp"
#include "budget.hpp"
#include "head_class.hpp"
#include "measure.hpp"
#include "numbers.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "usage_error.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

headwise::profiler<> measured(const headwise::map_archive& archive, const profile_options& options,
                              std::uint64_t length) {
  headwise::measure_options how = options.measure;
  how.length = sequence_length(length);
  if (!options.windows.empty())
    how.ladder.windows = options.windows;
  else if (!options.budget.empty())  // of any length: the ladder leaves out what is beyond its own
    how.ladder.windows = headwise::budget_windows(headwise::max_length);
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  return measure(archive, how, options.threads == 0 ? cores : options.threads);
}

std::vector<headwise::profile_source> hash_sources(const headwise::map_archive& archive) {
  progress bar("hashing", archive.files().size(), "files");
  std::vector<headwise::profile_source> sources;
  for (const headwise::map_file& file : archive.files()) {
    sources.push_back(headwise::hash_source(file));
    bar.reach(sources.size());
  }
  return sources;
}

void print_summary(const headwise::blueprint& plan) {
  double resident = 0.0;
  for (const headwise::head_plan& head : plan.heads) resident += head.resident_fraction;
  std::cout << (plan.origin.budget ? "budget " + percent(*plan.origin.budget)
                                   : "target " + fixed(plan.origin.recovery_target, 2))
            << ": " << percent(resident / static_cast<double>(plan.heads.size()))
            << " of the rows expected at " << with_commas(plan.origin.length) << " tokens\n";
  for (const class_count& c : classes_of(plan))
    std::cout << "  " << c.heads << (c.heads == 1 ? " head keeps " : " heads keep ")
              << in_words(c.what) << '\n';
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
  for (const planned_file& file : files) require_no_input("--out", file.path, options.maps);
  return files;
}

budget stated_budget(const profile_options& options) {
  const budget limit = parse_budget("--budget", options.budget);
  if (limit.length != 0 && options.length != 0 && limit.length != options.length)
    throw usage_error("--budget and --length state two lengths, " + with_commas(limit.length) +
                      " and " + with_commas(options.length));
  return limit;
}

}  // namespace

void run_profile(const profile_options& options) {
  const std::vector<planned_file> files = planned_files(options);
  budget limit;
  if (!options.budget.empty()) limit = stated_budget(options);
  const headwise::map_archive archive(options.maps);
  const headwise::profiler<> work =
      measured(archive, options, limit.length == 0 ? options.length : limit.length);
  const auto sources = hash_sources(archive);
  for (const planned_file& file : files) {
    headwise::classify_options classify = options.classify;
    classify.recovery_target = file.target;
    if (!options.budget.empty())
      classify.budget = share_of(limit, archive.shape(), work.length(), options.type);
    headwise::blueprint plan = work.plan(classify, archive.fingerprint());
    plan.origin.sources = sources;
    write_blueprint(file.path, plan);
    if (&file == &files.front()) print_summary(plan);
    std::cout << "written: " << file.path.string() << '\n';
  }
}

}  // namespace headwise_tool
