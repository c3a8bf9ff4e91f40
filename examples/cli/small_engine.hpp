// SPDX-License-Identifier: Apache-2.0
//
// The engine of examples/llama for the commands.
#pragma once

#include "engine.hpp"

namespace headwise_tool {

// Throws headwise::error where the file is no model of a Llama architecture.
[[nodiscard]] std::unique_ptr<engine> load_small_engine(const std::filesystem::path& model);

}  // namespace headwise_tool
