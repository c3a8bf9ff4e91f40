// SPDX-License-Identifier: Apache-2.0

#include <fstream>
#include <iterator>

#include "llama_cpp/model_support.hpp"
#include "options.hpp"

#include "headwise/io/blueprint_json.hpp"

namespace headwise_llama_cpp {

headwise::blueprint read_plan(const llama_model& model, const std::filesystem::path& path) {
  if (!path.empty()) return headwise::load_blueprint(path);
  return headwise::uniform_blueprint(shape_of(model), headwise::make_spec(headwise::global{}));
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file && text.empty())
    headwise::raise(headwise::error_code::unreadable, path.string(), "no text", "a file with text");
  return text;
}

}  // namespace headwise_llama_cpp
