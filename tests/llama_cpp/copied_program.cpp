// SPDX-License-Identifier: Apache-2.0
//
// Uses each part of a copied adapter with the model that it is given.
#include <filesystem>
#include <iostream>

#include "llama_cpp/emulation.hpp"
#include "llama_cpp/model_support.hpp"
#include "llama_cpp/recorder.hpp"
#include "llama_cpp/takeover.hpp"
#include "llama_cpp/vocabulary.hpp"

#include "headwise/io/blueprint_json.hpp"

int main(int argc, char** argv) try {
  using namespace headwise_llama_cpp;
  if (argc != 2) return 2;
  log_errors_only();
  const auto model = load_model(argv[1]);
  headwise::save_blueprint(
      "blueprint.json",
      headwise::uniform_blueprint(shape_of(*model), headwise::make_spec(headwise::global{})));
  const headwise::blueprint plan = headwise::load_blueprint("blueprint.json");
  const std::vector<llama_token> ids = encode(*model, "Once upon a time");
  takeover engine(*model, plan, {.capacity = 64});
  emulation check(*model, plan, {.capacity = 64});
  recorder maps(*model, {.capacity = 64});
  const std::vector<llama_token> prompts[] = {ids};
  maps.record("maps.safetensors", prompts);
  const bool whole = !engine.feed(0, ids).empty() && !check.feed(ids).empty() &&
                     std::filesystem::file_size("maps.safetensors") > 0;
  return whole ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
