// SPDX-License-Identifier: Apache-2.0

#include "eval.hpp"

#include <filesystem>
#include <iostream>
#include <span>

#include "blueprint_file.hpp"
#include "evaluation_json.hpp"
#include "evaluation_table.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "suite_report.hpp"
#include "suite_run.hpp"
#include "usage_error.hpp"

#include "headwise/io/replacing_file.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

void require_options(const eval_options& options) {
  const auto require = [](bool given, const char* option) {
    if (!given) throw usage_error(std::string(option) + " is required");
  };
  if (options.suite.empty()) {
    require(!options.model.empty(), "--model");
    require(!options.text.empty(), "--text");
    require(!options.blueprints.empty(), "--blueprint");
    if (!options.html.empty()) throw usage_error("--html is the page of a --suite");
    return;
  }
  require(!options.json.empty(), "--json");
  if (!options.model.empty() || !options.text.empty() || !options.blueprints.empty())
    throw usage_error(
        "--suite names model, texts and plans in its file: no --model, --text, "
        "--blueprint");
}

void run_suite_file(const eval_options& options) {
  const suite what = load_suite(options.suite);
  std::vector<fs::path> inputs{options.suite, what.model};
  for (const plan_family& family : what.plans) {
    inputs.insert(inputs.end(), family.maps.begin(), family.maps.end());
    inputs.push_back(family.file);
  }
  for (const task_options& task : what.tasks) inputs.push_back(task.text);
  require_apart("--html", options.html, "--json", options.json);
  require_output("--json", options.json, inputs);
  require_output("--html", options.html, inputs);
  const suite_outcome outcome = run_suite(what, options.json, options.engine);
  print_suite(std::cout, what, outcome);
  std::cout << "\nwritten: " << options.json.string() << '\n';
  if (options.html.empty()) return;
  const std::string html = suite_page(what, outcome);
  headwise::replacing_file file(options.html);
  file.write_at(0, std::as_bytes(std::span(html)));
  file.commit();
  std::cout << "written: " << options.html.string() << '\n';
}

}  // namespace

void run_eval(const eval_options& options) {
  require_options(options);
  if (!options.suite.empty()) return run_suite_file(options);
  std::vector<fs::path> inputs = options.blueprints;
  inputs.insert(inputs.end(), {options.model, options.text});
  require_output("--json", options.json, inputs);
  const auto model = load_engine(options.engine, options.model);
  std::vector<headwise::blueprint> blueprints;
  for (const fs::path& path : options.blueprints)
    blueprints.push_back(read_matching_blueprint(path, model->facts(), options.model));
  const auto windows = cut_windows(*model, options);

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
