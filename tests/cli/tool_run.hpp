// SPDX-License-Identifier: Apache-2.0
//
// The tool as a test calls it: arguments in, exit code and texts out.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace headwise_tests {

struct tool_result {
  int code = 0;
  std::string out, err;
};

// output: where standard output goes, if not into the result.
[[nodiscard]] inline tool_result run_headwise(const std::vector<std::string>& arguments,
                                              std::streambuf* output = nullptr) {
  std::vector<const char*> argv{"headwise"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  std::streambuf* const former_out = std::cout.rdbuf(output == nullptr ? out.rdbuf() : output);
  std::streambuf* const former_err = std::cerr.rdbuf(err.rdbuf());
  const int code = headwise_tool::run_tool(static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(former_out);
  std::cerr.rdbuf(former_err);
  return {code, out.str(), err.str()};
}

[[nodiscard]] inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace headwise_tests
