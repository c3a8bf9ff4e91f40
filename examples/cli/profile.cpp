// SPDX-License-Identifier: Apache-2.0

#include "profile.hpp"

#include <filesystem>
#include <iostream>

#include "blueprint_file.hpp"
#include "head_class.hpp"
#include "numbers.hpp"
#include "progress.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

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
  for (const headwise::map_file& file : archive.files()) {
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

}  // namespace

void run_profile(const profile_options& options) {
  headwise::map_archive archive(options.maps);
  const headwise::profiler<> work = measure(archive, options);
  const auto sources = hash_sources(archive);
  const auto write = [&](double target, const fs::path& path) {
    headwise::classify_options classify = options.classify;
    classify.recovery_target = target;
    headwise::blueprint plan = work.plan(classify, archive.fingerprint());
    plan.origin.sources = sources;
    write_blueprint(path, plan);
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

}  // namespace headwise_tool
