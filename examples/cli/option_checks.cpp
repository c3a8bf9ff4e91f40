// SPDX-License-Identifier: Apache-2.0

#include "option_checks.hpp"

#include <charconv>
#include <limits>
#include <system_error>

#include "numbers.hpp"
#include "usage_error.hpp"

#include "headwise/io/replacing_file.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

// What cannot be looked at is no match: reading it says what is wrong with it.
bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code problem;
  return fs::equivalent(a, b, problem) && !problem;
}

bool is_in(const fs::path& file, const fs::path& folder) {
  std::error_code problem;
  fs::directory_iterator entry(folder, problem);
  for (; !problem && entry != fs::directory_iterator(); entry.increment(problem))
    if (is_same_file(file, entry->path())) return true;
  return false;
}

}  // namespace

std::string complaint_on_count(const std::string& text, std::uint64_t low, std::uint64_t high) {
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [next, problem] = std::from_chars(text.data(), end, value);
  if (problem == std::errc() && next == end && value >= low && value <= high) return {};
  const bool open = high == std::numeric_limits<std::uint64_t>::max();
  return "'" + text + "' is not a whole number " +
         (open ? "of at least " + with_commas(low)
               : "from " + with_commas(low) + " to " + with_commas(high));
}

std::string complaint_on_name(const std::string& text) {
  return text.empty() ? "'' is no name of a file or folder" : "";
}

void require_share(const std::string& option, double value) {
  if (!(value >= 0.0 && value <= 1.0))
    throw usage_error(option + ": " + std::to_string(value) + " is not a number from 0 to 1");
}

headwise::token_count sequence_length(std::uint64_t tokens) {
  if (tokens > headwise::max_length)
    headwise::raise(headwise::error_code::out_of_range, "--length", with_commas(tokens),
                    "at most " + with_commas(headwise::max_length) + ", as a sequence can be");
  return static_cast<headwise::token_count>(tokens);
}

void require_no_input(const std::string& option, const fs::path& out,
                      const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs)
    if (is_same_file(out, input) || is_in(out, input))
      throw usage_error(option + ": " + out.string() +
                        " is read by this command and would be lost: name another file");
}

void require_apart(const std::string& option, const fs::path& out, const std::string& other_option,
                   const fs::path& other) {
  if (out.empty() || other.empty()) return;
  std::error_code problem;  // what cannot be looked at is refused where it is opened
  if (fs::weakly_canonical(out, problem) == fs::weakly_canonical(other, problem))
    throw usage_error(option + ": " + out.string() + " is the file of " + other_option +
                      " as well: name another");
}

void require_output(const std::string& option, const fs::path& out,
                    const std::vector<fs::path>& inputs) {
  if (out.empty()) return;
  require_no_input(option, out, inputs);
  static_cast<void>(headwise::replacing_file(out));
}

}  // namespace headwise_tool
