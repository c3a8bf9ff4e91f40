// SPDX-License-Identifier: Apache-2.0

#include "numbers.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "headwise/core/error.hpp"

namespace headwise_tool {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

[[noreturn]] void refuse(std::uint64_t a, char op, std::uint64_t b, const char* what) {
  headwise::raise(headwise::error_code::out_of_range, what,
                  with_commas(a) + " " + op + " " + with_commas(b), "a result below 2^64");
}

}  // namespace

std::string with_commas(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string counted(std::uint64_t value, const std::string& one, const std::string& many) {
  return with_commas(value) + " " + (value == 1 ? one : many.empty() ? one + "s" : many);
}

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  std::array<char, 400> text{};  // the largest double has 309 digits in front of the point
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value,
                                    std::chars_format::fixed, digits);
  return {text.data(), result.ptr};
}

std::string percent(double share, int digits) {
  return fixed(100.0 * share, digits) + " %";
}

std::string change(double value, double reference, int digits) {
  const double share = value / reference - 1.0;
  return (share < 0.0 ? "" : "+") + percent(share, digits);
}

std::string short_bytes(double bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < units.size()) {
    bytes /= 1024.0;
    ++unit;
  }
  const bool whole = bytes == std::floor(bytes);
  return fixed(bytes, whole || unit == 0 ? 0 : bytes < 10.0 ? 2 : 1) + " " + units[unit];
}

std::uint64_t checked_product(std::uint64_t a, std::uint64_t b, const char* what) {
  if (b != 0 && a > largest / b) refuse(a, 'x', b, what);
  return a * b;
}

std::uint64_t checked_sum(std::uint64_t a, std::uint64_t b, const char* what) {
  if (a > largest - b) refuse(a, '+', b, what);
  return a + b;
}

}  // namespace headwise_tool
