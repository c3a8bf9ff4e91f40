// SPDX-License-Identifier: Apache-2.0

#include "markup.hpp"

#include "numbers.hpp"

namespace headwise_tool {
namespace {

// A picture in an <img> sees only its own style, so it brings its own.
constexpr std::string_view svg_style = R"(<style>
.hw-card{fill:#fff;stroke:#d0d7de}
.hw-title{font:600 20px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.hw-head{font:600 13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.hw-text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.hw-note{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#59636e}
.hw-cell{font:600 11px system-ui,-apple-system,"Segoe UI",sans-serif}
.hw-small{font-size:9px}
.hw-rest{fill:#eceff2}
.hw-grid{stroke:#d0d7de;stroke-width:1}
.hw-line{stroke:#2171b5;stroke-width:2;fill:none}
@media (prefers-color-scheme:dark){
.hw-card{fill:#161b22;stroke:#3d444d}
.hw-title,.hw-head,.hw-text{fill:#f0f6fc}
.hw-note{fill:#9198a1}
.hw-rest{fill:#2a313c}
.hw-grid{stroke:#3d444d}
.hw-line{stroke:#74b3d8}
}
</style>
)";

// At most one digit behind the point, and none where it is 0.
std::string number(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (c >= 0 && c < ' ' && c != '\n')
      result += ' ';
    else
      result += c;
  }
  return result;
}

void svg_picture::rectangle(const box& at, std::string_view fill, double radius) {
  const bool colour = fill.starts_with('#');
  body_ += "<rect" + attribute("x", number(at.x)) + attribute("y", number(at.y)) +
           attribute("width", number(at.width)) + attribute("height", number(at.height)) +
           attribute("rx", number(radius)) + attribute(colour ? "fill" : "class", fill) + "/>\n";
}

void svg_picture::text(double x, double y, std::string_view text, std::string_view css_class,
                       std::string_view anchor, std::string_view fill) {
  body_ += "<text" + attribute("x", number(x)) + attribute("y", number(y)) +
           attribute("class", css_class);
  if (anchor != "start") body_ += attribute("text-anchor", anchor);
  if (!fill.empty()) body_ += attribute("fill", fill);
  body_ += ">" + escaped(text) + "</text>\n";
}

void svg_picture::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  body_ += "<line" + attribute("x1", number(x1)) + attribute("y1", number(y1)) +
           attribute("x2", number(x2)) + attribute("y2", number(y2)) +
           attribute("class", css_class) + "/>\n";
}

void svg_picture::open_group(std::string_view tooltip) {
  body_ += "<g><title>" + escaped(tooltip) + "</title>\n";
}

std::string svg_picture::finish(double width, double height, std::string_view title) const {
  const std::string size = number(width) + " " + number(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"" +
         attribute("width", number(width)) + attribute("height", number(height)) +
         attribute("viewBox", "0 0 " + size) + ">\n<title>" + escaped(title) + "</title>\n" +
         std::string(svg_style) + "<rect" + attribute("x", "0.5") + attribute("y", "0.5") +
         attribute("width", number(width - 1.0)) + attribute("height", number(height - 1.0)) +
         " rx=\"8\" class=\"hw-card\"/>\n" + body_ + "</svg>\n";
}

}  // namespace headwise_tool
