// SPDX-License-Identifier: Apache-2.0
//
// comparison: runs benchmarks that are called "question/case/variant" and prints, behind the usual
// report, one Markdown table for each question: a row for each case, a column for each variant, the
// median CPU time over repetitions, and its ratio to the baseline variant of the same case and run.
// CPU time, since other programs may have the cores for a while; of several threads the real time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "headwise/core/simd.hpp"

namespace headwise_bench {

class comparison : public benchmark::ConsoleReporter {
 public:
  explicit comparison(std::string baseline)
      : ConsoleReporter(OO_Tabular), baseline_(std::move(baseline)) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      failed_ |= run.error_occurred;
      if (run.error_occurred || run.run_type != Run::RT_Iteration) continue;
      const std::string& name = run.run_name.function_name;
      const std::size_t first = name.find('/'), last = name.rfind('/');
      // Runs may come in any order; families count up in that of registration.
      measured& of = measured_[run.family_index];
      of.question = name.substr(0, first);
      of.case_name = name.substr(first + 1, last - first - 1);
      of.variant = name.substr(last + 1);
      of.unit = benchmark::GetTimeUnitString(run.time_unit);
      of.times.push_back(run.run_name.time_type.empty() ? run.GetAdjustedCPUTime()
                                                        : run.GetAdjustedRealTime());
    }
  }
  void print_tables() const {
    for (const std::string& question : distinct(&measured::question, "")) print_table(question);
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct measured {
    std::string question, case_name, variant, unit;
    std::vector<double> times;
    [[nodiscard]] double median() const {
      std::vector<double> values = times;
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      return *middle;
    }
  };

  // The different values of a member, in order; of one question, or of all where it is empty.
  [[nodiscard]] std::vector<std::string> distinct(std::string measured::*member,
                                                  const std::string& question) const {
    std::vector<std::string> values;
    for (const auto& [family, of] : measured_)
      if ((question.empty() || of.question == question) &&
          std::find(values.begin(), values.end(), of.*member) == values.end())
        values.push_back(of.*member);
    return values;
  }
  [[nodiscard]] const measured* find(const std::string& question, const std::string& case_name,
                                     const std::string& variant) const {
    for (const auto& [family, of] : measured_)
      if (of.question == question && of.case_name == case_name && of.variant == variant) return &of;
    return nullptr;
  }

  static void print_cell(double time, const measured* base) {
    std::printf(time < 1000.0 ? " %.3g" : " %.0f", time);
    if (base != nullptr) std::printf(" (%.2f)", time / base->median());
  }
  void print_table(const std::string& question) const {
    const std::vector<std::string> variants = distinct(&measured::variant, question);
    std::printf("\n%s: median time in %s (times that of %s)\n\n| case |", question.c_str(),
                distinct(&measured::unit, question).front().c_str(), baseline_.c_str());
    for (const std::string& variant : variants) std::printf(" %s |", variant.c_str());
    std::printf("\n|---|");
    for (std::size_t i = 0; i < variants.size(); ++i) std::printf("---|");
    for (const std::string& case_name : distinct(&measured::case_name, question)) {
      std::printf("\n| %s |", case_name.c_str());
      for (const std::string& variant : variants) {
        if (const measured* const found = find(question, case_name, variant))
          print_cell(found->median(), find(question, case_name, baseline_));
        std::printf(" |");
      }
    }
    std::printf("\n");
  }

  std::string baseline_;
  std::map<std::int64_t, measured> measured_;  // by family
  bool failed_ = false;
};

// What the figures depend on beside the machine, for the file that --benchmark_out names.
inline void describe_build() {
  benchmark::AddCustomContext("compiler", HEADWISE_BENCH_COMPILER);
  benchmark::AddCustomContext("flags", HEADWISE_BENCH_FLAGS);
  benchmark::AddCustomContext("check_level", std::to_string(HEADWISE_CHECK_LEVEL));
  benchmark::AddCustomContext("vector_bytes",
                              std::to_string(static_cast<int>(headwise::widest_simd())));
}

// The main of every benchmark program. Non-zero where a checksum was wrong.
[[nodiscard]] inline int run(int argc, char** argv, const std::string& baseline) {
  describe_build();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  comparison report(baseline);
  benchmark::RunSpecifiedBenchmarks(&report);
  report.print_tables();
  return report.failed() ? 1 : 0;
}

// The two numbers that must agree, as counters of the report; further apart than the relative
// tolerance is an error of the run.
inline void compare_checksum(benchmark::State& state, double checksum, double expected,
                             double tolerance = 1e-4) {
  state.counters["checksum"] = checksum;
  state.counters["expected"] = expected;
  if (!(std::abs(checksum - expected) <= tolerance * std::abs(expected)))
    state.SkipWithError("the checksum is not what the reference computes");
}

// What a benchmark reads or writes in one iteration.
inline void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.counters["bytes/s"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1024);
}

}  // namespace headwise_bench
