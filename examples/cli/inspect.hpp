// SPDX-License-Identifier: Apache-2.0
//
// headwise inspect: a blueprint as a table on the terminal, as a page, as a picture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cache_type.hpp"

namespace headwise_tool {

struct inspect_options {
  std::filesystem::path blueprint, html, svg, measured;
  std::string title;
  std::vector<std::filesystem::path> maps;
  std::uint64_t length = 0;  // 0: the blueprint's own
  cache_type type = cache_type::f16;
};

// Throws headwise::error on bad data, usage_error on options that contradict each other.
void run_inspect(const inspect_options& options);

}  // namespace headwise_tool
