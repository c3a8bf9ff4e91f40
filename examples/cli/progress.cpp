// SPDX-License-Identifier: Apache-2.0

#include "progress.hpp"

#include <iostream>

#include "numbers.hpp"
#include "terminal.hpp"

namespace headwise_tool {

progress::progress(std::string label, std::uint64_t total, std::string unit)
    : label_(std::move(label)),
      total_(total == 0 ? 1 : total),
      unit_(std::move(unit)),
      terminal_(is_terminal(stream::error)) {
  if (terminal_) draw();
}

progress::~progress() {
  if (!terminal_) return;
  draw();
  std::cerr << '\n';
}

void progress::reach(std::uint64_t done) {
  constexpr auto redraw = std::chrono::milliseconds(100);
  constexpr auto unheard = std::chrono::seconds(2);  // shorter work needs no lines
  const std::uint64_t quarter = 4 * done_ / total_;
  done_ = done;
  if (terminal_) {
    if (clock::now() - drawn_ < redraw) return;
    drawn_ = clock::now();
    draw();
  } else if (4 * done_ / total_ > quarter && clock::now() - start_ > unheard) {
    std::cerr << label_ << ": " << with_commas(done_) << " of " << with_commas(total_) << ' '
              << unit_ << '\n';
  }
}

void progress::draw() const {
  constexpr std::uint64_t width = 30;
  const std::uint64_t filled = width * done_ / total_;
  const double seconds = std::chrono::duration<double>(clock::now() - start_).count();
  std::cerr << '\r' << label_ << " [" << std::string(filled, '#')
            << std::string(width - filled, '.') << "] " << with_commas(done_) << " of "
            << with_commas(total_) << ' ' << unit_ << ", " << fixed(seconds, 0) << " s\x1b[K"
            << std::flush;
}

}  // namespace headwise_tool
