// SPDX-License-Identifier: Apache-2.0

#include "matching_blueprint.hpp"

#include "headwise/io/blueprint_json.hpp"

namespace headwise_tool {

headwise::blueprint load_matching_blueprint(const std::filesystem::path& blueprint,
                                            const llama_example::model& model,
                                            const std::filesystem::path& model_file) {
  headwise::blueprint plan = headwise::load_blueprint(blueprint);
  try {
    headwise::require_match(plan, model.shape(), model.fingerprint());
  } catch (const headwise::error& e) {
    headwise::raise(
        e.code(), blueprint.string() + " is not for " + model_file.string() + ": " + e.place(),
        e.got(), e.expected() + "; profile this model, or name the one it was made for");
  }
  return plan;
}

}  // namespace headwise_tool
