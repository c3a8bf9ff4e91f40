// SPDX-License-Identifier: Apache-2.0
// Compiled as writer and as reader of a blueprint, each with a configuration or version of
// nlohmann/json of its own, which it also uses itself.
#include <nlohmann/json.hpp>

#include "exercise_files.hpp"

[[maybe_unused]] static int own_use() {
  return nlohmann::json::parse("[1, 2]").at(1).get<int>();
}

#ifdef WRITER
headwise::blueprint reread(const std::string& text);

int main() {
  const headwise::blueprint plan = from_text(as_text(exercise_profile()));
  return reread(as_text(plan)) == plan && own_use() == 2 ? 0 : 1;
}
#else
headwise::blueprint reread(const std::string& text) {
  return own_use() == 2 ? from_text(text) : headwise::blueprint{};
}
#endif
