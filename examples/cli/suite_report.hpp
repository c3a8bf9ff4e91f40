// SPDX-License-Identifier: Apache-2.0
//
// What a suite found, for people: tables for a terminal or a README, and a page that needs nothing
// else, with a curve for each task and the head maps of the profiled plans.
#pragma once

#include <iosfwd>
#include <string>

#include "suite_run.hpp"

namespace headwise_tool {

// Markdown: a table for each task and length.
void print_suite(std::ostream& out, const suite& what, const suite_outcome& outcome);

// HTML.
[[nodiscard]] std::string suite_page(const suite& what, const suite_outcome& outcome);

}  // namespace headwise_tool
