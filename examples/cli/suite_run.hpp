// SPDX-License-Identifier: Apache-2.0
//
// Runs a suite: plan by plan, task by task. What the results file holds already is not run again.
#pragma once

#include <filesystem>
#include <vector>

#include "engine.hpp"
#include "suite.hpp"
#include "suite_results.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// A plan as it was run.
struct suite_plan {
  std::string name;
  double level = 0.0;
  headwise::token_count length = 0;
  headwise::blueprint plan;
};

struct suite_outcome {
  std::vector<suite_result> results;  // in the order of the suite, full first
  std::vector<suite_plan> plans;
};

// results: the file, which is written after each of them. Throws headwise::error on bad data; what
// was found till then is kept.
[[nodiscard]] suite_outcome run_suite(const suite& what, const std::filesystem::path& results,
                                      const engine_choice& choice);

}  // namespace headwise_tool
