// SPDX-License-Identifier: Apache-2.0
//
// What a suite found, as numbers and as a JSON file that a run which broke off is resumed from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headwise_tool {

// Of one text.
struct exam_score {
  double surprise = 0.0;        // -log of the probability of what came, summed over predictions
  std::uint64_t predicted = 0;  // tokens
  std::uint64_t correct = 0;    // of them the likeliest
  friend bool operator==(const exam_score&, const exam_score&) = default;
};

struct suite_result {
  std::string plan, task, rows;
  double level = 0.0;  // share or target of the plan
  std::uint64_t length = 0;
  std::string key;              // of the plan and of the texts: what was run, and nothing else
  double kept_rows = 0.0;       // share of a full cache's rows at the end of the texts
  double resident_bytes = 0.0;  // mean over steps of what the memory resource held
  double full_bytes = 0.0;      // the same of the keys and values of a dense cache in f16
  double end_bytes = 0.0;       // share of them held at the end of the texts
  std::vector<exam_score> exams;
  friend bool operator==(const suite_result&, const suite_result&) = default;
};

struct interval {
  double low = 0.0, value = 0.0, high = 0.0;
};

[[nodiscard]] double perplexity(const suite_result& result);
// Share of the texts in which every token was predicted, and of the tokens.
[[nodiscard]] double solved(const suite_result& result);
[[nodiscard]] double accuracy(const suite_result& result);
// Perplexity over that of `full` minus 1, on the same texts, with the middle 95 % of 2,000 draws of
// as many of these texts with replacement (bootstrap; of few texts it is too narrow: with 4 it
// holds the true figure 4 times in 5, with 8 nine times in ten, with 32 fourteen in fifteen).
[[nodiscard]] interval perplexity_change(const suite_result& result, const suite_result& full);

// Throws headwise::error(malformed) on a figure that is no number: a model that gives NaN.
void require_figures(const suite_result& result);

// Throws headwise::error on a file that is no such thing; an absent file holds no results.
[[nodiscard]] std::vector<suite_result> load_results(const std::filesystem::path& path);
void save_results(const std::filesystem::path& path, const std::vector<suite_result>& results);

}  // namespace headwise_tool
