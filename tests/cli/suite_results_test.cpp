// SPDX-License-Identifier: Apache-2.0
//
// The figures of a suite: what they say, and that only figures come out of a file.

#include "suite_results.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headwise/core/error.hpp"
#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise_tool::exam_score;
using headwise_tool::interval;
using headwise_tool::save_results;
using headwise_tool::suite_result;

// Texts of 10 tokens with so much surprise a token.
suite_result of_texts(const std::vector<double>& surprises) {
  suite_result result;
  result.plan = "ours";
  result.task = "prose";
  result.rows = "f16";
  result.level = 0.5;
  result.length = 11;
  result.key = "k";
  result.kept_rows = 0.25;
  result.resident_bytes = 300.0;
  result.full_bytes = 400.0;
  result.end_bytes = 0.75;
  for (const double surprise : surprises) result.exams.push_back({10.0 * surprise, 10, 4});
  return result;
}

TEST(SuiteResults, PerplexityAndAccuracyCountTokens) {
  suite_result result = of_texts({1.0, 2.0});
  result.exams.push_back({60.0, 20, 20});
  EXPECT_DOUBLE_EQ(perplexity(result), std::exp(90.0 / 40.0));
  EXPECT_DOUBLE_EQ(accuracy(result), 28.0 / 40.0);
  EXPECT_DOUBLE_EQ(solved(result), 1.0 / 3.0);
}

TEST(SuiteResults, ChangeIsTextByText) {
  const suite_result full = of_texts({1.0, 5.0, 3.0});
  // The texts differ, the change does not: nothing is left to chance.
  const interval same = perplexity_change(of_texts({1.5, 5.5, 3.5}), full);
  for (const double end : {same.low, same.value, same.high})
    EXPECT_NEAR(end, std::exp(0.5) - 1.0, 1e-12);
  // Of two texts more than 2.5 % of the draws take one of them twice: both ends are known.
  const interval two = perplexity_change(of_texts({1.0, 5.4}), of_texts({1.0, 5.0}));
  EXPECT_NEAR(two.low, 0.0, 1e-12);
  EXPECT_NEAR(two.value, std::exp(0.2) - 1.0, 1e-12);
  EXPECT_NEAR(two.high, std::exp(0.4) - 1.0, 1e-12);
}

// Of 16 texts half differ: a draw holds k of them as a coin thrown 16 times falls on its head, 4 to
// 12 times in 97.9 % of all throws and 5 to 11 times in 92.3 %.
TEST(SuiteResults, BracketsHoldTheMiddleOfTheDraws) {
  std::vector<double> more(16, 1.0);
  for (std::size_t i = 0; i < 8; ++i) more[2 * i] = 2.6;
  const interval change = perplexity_change(of_texts(more), of_texts(std::vector<double>(16, 1.0)));
  EXPECT_NEAR(std::log1p(change.low), 0.1 * 4, 1e-9);
  EXPECT_NEAR(std::log1p(change.value), 0.1 * 8, 1e-9);
  EXPECT_NEAR(std::log1p(change.high), 0.1 * 12, 1e-9);
}

TEST(SuiteResults, FiguresMustBeNumbers) {
  suite_result result = of_texts({1.0, 2.0});
  EXPECT_NO_THROW(require_figures(result));
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    result.exams[1].surprise = bad;
    try {
      require_figures(result);
      ADD_FAILURE() << bad;
    } catch (const headwise::error& problem) {
      const std::string text = problem.what();
      EXPECT_NE(text.find("plan 'ours', task 'prose', text 1"), std::string::npos) << text;
    }
  }
}

TEST(SuiteResults, AFileGivesBackWhatItWasGiven) {
  const temporary_folder folder;
  const auto path = folder.path() / "results.json";
  EXPECT_TRUE(headwise_tool::load_results(path).empty());
  const std::vector<suite_result> results{of_texts({1.0, 2.5}), of_texts({0.0})};
  save_results(path, results);
  EXPECT_EQ(headwise_tool::load_results(path), results);
}

TEST(SuiteResults, AFileWithOtherThingsIsRefused) {
  const temporary_folder folder;
  const auto path = folder.path() / "results.json";
  save_results(path, {of_texts({1.0, 2.5})});
  const auto whole = nlohmann::json::parse(read_file(path.string()));
  const auto refuse = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json broken = whole;
    broken[nlohmann::json::json_pointer(pointer)] = value;
    folder.write("results.json", broken.dump());
    try {
      static_cast<void>(headwise_tool::load_results(path));
      ADD_FAILURE() << pointer << " " << value;
    } catch (const headwise::error& problem) {
      EXPECT_NE(std::string(problem.what()).find("/results/0"), std::string::npos)
          << problem.what();
    }
  };
  refuse("/results/0/exams", nlohmann::json::array());
  refuse("/results/0/exams/1/0", nullptr);
  refuse("/results/0/exams/1/0", -1.0);
  refuse("/results/0/exams/1/1", 0);
  refuse("/results/0/exams/1/1", std::uint64_t{1} << 40);
  refuse("/results/0/exams/1/2", 11);  // more right than there were
  refuse("/results/0/exams/1", {1.0, 10});
  refuse("/results/0/full_bytes", 0);
  refuse("/results/0/level", 1.5);
  refuse("/results/0/length", 0);
  refuse("/results/0/more", 0);
}

}  // namespace
}  // namespace headwise_tests
