// SPDX-License-Identifier: Apache-2.0
//
// headwise plan: how many bytes of keys and values a cache needs, against a full one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cache_type.hpp"

namespace headwise_tool {

struct plan_options {
  std::filesystem::path blueprint;
  std::string shape;
  std::uint64_t length = 0;  // 0: the blueprint's own
  std::uint64_t batch = 1;
  cache_type type = cache_type::f16;
};

// Throws headwise::error on bad data, usage_error on options that contradict each other.
void run_plan(const plan_options& options);

}  // namespace headwise_tool
