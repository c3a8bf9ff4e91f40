// SPDX-License-Identifier: Apache-2.0
//
// comparison: runs benchmarks that are called "question/case/variant" and prints, behind the usual
// report, one Markdown table for each question: a row for each case, a column for each variant, the
// median CPU time over repetitions, and its ratio to the baseline variant of the same case and run.
// CPU time, since other programs may have the cores for a while.
#pragma once

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

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
      question& asked = of(questions_, name.substr(0, first));
      asked.unit = benchmark::GetTimeUnitString(run.time_unit);
      of(of(asked.cases, name.substr(first + 1, last - first - 1)), name.substr(last + 1))
          .push_back(run.GetAdjustedCPUTime());
    }
  }
  void print_tables() const {
    for (const auto& [name, asked] : questions_) print_table(name, asked);
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  // Small maps that keep the order of insertion.
  template <class T>
  using ordered = std::vector<std::pair<std::string, T>>;
  using samples = std::vector<double>;
  struct question {
    std::string unit;
    ordered<ordered<samples>> cases;
  };

  template <class T>
  [[nodiscard]] static T& of(ordered<T>& map, const std::string& key) {
    for (auto& [name, value] : map)
      if (name == key) return value;
    return map.emplace_back(key, T{}).second;
  }
  template <class T>
  [[nodiscard]] static const T* find(const ordered<T>& map, const std::string& key) {
    for (const auto& [name, value] : map)
      if (name == key) return &value;
    return nullptr;
  }
  [[nodiscard]] static double median(samples values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  static void print_cell(double time, double base) {
    std::printf(time < 1000.0 ? " %.3g" : " %.0f", time);
    if (base > 0.0) std::printf(" (%.2f)", time / base);
    std::printf(" |");
  }
  void print_table(const std::string& name, const question& asked) const {
    std::vector<std::string> variants;
    for (const auto& [case_name, measured] : asked.cases)
      for (const auto& [variant, times] : measured)
        if (std::find(variants.begin(), variants.end(), variant) == variants.end())
          variants.push_back(variant);
    std::printf("\n%s: median CPU time in %s (times that of %s)\n\n| case |", name.c_str(),
                asked.unit.c_str(), baseline_.c_str());
    for (const std::string& variant : variants) std::printf(" %s |", variant.c_str());
    std::printf("\n|---|");
    for (std::size_t i = 0; i < variants.size(); ++i) std::printf("---|");
    for (const auto& [case_name, measured] : asked.cases) {
      std::printf("\n| %s |", case_name.c_str());
      const samples* const base = find(measured, baseline_);
      for (const std::string& variant : variants) {
        const samples* const times = find(measured, variant);
        if (times == nullptr)
          std::printf(" |");
        else
          print_cell(median(*times), base == nullptr ? 0.0 : median(*base));
      }
    }
    std::printf("\n");
  }

  std::string baseline_;
  ordered<question> questions_;
  bool failed_ = false;
};

// The main of every benchmark program. Non-zero where a checksum was wrong.
[[nodiscard]] inline int run(int argc, char** argv, const std::string& baseline) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  comparison report(baseline);
  benchmark::RunSpecifiedBenchmarks(&report);
  report.print_tables();
  return report.failed() ? 1 : 0;
}

// The two numbers that must agree, as counters of the report; more than a relative 1e-4 apart is an
// error of the run.
inline void compare_checksum(benchmark::State& state, double checksum, double expected) {
  state.counters["checksum"] = checksum;
  state.counters["expected"] = expected;
  if (std::abs(checksum - expected) > 1e-4 * std::abs(expected))
    state.SkipWithError("the checksum is not what the reference computes");
}

// What a benchmark reads or writes in one iteration.
inline void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.counters["bytes/s"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1024);
}

}  // namespace headwise_bench
