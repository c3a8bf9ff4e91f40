// SPDX-License-Identifier: Apache-2.0
//
// headwise eval: what a blueprint costs and saves on a text that its profile did not see.
#pragma once

#include <filesystem>
#include <vector>

#include "evaluation.hpp"

namespace headwise_tool {

struct eval_options : evaluated_text {
  std::filesystem::path json;
  std::filesystem::path suite, html;  // many plans and tasks at once, and their page
  std::vector<std::filesystem::path> blueprints;
  cache_type type = cache_type::f16;
};

// Throws headwise::error on bad data, usage_error on options that cannot be.
void run_eval(const eval_options& options);

}  // namespace headwise_tool
