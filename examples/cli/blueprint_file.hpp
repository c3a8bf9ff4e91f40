// SPDX-License-Identifier: Apache-2.0
//
// Blueprints from and to files, compiled once for all commands.
#pragma once

#include <filesystem>

#include "engine.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// Throw headwise::error as headwise::load_blueprint and headwise::save_blueprint do.
[[nodiscard]] headwise::blueprint read_blueprint(const std::filesystem::path& path);
void write_blueprint(const std::filesystem::path& path, const headwise::blueprint& plan);

// Throws headwise::error where a plan was made for another model than the one in hand, naming what
// it is from, the model's file and what differs.
void require_match(const headwise::blueprint& plan, const std::filesystem::path& from,
                   const model_facts& model, const std::filesystem::path& model_file);
[[nodiscard]] headwise::blueprint read_matching_blueprint(const std::filesystem::path& path,
                                                          const model_facts& model,
                                                          const std::filesystem::path& model_file);

}  // namespace headwise_tool
