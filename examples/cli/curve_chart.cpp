// SPDX-License-Identifier: Apache-2.0

#include "curve_chart.hpp"

#include <algorithm>
#include <cmath>

#include "markup.hpp"
#include "numbers.hpp"

namespace headwise_tool {
namespace {

// Past this the windows would squeeze the rest of the chart into one line.
constexpr double most_change = 0.5;

struct series {
  const char* name;
  const char* colour;
  const plan_score blueprint_score::*score;
};
constexpr series all_series[] = {
    {"blueprint", "#2171b5", &blueprint_score::blueprint},
    {"first tokens + window", "#c94a00", &blueprint_score::sinks_and_window},
    {"window", "#8c959f", &blueprint_score::plain_window}};

class chart {
 public:
  explicit chart(const evaluation& measured) : measured_(measured) {
    double kept = 0.0;
    for (const blueprint_score& at : measured.scores)
      for (const series& s : all_series) {
        most_ = std::max(most_, std::min(change_of(at.*s.score), most_change));
        kept = std::max(kept, kept_of(at.*s.score));
      }
    most_ *= 1.1;
    most_kept_ = std::min(1.0, std::ceil(10.0 * kept) / 10.0);
  }

  [[nodiscard]] std::string draw() {
    picture_.text(24, 28, "Perplexity over bytes kept, for each target", "hw-head");
    draw_axes();
    double y = top + 20;
    for (const series& s : all_series) {
      draw_series(s);
      picture_.rectangle({width - right + 24, y - 10, 12, 12}, s.colour);
      picture_.text(width - right + 42, y, s.name, "hw-text");
      y += 24;
    }
    return picture_.finish(width, height, "Perplexity over bytes kept");
  }

 private:
  static constexpr double width = 720.0, height = 330.0;
  static constexpr double left = 70.0, right = 220.0, top = 48.0, bottom = 48.0;

  [[nodiscard]] double change_of(const plan_score& score) const {
    return score.perplexity / measured_.full.perplexity - 1.0;
  }
  [[nodiscard]] double kept_of(const plan_score& score) const {
    return score.resident_bytes / measured_.full_bytes;
  }
  [[nodiscard]] double x_of(double kept) const {
    return left + (width - left - right) * std::clamp(kept / most_kept_, 0.0, 1.0);
  }
  [[nodiscard]] double y_of(double change) const {
    return height - bottom - (height - top - bottom) * std::clamp(change / most_, 0.0, 1.0);
  }

  void draw_axes() {
    for (int tick = 0; tick <= 4; ++tick) {
      const double share = tick / 4.0;
      picture_.line(x_of(0), y_of(share * most_), x_of(1), y_of(share * most_), "hw-grid");
      picture_.text(left - 8, y_of(share * most_) + 4, "+" + percent(share * most_), "hw-note",
                    "end");
      picture_.text(x_of(share * most_kept_), height - bottom + 20, percent(share * most_kept_, 1),
                    "hw-note", "middle");
    }
    picture_.text((x_of(0) + x_of(1)) / 2, height - 10, "bytes held, of a dense cache", "hw-note",
                  "middle");
  }

  void draw_series(const series& s) {
    std::vector<std::pair<double, const blueprint_score*>> points;
    for (const blueprint_score& at : measured_.scores)
      points.emplace_back(kept_of(at.*s.score), &at);
    std::sort(points.begin(), points.end());
    std::string path;
    for (const auto& [kept, at] : points)
      path += (path.empty() ? "M" : " L") + fixed(x_of(kept), 1) + " " +
              fixed(y_of(change_of(at->*s.score)), 1);
    picture_.append("<path d=\"" + path + "\" fill=\"none\" stroke-width=\"2\" stroke=\"" +
                    std::string(s.colour) + "\"/>\n");
    for (const auto& [kept, at] : points) {
      const plan_score& score = at->*s.score;
      picture_.open_group(std::string(s.name) + ", target " + fixed(at->recovery_target, 2) +
                          "\nkept " + percent(kept) + ", perplexity " + fixed(score.perplexity, 3) +
                          " (" + change(score.perplexity, measured_.full.perplexity) + ")");
      picture_.rectangle({x_of(kept) - 4, y_of(change_of(score)) - 4, 8, 8}, s.colour, 4.0);
      picture_.close_group();
      if (s.score == &blueprint_score::blueprint)
        picture_.text(x_of(kept), y_of(change_of(score)) - 8, fixed(at->recovery_target, 2),
                      "hw-note", "middle");
    }
  }

  const evaluation& measured_;
  double most_ = 0.01;      // change of perplexity at the top
  double most_kept_ = 1.0;  // share of the bytes at the right
  svg_picture picture_;
};

}  // namespace

std::string curve_chart(const evaluation& measured) {
  return chart(measured).draw();
}

}  // namespace headwise_tool
