// SPDX-License-Identifier: Apache-2.0

#include "terminal.hpp"

#include <cstdlib>

#include <unistd.h>

namespace headwise_tool {
namespace {

// "#rrggbb" as "r;g;b".
std::string components(std::string_view colour) {
  std::string text;
  for (std::size_t at = 1; at + 1 < colour.size(); at += 2) {
    const std::string digits(colour.substr(at, 2));
    text += (text.empty() ? "" : ";") + std::to_string(std::strtoul(digits.c_str(), nullptr, 16));
  }
  return text;
}

}  // namespace

bool is_terminal(stream s) noexcept {
  return ::isatty(s == stream::output ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

bool wants_colour() noexcept {
  const char* const no_colour = std::getenv("NO_COLOR");
  return is_terminal(stream::output) && (no_colour == nullptr || *no_colour == '\0');
}

std::string coloured(std::string_view text, std::string_view ink, std::string_view background) {
  return "\x1b[38;2;" + components(ink) + ";48;2;" + components(background) + "m" +
         std::string(text) + "\x1b[0m";
}

}  // namespace headwise_tool
