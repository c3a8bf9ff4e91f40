// SPDX-License-Identifier: Apache-2.0
//
// Perplexity against bytes kept, over the targets of an evaluation, beside the windows that hold as
// much: where a blueprint is worth its bytes.
#pragma once

#include <string>

#include "evaluation.hpp"

namespace headwise_tool {

[[nodiscard]] std::string curve_chart(const evaluation& measured);  // an SVG

}  // namespace headwise_tool
