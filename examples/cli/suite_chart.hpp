// SPDX-License-Identifier: Apache-2.0
//
// What plans lose, or solve, over the rows that they keep: a line for each family of plans, however
// many. What is beyond the scale is marked at its end; what is no number is left out.
#pragma once

#include <string>
#include <vector>

namespace headwise_tool {

struct chart_point {
  double kept = 0.0;   // share of the rows
  double value = 0.0;  // change of perplexity, or share of the texts that were solved
  std::string name;    // for a tooltip
};
struct chart_series {
  std::string name;
  std::vector<chart_point> points;
};
struct suite_chart {
  bool is_change = true;
  std::vector<chart_series> series;
};

[[nodiscard]] std::string draw(const suite_chart& chart, const std::string& title);  // an SVG

}  // namespace headwise_tool
