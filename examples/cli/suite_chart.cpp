// SPDX-License-Identifier: Apache-2.0

#include "suite_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "markup.hpp"
#include "numbers.hpp"

namespace headwise_tool {
namespace {

// Ends of the scale; what loses more than the last is drawn at the edge.
constexpr std::array<double, 5> scales{0.01, 0.05, 0.1, 0.2, 0.5};
constexpr std::array<std::string_view, 12> line_colours{"#59636e", "#2171b5", "#74a9cf", "#0f7b6c",
                                                        "#8250df", "#b35900", "#cf222e", "#5bb8a4",
                                                        "#bf3989", "#8c959f", "#9a6700", "#116329"};

class chart_picture {
 public:
  explicit chart_picture(const suite_chart& chart) : chart_(chart) {
    if (!chart.is_change) return;
    double worst = 0.0;
    for (const chart_series& series : chart.series)
      for (const chart_point& point : series.points) worst = std::max(worst, point.value);
    const auto scale = std::lower_bound(scales.begin(), scales.end() - 1, worst);
    top_value_ = *scale;
  }

  [[nodiscard]] std::string draw(const std::string& title) {
    picture_.text(24, 24,
                  chart_.is_change ? "Perplexity over rows kept" : "Texts solved over rows kept",
                  "hw-head");
    draw_axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(i);
    return picture_.finish(width, height, title);
  }

 private:
  static constexpr double width = 760.0, height = 400.0;
  static constexpr double left = 70.0, right = 210.0, top = 40.0, bottom = 52.0;

  [[nodiscard]] static double x_of(double kept) {
    return left + (width - left - right) * std::clamp(kept, 0.0, 1.0);
  }
  [[nodiscard]] double y_of(double value) const {
    return height - bottom - (height - top - bottom) * std::clamp(value / top_value_, 0.0, 1.0);
  }
  [[nodiscard]] std::string value_text(double value) const {
    return (chart_.is_change && value >= 0.0 ? "+" : "") + percent(value, 1);
  }

  void draw_axes() {
    for (int tick = 0; tick <= 5; ++tick) {
      const double share = tick / 5.0, value = share * top_value_;
      picture_.line(x_of(0), y_of(value), x_of(1), y_of(value), "hw-grid");
      picture_.text(left - 8, y_of(value) + 4, value_text(value), "hw-note", "end");
      picture_.text(x_of(share), height - bottom + 20, percent(share, 0), "hw-note", "middle");
    }
    const std::string_view what =
        chart_.is_change ? "up: perplexity over the full cache's" : "up: texts solved";
    picture_.text(left, height - 12, "right: rows kept at the end; " + std::string(what),
                  "hw-note");
  }

  void draw_series(std::size_t number) {
    const chart_series& series = chart_.series[number];
    const std::string_view colour = line_colours[number % line_colours.size()];
    std::vector<const chart_point*> points;
    for (const chart_point& point : series.points) points.push_back(&point);
    std::sort(points.begin(), points.end(),
              [](const auto* a, const auto* b) { return a->kept < b->kept; });
    std::string path;
    for (const chart_point* const point : points)
      path += (path.empty() ? "M" : " L") + fixed(x_of(point->kept), 1) + " " +
              fixed(y_of(point->value), 1);
    picture_.append("<path d=\"" + path + "\" fill=\"none\" stroke-width=\"2\" stroke=\"" +
                    std::string(colour) + "\"/>\n");
    for (const chart_point* const point : points) {
      picture_.open_group(point->name + "\n" + percent(point->kept) + " of the rows, " +
                          value_text(point->value));
      picture_.rectangle({x_of(point->kept) - 4, y_of(point->value) - 4, 8, 8}, colour, 4.0);
      picture_.close_group();
    }
    const double y = top + 20 + 24 * static_cast<double>(number);
    picture_.rectangle({width - right + 20, y - 10, 12, 12}, colour);
    picture_.text(width - right + 38, y, series.name, "hw-text");
  }

  const suite_chart& chart_;
  double top_value_ = 1.0;
  svg_picture picture_;
};

}  // namespace

std::string draw(const suite_chart& chart, const std::string& title) {
  return chart_picture(chart).draw(title);
}

}  // namespace headwise_tool
