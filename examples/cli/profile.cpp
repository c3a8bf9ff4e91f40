// SPDX-License-Identifier: Apache-2.0
//
// headwise profile: recorded maps in, a blueprint out. One pass over the maps, whatever the number
// of targets; memory does not grow with the number of prompts.

#include <filesystem>
#include <iostream>
#include <memory>

#include "choice.hpp"
#include "commands.hpp"
#include "head_class.hpp"
#include "numbers.hpp"
#include "progress.hpp"

#include "headwise/io/blueprint_json.hpp"
#include "headwise/io/map_archive.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

struct profile_options {
  std::vector<fs::path> maps;
  fs::path out;
  headwise::measure_options measure;
  headwise::classify_options classify;
  std::vector<double> also;  // further targets
};

headwise::profiler<> measure(headwise::map_archive& archive, const profile_options& options) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  headwise::profiler<> work(archive.shape(), archive.rules(), options.measure);
  progress bar("profiling", archive.bytes_total() / mebibyte, "MiB of maps");
  while (const auto map = archive.next()) {
    work.add(*map);
    bar.reach(archive.bytes_done() / mebibyte);
  }
  return work;
}

std::vector<headwise::profile_source> hash_sources(const headwise::map_archive& archive) {
  progress bar("hashing", archive.files().size(), "files");
  std::vector<headwise::profile_source> sources;
  for (const fs::path& file : archive.files()) {
    sources.push_back(headwise::hash_source(file));
    bar.reach(sources.size());
  }
  return sources;
}

void print_classes(const headwise::blueprint& plan) {
  double resident = 0.0;
  for (const headwise::head_plan& head : plan.heads) resident += head.resident_fraction;
  std::cout << "target " << fixed(plan.origin.recovery_target, 2) << ": "
            << percent(resident / static_cast<double>(plan.heads.size()))
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

void run_profile(const profile_options& options) {
  headwise::map_archive archive(options.maps);
  const headwise::profiler<> work = measure(archive, options);
  const auto sources = hash_sources(archive);
  const auto write = [&](double target, const fs::path& path) {
    headwise::classify_options classify = options.classify;
    classify.recovery_target = target;
    headwise::blueprint plan = work.plan(classify, archive.fingerprint());
    plan.origin.sources = sources;
    headwise::save_blueprint(path, plan);
    return plan;
  };
  const auto plan = write(options.classify.recovery_target, options.out);
  print_classes(plan);
  std::cout << "written: " << options.out.string() << '\n';
  for (const double target : options.also) {
    const fs::path path = beside(options.out, target);
    static_cast<void>(write(target, path));
    std::cout << "written: " << path.string() << '\n';
  }
}

void add_choices(CLI::App& command, profile_options& options) {
  using headwise::group_aggregation;
  using headwise::plan_granularity;
  using headwise::recovery_criterion;
  add_choice<recovery_criterion>(
      command, "--criterion", options.classify.criterion,
      {{"mass", recovery_criterion::mass}, {"distance", recovery_criterion::distance}},
      "mass (default): kept attention >= target; distance: the paper's |A - A'| <= 1 - target");
  add_choice<group_aggregation>(command, "--aggregation", options.classify.aggregation,
                                {{"worst", group_aggregation::worst},
                                 {"mean", group_aggregation::mean},
                                 {"max", group_aggregation::best}},
                                "Which counts of the query heads of a group; default: worst");
  add_choice<plan_granularity>(
      command, "--granularity", options.classify.granularity,
      {{"head", plan_granularity::head}, {"layer", plan_granularity::layer}},
      "Class heads one by one, or a layer at a time; default: head");
  command.add_option("--windows", options.measure.ladder.windows, "Windows to try, as 16,32,64")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--length", options.measure.length,
                     "Sequence length at which rows are counted; 0: that of the first prompt");
  command.add_flag("!--no-learned", options.measure.ladder.learn_ids,
                   "Do not learn token ids for each head");
}

}  // namespace

void add_profile(CLI::App& app) {
  const auto options = std::make_shared<profile_options>();
  CLI::App* const command = app.add_subcommand(
      "profile", "Find the cheapest class for every head that keeps its attention; a blueprint.");
  command->add_option("maps", options->maps, "Recorded maps: files, or folders of them")
      ->required();
  command->add_option("--out", options->out, "The blueprint to write (JSON)")->required();
  command
      ->add_option("--target", options->classify.recovery_target,
                   "Share of attention that each head must keep")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--also", options->also,
                   "Further targets, as 0.9,0.98; written beside --out as NAME_0.9.json")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0));
  add_choices(*command, *options);
  command->footer(
      "Examples:\n"
      "  headwise profile maps --target 0.95 --out blueprint.json\n"
      "  headwise profile a.safetensors b.safetensors --windows 32,64,128 --out blueprint.json");
  command->callback([options] { run_profile(*options); });
}

}  // namespace headwise_tool
