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

// Ends of the scale, one of which is taken; what is beyond it is marked at the edge.
constexpr std::array<double, 5> scales{0.01, 0.05, 0.1, 0.2, 0.5};
constexpr std::array<std::string_view, 12> line_colours{"#59636e", "#2171b5", "#74a9cf", "#0f7b6c",
                                                        "#8250df", "#b35900", "#cf222e", "#d4a72c",
                                                        "#bf3989", "#8c959f", "#9a6700", "#116329"};
// Of lines whose colours come again.
constexpr std::array<std::string_view, 4> line_dashes{"none", "7 4", "2 3", "9 3 2 3"};

// An infinite loss has a place, at the edge; what is no number has none.
bool has_place(const chart_point& point) {
  return std::isfinite(point.kept) && !std::isnan(point.value);
}

class chart_picture {
 public:
  explicit chart_picture(const suite_chart& chart) : chart_(chart) {
    if (!chart.is_change) return;
    std::vector<double> sizes{0.0};
    double least = 0.0;
    for (const chart_series& series : chart.series)
      for (const chart_point& point : series.points)
        if (has_place(point)) {
          sizes.push_back(std::abs(point.value));
          least = std::min(least, point.value);
        }
    // Room for three quarters of them: the far worse would press the others into one line.
    const auto upper = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() * 3 / 4);
    std::nth_element(sizes.begin(), upper, sizes.end());
    most_value_ = *std::lower_bound(scales.begin(), scales.end() - 1, *upper);
    ticks_below_ = std::min(ticks, static_cast<int>(std::ceil(-least / most_value_ * ticks)));
  }

  [[nodiscard]] std::string draw(const std::string& title) {
    picture_.text(24, 24,
                  chart_.is_change ? "Perplexity over rows kept" : "Texts solved over rows kept",
                  "hw-head");
    draw_axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) draw_series(i);
    if (has_beyond_) picture_.text(left, height - 30, "triangles: beyond the scale", "hw-note");
    const double legend = legend_y(chart_.series.size());
    return picture_.finish(left + plot_width + legend_width(), std::max(height, legend), title);
  }

 private:
  static constexpr double height = 416.0, plot_width = 480.0;
  static constexpr double left = 70.0, top = 40.0, bottom = 68.0;
  static constexpr int ticks = 5;  // from nothing to the end of the scale

  [[nodiscard]] static double x_of(double kept) {
    return left + plot_width * std::clamp(kept, 0.0, 1.0);
  }
  [[nodiscard]] double least_value() const { return -most_value_ * ticks_below_ / ticks; }
  [[nodiscard]] double y_of(double value) const {
    const double share = (value - least_value()) / (most_value_ - least_value());
    return height - bottom - (height - top - bottom) * std::clamp(share, 0.0, 1.0);
  }
  // Room for the longest name.
  [[nodiscard]] double legend_width() const {
    constexpr double letter = 7.0, least = 210.0;
    double width = least;
    for (const chart_series& series : chart_.series)
      width = std::max(width, 70.0 + letter * static_cast<double>(series.name.size()));
    return width;
  }
  [[nodiscard]] static double legend_y(std::size_t number) {
    return top + 20 + 24 * static_cast<double>(number);
  }
  [[nodiscard]] std::string value_text(double value) const {
    return (chart_.is_change && value >= 0.0 ? "+" : "") + percent(value, 1);
  }

  void draw_axes() {
    for (int tick = -ticks_below_; tick <= ticks; ++tick) {
      const double value = most_value_ * tick / ticks;
      picture_.line(x_of(0), y_of(value), x_of(1), y_of(value), "hw-grid");
      picture_.text(left - 8, y_of(value) + 4, value_text(value), "hw-note", "end");
    }
    for (int tick = 0; tick <= ticks; ++tick) {
      const double share = static_cast<double>(tick) / ticks;
      picture_.text(x_of(share), height - bottom + 20, percent(share, 0), "hw-note", "middle");
    }
    const std::string_view what =
        chart_.is_change ? "up: perplexity over the full cache's" : "up: texts solved";
    picture_.text(left, height - 12, "right: rows kept at the end; " + std::string(what),
                  "hw-note");
  }

  void draw_series(std::size_t number) {
    const chart_series& series = chart_.series[number];
    const std::string colour(line_colours[number % line_colours.size()]);
    const std::string_view dashes = line_dashes[number / line_colours.size() % line_dashes.size()];
    const std::string stroke = "fill=\"none\" stroke-width=\"2\" stroke=\"" + colour +
                               "\" stroke-dasharray=\"" + std::string(dashes) + "\"/>\n";
    std::vector<const chart_point*> points;
    for (const chart_point& point : series.points)
      if (has_place(point)) points.push_back(&point);
    std::sort(points.begin(), points.end(),
              [](const auto* a, const auto* b) { return a->kept < b->kept; });
    std::string path;
    for (const chart_point* const point : points)
      path += (path.empty() ? "M" : " L") + fixed(x_of(point->kept), 1) + " " +
              fixed(y_of(point->value), 1);
    if (!path.empty()) picture_.append("<path d=\"" + path + "\" " + stroke);
    for (const chart_point* const point : points) draw_point(*point, colour);
    const double y = legend_y(number);
    picture_.append("<path d=\"M" + fixed(left + plot_width + 28, 1) + " " + fixed(y - 4, 1) +
                    " h20\" " + stroke);
    picture_.text(left + plot_width + 56, y, series.name, "hw-text");
  }

  void draw_point(const chart_point& point, const std::string& colour) {
    const double x = x_of(point.kept), y = y_of(point.value);
    picture_.open_group(point.name + "\n" + percent(point.kept) + " of the rows, " +
                        value_text(point.value));
    if (point.value > most_value_ || point.value < least_value()) {
      has_beyond_ = true;
      const std::string up = point.value > most_value_ ? "-" : "";
      picture_.append("<path d=\"M" + fixed(x - 6, 1) + " " + fixed(y, 1) + " h12 l-6 " + up +
                      "10 z\" fill=\"" + colour + "\"/>\n");
    } else {
      picture_.rectangle({x - 4, y - 4, 8, 8}, colour, 4.0);
    }
    picture_.close_group();
  }

  const suite_chart& chart_;
  double most_value_ = 1.0;
  int ticks_below_ = 0;  // for those that gain
  bool has_beyond_ = false;
  svg_picture picture_;
};

}  // namespace

std::string draw(const suite_chart& chart, const std::string& title) {
  return chart_picture(chart).draw(title);
}

}  // namespace headwise_tool
