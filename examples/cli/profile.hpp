// SPDX-License-Identifier: Apache-2.0
//
// headwise profile: recorded maps in, a blueprint out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "cache_type.hpp"
#include "evaluation.hpp"

#include "headwise/profile/profiler.hpp"

namespace headwise_tool {

struct profile_options {
  std::vector<std::filesystem::path> maps;
  std::filesystem::path out;
  std::uint64_t length = 0;  // at which rows are counted; 0: that of the first prompt
  headwise::measure_options measure;
  std::vector<headwise::token_count> windows;  // to try; empty: the ladder's, or budget_windows()
  headwise::classify_options classify;
  std::vector<double> also;           // further targets
  std::string budget;                 // as parse_budget() reads it; empty: a target alone
  std::optional<double> max_loss;     // instead: of the smallest budget (loss_limit.hpp)
  evaluated_text text;                // on which it is measured
  cache_type type = cache_type::f16;  // of the budget's bytes, and of the rows that are evaluated
  std::uint32_t threads = 0;          // 0: as many as the machine has cores
};

// Throws headwise::error on bad data, usage_error on options that cannot be.
void run_profile(const profile_options& options);

}  // namespace headwise_tool
