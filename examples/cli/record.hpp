// SPDX-License-Identifier: Apache-2.0
//
// headwise record: runs prompts through a model with a full cache and writes down what every query
// head attended to.
#pragma once

#include <cstddef>
#include <filesystem>

#include "engine.hpp"

namespace headwise_tool {

struct record_options {
  std::filesystem::path model, text, out;
  std::size_t prompts = 8;
  std::size_t length = 512;
  std::size_t look_back = 0;
  headwise::token_count sinks = 4;
  headwise::element_type type = headwise::element_type::f16;
  engine_choice engine;
};

// Throws headwise::error on bad data, usage_error on options that cannot be.
void run_record(const record_options& options);

}  // namespace headwise_tool
