// SPDX-License-Identifier: Apache-2.0

#include "blueprint_file.hpp"

#include "headwise/io/blueprint_json.hpp"
#include "support/file_match.hpp"

namespace headwise_tool {

headwise::blueprint read_blueprint(const std::filesystem::path& path) {
  return headwise::load_blueprint(path);
}

void write_blueprint(const std::filesystem::path& path, const headwise::blueprint& plan) {
  headwise::save_blueprint(path, plan);
}

void require_match(const headwise::blueprint& plan, const std::filesystem::path& from,
                   const model_facts& model, const std::filesystem::path& model_file) {
  require_match_of_files(plan, from.string(), model.shape, model.fingerprint, model_file.string());
}

headwise::blueprint read_matching_blueprint(const std::filesystem::path& path,
                                            const model_facts& model,
                                            const std::filesystem::path& model_file) {
  headwise::blueprint plan = read_blueprint(path);
  require_match(plan, path, model, model_file);
  return plan;
}

}  // namespace headwise_tool
