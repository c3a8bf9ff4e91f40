// SPDX-License-Identifier: Apache-2.0
//
// The program's commands.
#pragma once

#include <cstddef>
#include <exception>
#include <iostream>

#include "contestants.hpp"

#include "headwise/core/printable.hpp"

namespace headwise_llama_cpp {

// Milliseconds a token and tokens per second behind texts of all lengths, in one run. tokens: that
// are timed at each length.
void run_compare(const contest_options& options, std::size_t tokens);

// The resident set of a process for each contestant and length, beside the computed figure.
void run_memory(const contest_options& options);

// A line on standard error.
inline void complain(const std::exception& problem) {
  std::cerr << "headwise-llama-cpp: " << headwise::printable(problem.what()) << '\n';
}

}  // namespace headwise_llama_cpp
