// SPDX-License-Identifier: Apache-2.0
//
// A blueprint from a file, refused where it was made for another model than the one in hand.
#pragma once

#include <filesystem>

#include "llama/model.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// Throws headwise::error naming both files and what differs.
[[nodiscard]] headwise::blueprint load_matching_blueprint(const std::filesystem::path& blueprint,
                                                          const llama_example::model& model,
                                                          const std::filesystem::path& model_file);

}  // namespace headwise_tool
