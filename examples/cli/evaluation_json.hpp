// SPDX-License-Identifier: Apache-2.0
//
// An evaluation as JSON: the figures that everyone asks for at the top level, the curve over
// targets below.
#pragma once

#include <filesystem>

#include "evaluation.hpp"

namespace headwise_tool {

void save_evaluation(const std::filesystem::path& path, const evaluation& result);
// Throws headwise::error naming the file and the place in it.
[[nodiscard]] evaluation load_evaluation(const std::filesystem::path& path);

}  // namespace headwise_tool
