// SPDX-License-Identifier: Apache-2.0
//
// The commands of the tool. Each add_ function adds one with its options, its examples and what
// runs when it is called. They throw headwise::error on bad data and CLI::ValidationError on a
// command line that cannot be.
#pragma once

#include <CLI/CLI.hpp>

namespace headwise_tool {

void add_record(CLI::App& app);
void add_profile(CLI::App& app);
void add_inspect(CLI::App& app);
void add_plan(CLI::App& app);
void add_eval(CLI::App& app);
void add_generate(CLI::App& app);

}  // namespace headwise_tool
