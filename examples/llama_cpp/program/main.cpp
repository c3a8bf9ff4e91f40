// SPDX-License-Identifier: Apache-2.0
//
// What per-head rows cost and save inside stock llama.cpp, beside llama.cpp as it is. Texts are
// recorded, evaluated and written by the `headwise` tool, with --engine llama.cpp.

#include <exception>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace {

using namespace headwise_llama_cpp;

void add_options(CLI::App& command, contest_options& options) {
  CLI::Option_group* const model = command.add_option_group("Model", "One of");
  model->add_option("--model", options.model, "The GGUF file");
  model->add_option("--random-layers", options.random_layers,
                    "So many layers of the width of an 8B model, with random weights");
  model->require_option(1);
  command.add_option("--blueprint", options.blueprint,
                     "Without one every other head has sinks and a window");
  command.add_option("--window", options.window, "Of those heads");
  command.add_option("--lengths", options.lengths, "Tokens of the text, ascending")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{2}, std::size_t{headwise::max_length}));
  command.add_option("--threads", options.threads, "Numbers of threads")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  const std::map<std::string, row_type> rows{
      {"f32", row_type::f32},   {"f16", row_type::f16},   {"bf16", row_type::bf16},
      {"int8", row_type::int8}, {"int4", row_type::int4}, {"int8+int4", row_type::int8_int4}};
  command.add_option("--rows", options.rows, "What the takeover's keys and values are stored as")
      ->transform(CLI::CheckedTransformer(rows));
}

}  // namespace

int main(int argc, char** argv) {
  log_errors_only();
  contest_options options;
  std::size_t tokens = 48;
  CLI::App app{"headwise inside stock llama.cpp, beside llama.cpp as it is"};
  app.require_subcommand(1);
  CLI::App* const compare = app.add_subcommand("compare", "Speed, all engines in turn");
  add_options(*compare, options);
  compare->add_option("--tokens", tokens, "To time at each length")
      ->check(CLI::Range(std::size_t{1}, std::size_t{headwise::max_length}));
  compare->callback([&] { run_compare(options, tokens); });
  CLI::App* const memory = app.add_subcommand("memory", "The resident set, a process each");
  add_options(*memory, options);
  memory->callback([&] { run_memory(options); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
