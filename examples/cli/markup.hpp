// SPDX-License-Identifier: Apache-2.0
//
// The little of SVG and HTML that the pictures and pages are made of.
#pragma once

#include <string>
#include <string_view>

namespace headwise_tool {

// Text for markup: names come out of strangers' files.
[[nodiscard]] std::string escaped(std::string_view text);

struct box {
  double x = 0.0, y = 0.0, width = 0.0, height = 0.0;
};

// A picture as it grows. Coordinates are pixels; classes are those of svg_style.
class svg_picture {
 public:
  void rectangle(const box& at, std::string_view fill, double radius = 2.0);
  void text(double x, double y, std::string_view text, std::string_view css_class,
            std::string_view anchor = "start", std::string_view fill = {});
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void open_group(std::string_view tooltip);
  void close_group() { body_ += "</g>\n"; }
  void append(std::string_view markup) { body_ += markup; }

  // The whole picture, on a card of its own that fits light and dark surroundings. title: for
  // those who cannot see it.
  [[nodiscard]] std::string finish(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

}  // namespace headwise_tool
