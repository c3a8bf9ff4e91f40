// SPDX-License-Identifier: Apache-2.0
//
// The picture of a suite: that every line is told from the others, and every point is where it
// belongs or marked as being elsewhere.

#include "suite_chart.hpp"

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "tool_run.hpp"

namespace headwise_tests {
namespace {

using headwise_tool::chart_point;
using headwise_tool::draw;
using headwise_tool::suite_chart;

// The first group of each match.
std::vector<std::string> all_of(const std::string& text, const char* pattern) {
  const std::regex wanted(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), wanted), end; i != end; ++i)
    found.push_back((*i)[1].str());
  return found;
}
double number_in(const std::string& text, const char* pattern) {
  const std::vector<std::string> found = all_of(text, pattern);
  EXPECT_FALSE(found.empty()) << pattern;
  return found.empty() ? std::nan("") : std::stod(found.front());
}

suite_chart one_line(const std::vector<double>& values) {
  suite_chart chart;
  chart.series.push_back({"line", {}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double kept = static_cast<double>(i + 1) / static_cast<double>(values.size());
    chart.series.back().points.push_back({kept, values[i], "p" + std::to_string(i)});
  }
  return chart;
}
// Where point number i stands, from the top.
double height_of(const std::string& svg, int i) {
  return number_in(svg, ("<title>p" + std::to_string(i) +
                         "\\n[^<]*</title>\\n<rect x=\"[^\"]*\" "
                         "y=\"([^\"]*)\"")
                            .c_str()) +
         4.0;
}
bool is_beyond(const std::string& svg, int i) {
  return std::regex_search(svg,
                           std::regex("<title>p" + std::to_string(i) + "\\n[^<]*</title>\\n<path"));
}

TEST(suite_chart, tells_forty_lines_apart_and_grows_with_them) {
  suite_chart chart;
  for (int i = 0; i < 40; ++i)
    chart.series.push_back({"plan " + std::to_string(i), {{0.3, 0.01 * i, "p"}, {0.5, 0.0, "q"}}});
  const std::string svg = draw(chart, "title");
  const std::vector<std::string> strokes =
      all_of(svg, "(stroke=\"#[^\"]*\" stroke-dasharray=\"[^\"]*\")");
  EXPECT_EQ(strokes.size(), 80U);  // each on the picture and in its legend
  EXPECT_EQ(std::set<std::string>(strokes.begin(), strokes.end()).size(), 40U);
  const double height = number_in(svg, "height=\"([^\"]*)\" viewBox");
  for (const std::string& y : all_of(svg, "<text x=\"[^\"]*\" y=\"([^\"]*)\""))
    EXPECT_LT(std::stod(y), height);
  EXPECT_LT(number_in(draw(one_line({0.1}), ""), "height=\"([^\"]*)\" viewBox"), height);
}

TEST(suite_chart, is_wide_enough_for_its_names) {
  suite_chart chart = one_line({0.1});
  const double width = number_in(draw(chart, ""), "width=\"([^\"]*)\" height");
  chart.series[0].name = std::string(40, 'm');
  EXPECT_GT(number_in(draw(chart, ""), "width=\"([^\"]*)\" height"), width + 100.0);
}

TEST(suite_chart, draws_what_gains_below_what_is_level) {
  const std::string svg = draw(one_line({0.04, 0.0, -0.03}), "");
  EXPECT_LT(height_of(svg, 0), height_of(svg, 1));
  EXPECT_LT(height_of(svg, 1), height_of(svg, 2));
  // On one scale: 4 to 3.
  EXPECT_NEAR((height_of(svg, 1) - height_of(svg, 0)) / 4.0,
              (height_of(svg, 2) - height_of(svg, 1)) / 3.0, 0.2);
  EXPECT_TRUE(contains(svg, ">-3.0 %<"));
  EXPECT_FALSE(contains(draw(one_line({0.04, 0.0}), ""), ">-"));
}

TEST(suite_chart, marks_what_is_beyond_the_scale) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::string svg = draw(one_line({0.5, 0.51, infinity, 0.1, -0.9}), "");
  for (const int i : {1, 2, 4}) EXPECT_TRUE(is_beyond(svg, i)) << i;
  for (const int i : {0, 3}) EXPECT_FALSE(is_beyond(svg, i)) << i;
  EXPECT_TRUE(contains(svg, "+51.0 %"));
  EXPECT_TRUE(contains(svg, "beyond the scale"));
  EXPECT_FALSE(contains(draw(one_line({0.5, -0.5}), ""), "beyond the scale"));
}

TEST(suite_chart, has_a_scale_for_three_quarters_of_its_points) {
  const std::string svg = draw(one_line({0.9, 0.08, -0.01, 0.04, 0.05, 0.0, 0.02}), "");
  EXPECT_TRUE(contains(svg, ">+10.0 %<"));
  EXPECT_FALSE(contains(svg, ">+20.0 %<"));
  EXPECT_TRUE(is_beyond(svg, 0));
  EXPECT_FALSE(is_beyond(svg, 1));
}

TEST(suite_chart, leaves_out_what_is_no_number) {
  const double nan = std::nan("");
  suite_chart chart = one_line({0.1, nan, 0.02});
  chart.series.back().points.push_back({nan, 0.1, "p3"});
  chart.series.push_back({"nothing", {{0.5, nan, "p4"}}});
  const std::string svg = draw(chart, "");
  EXPECT_FALSE(contains(svg, "nan"));
  EXPECT_TRUE(contains(svg, "nothing"));
  EXPECT_EQ(all_of(svg, "(<title>p)").size(), 2U);
  EXPECT_EQ(all_of(svg, "d=\"(M[^\"]* L)").size(), 1U);
}

TEST(suite_chart, has_a_scale_to_all_texts_where_they_are_solved_or_not) {
  suite_chart chart = one_line({0.0, 1.0});
  chart.is_change = false;
  const std::string svg = draw(chart, "");
  EXPECT_TRUE(contains(svg, "Texts solved"));
  EXPECT_TRUE(contains(svg, ">100.0 %<"));
  EXPECT_FALSE(is_beyond(svg, 1));
  EXPECT_LT(height_of(svg, 1), height_of(svg, 0));
}

}  // namespace
}  // namespace headwise_tests
