// SPDX-License-Identifier: Apache-2.0
//
// headwise eval: what a blueprint costs and saves on a text that its profile did not see.

#include <filesystem>
#include <iostream>
#include <memory>

#include "choice.hpp"
#include "commands.hpp"
#include "evaluation_json.hpp"
#include "evaluation_table.hpp"
#include "matching_blueprint.hpp"
#include "numbers.hpp"
#include "progress.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

struct eval_options {
  fs::path model, text, json;
  std::vector<fs::path> blueprints;
  std::size_t window = 1024;
  std::size_t tokens = 4096;
  cache_type type = cache_type::f16;
};

void run_eval(const eval_options& options) {
  const llama_example::model model(options.model);
  std::vector<headwise::blueprint> blueprints;
  for (const fs::path& path : options.blueprints)
    blueprints.push_back(load_matching_blueprint(path, model, options.model));
  const std::size_t count = std::max<std::size_t>(1, options.tokens / options.window);
  const auto windows = cut_up_to(model, options.text, {count, options.window});

  evaluation result;
  {
    progress bar("evaluating", windows.size() * options.window * plans_of(blueprints.size()),
                 "tokens");
    result = evaluate(model, windows, blueprints, options.type,
                      [&](std::uint64_t tokens) { bar.reach(tokens); });
  }
  result.text = options.text.filename().string();
  print_evaluation(std::cout, result);
  if (options.json.empty()) return;
  save_evaluation(options.json, result);
  std::cout << "\nwritten: " << options.json.string() << '\n';
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto options = std::make_shared<eval_options>();
  CLI::App* const command = app.add_subcommand(
      "eval", "Measure a blueprint on a text: bytes, perplexity, agreement with the full cache.");
  command->add_option("--model", options->model, "Model, a GGUF file of a Llama architecture")
      ->required();
  command->add_option("--text", options->text, "Text that the profile did not see")->required();
  command
      ->add_option("--blueprint", options->blueprints,
                   "Blueprint; with several, the first is the main one and all make a curve")
      ->required();
  command->add_option("--windows-of", options->window, "Tokens that each empty cache is fed")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--tokens", options->tokens,
                   "Tokens in all, in whole windows; fewer where the text is shorter")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_choice<cache_type>(
      *command, "--cache-type", options->type,
      {{"f32", cache_type::f32}, {"f16", cache_type::f16}, {"bf16", cache_type::bf16}},
      "Element type of the cache; default: f16");
  command->add_option("--json", options->json, "Write all figures to this file");
  command->footer(
      "Example:\n"
      "  headwise eval --model M.gguf --text test.txt --blueprint blueprint.json\n"
      "Runs the full cache, the blueprint, and two rivals that hold at least as many bytes:\n"
      "one window for every head, and one behind the first tokens.\n");
  command->callback([options] { run_eval(*options); });
}

}  // namespace headwise_tool
