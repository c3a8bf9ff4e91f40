// SPDX-License-Identifier: Apache-2.0

#include "budget.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "expected_bytes.hpp"
#include "usage_error.hpp"

namespace headwise_tool {
namespace {

// Takes a number from the front of `text`; nullopt where there is none.
template <class T>
std::optional<T> take_number(std::string_view& text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// Takes a unit of bytes.
std::optional<double> take_unit(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{
      {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"B", 1.0}}};
  for (const auto& [name, bytes] : units)
    if (text.substr(0, name.size()) == name) {
      text.remove_prefix(name.size());
      return bytes;
    }
  return std::nullopt;
}

std::optional<budget> parsed(std::string_view text) {
  constexpr double most_bytes = 0x1p62;
  const std::optional<double> number = take_number<double>(text);
  if (!number || !(*number > 0.0)) return std::nullopt;
  budget limit;
  if (text == "%") {
    if (*number > 100.0) return std::nullopt;
    limit.share = *number / 100.0;
    return limit;
  }
  const std::optional<double> unit = take_unit(text);
  if (!unit || *number * *unit > most_bytes) return std::nullopt;
  limit.bytes = static_cast<std::uint64_t>(*number * *unit);
  if (text.empty()) return limit;
  if (text.front() != '@') return std::nullopt;
  text.remove_prefix(1);
  const std::optional<std::uint64_t> length = take_number<std::uint64_t>(text);
  if (!length || *length == 0 || !text.empty()) return std::nullopt;
  limit.length = *length;
  return limit;
}

}  // namespace

budget parse_budget(const std::string& option, const std::string& text) {
  const std::optional<budget> limit = parsed(text);
  if (!limit)
    throw usage_error(option + ": '" + text +
                      "' is not a share or a number of bytes, such as 40%, 64MiB or 64MiB@2048");
  return *limit;
}

double parse_loss(const std::string& option, const std::string& text) {
  std::string_view rest(text);
  const std::optional<double> number = take_number<double>(rest);
  if (!number || !(*number >= 0.0) || std::isinf(*number) || rest != "%")
    throw usage_error(option + ": '" + text + "' is not a percentage, such as 2%");
  return *number / 100.0;
}

double share_of(const budget& limit, const headwise::model_shape& shape,
                headwise::token_count length, cache_type type) {
  if (limit.share) return *limit.share;
  const auto full =
      static_cast<double>(full_bytes(shape.heads(), length, 1, row_bytes(type, shape.head_dim)));
  return std::min(1.0, static_cast<double>(limit.bytes) / full);
}

}  // namespace headwise_tool
