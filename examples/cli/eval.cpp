// SPDX-License-Identifier: Apache-2.0

#include "eval.hpp"

#include <filesystem>
#include <iostream>

#include "blueprint_file.hpp"
#include "evaluation_json.hpp"
#include "evaluation_table.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "prompts.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

}  // namespace

void run_eval(const eval_options& options) {
  std::vector<fs::path> inputs = options.blueprints;
  inputs.insert(inputs.end(), {options.model, options.text});
  require_no_input("--json", options.json, inputs);
  const auto model = load_engine(options.engine, options.model);
  std::vector<headwise::blueprint> blueprints;
  for (const fs::path& path : options.blueprints)
    blueprints.push_back(read_matching_blueprint(path, model->facts(), options.model));
  const std::size_t count = std::max<std::size_t>(1, options.tokens / options.window);
  const auto windows = cut_up_to(*model, options.text, {count, options.window});

  evaluation result;
  {
    progress bar("evaluating", windows.size() * options.window * plans_of(blueprints.size()),
                 "tokens");
    result = evaluate(*model, windows, blueprints, options.type,
                      [&](std::uint64_t tokens) { bar.reach(tokens); });
  }
  result.text = options.text.filename().string();
  print_evaluation(std::cout, result);
  if (options.json.empty()) return;
  save_evaluation(options.json, result);
  std::cout << "\nwritten: " << options.json.string() << '\n';
}

}  // namespace headwise_tool
