// SPDX-License-Identifier: Apache-2.0

#include "text_table.hpp"

#include <algorithm>

namespace headwise_tool {

void text_table::print(std::ostream& out) const {
  constexpr std::size_t gap = 2;
  std::vector<std::size_t> widths(lines_.front().size(), 0);
  std::size_t total = 0;
  for (const auto& line : lines_)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  for (const std::size_t width : widths) total += width + gap;

  const std::string rule(total - gap, '-');
  for (const auto& line : lines_) {
    std::string text = line.empty() ? rule : "";
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - line[c].size(), ' ');
      const bool left = std::find(words_.begin(), words_.end(), c) != words_.end();
      text += c == 0 ? "" : std::string(gap, ' ');
      text += left ? line[c] + padding : padding + line[c];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << "  " << text << '\n';
    if (&line == &lines_.front()) out << "  " << rule << '\n';
  }
}

}  // namespace headwise_tool
