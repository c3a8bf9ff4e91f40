// SPDX-License-Identifier: Apache-2.0
//
// headwise generate: continues a prompt with a cache that keeps what a blueprint says.
#pragma once

#include <filesystem>
#include <string>

#include "engine.hpp"
#include "llama/sampler.hpp"

#include "headwise/core/types.hpp"

namespace headwise_tool {

struct generate_options {
  std::filesystem::path model, blueprint;
  std::string prompt;
  headwise::token_count tokens = 128;
  llama_example::sampling sampling;
  engine_choice engine;
};

// Throws headwise::error on bad data.
void run_generate(const generate_options& options);

}  // namespace headwise_tool
