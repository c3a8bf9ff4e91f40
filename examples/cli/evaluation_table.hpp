// SPDX-License-Identifier: Apache-2.0
//
// An evaluation as a table that a person reads.
#pragma once

#include <ostream>

#include "evaluation.hpp"

namespace headwise_tool {

void print_evaluation(std::ostream& out, const evaluation& result);

}  // namespace headwise_tool
