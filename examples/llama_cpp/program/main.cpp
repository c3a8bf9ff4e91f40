// SPDX-License-Identifier: Apache-2.0
//
// What per-head rows cost and save inside stock llama.cpp, beside llama.cpp as it is. Texts are
// recorded, evaluated and written by the `headwise` tool, with --engine llama.cpp.

#include <exception>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "random_model.hpp"

#include "support/option_choice.hpp"
#include "support/standard_output.hpp"

namespace {

using namespace headwise_llama_cpp;

void add_options(CLI::App& command, contest_options& options) {
  CLI::Option_group* const model = command.add_option_group("Model", "One of");
  model->add_option("--model", options.model, "The GGUF file");
  model
      ->add_option("--random-layers", options.random_layers,
                   "So many layers of the width of an 8B model, with random weights")
      ->check(CLI::Range(1U, most_layers));
  model->require_option(1);
  command.add_option("--blueprint", options.blueprint,
                     "Without one every other head has sinks and a window");
  command.add_option("--window", options.window, "Of those heads")
      ->check(CLI::Range(headwise::token_count{1}, headwise::max_length));
  command.add_option("--lengths", options.lengths, "Tokens of the text, ascending")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{2}, longest_text));
  command.add_option("--threads", options.threads, "Numbers of threads")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  add_choice<row_type>(command, "--rows", options.rows,
                       {{"f32", row_type::f32},
                        {"f16", row_type::f16},
                        {"bf16", row_type::bf16},
                        {"int8", row_type::int8},
                        {"int4", row_type::int4},
                        {"int8+int4", row_type::int8_int4}},
                       "What the takeover's keys and values are stored as; default: f16");
}

int parse_and_run(int argc, char** argv) {
  contest_options options;
  std::size_t tokens = 48;
  CLI::App app{"headwise inside stock llama.cpp, beside llama.cpp as it is"};
  app.require_subcommand(1);
  CLI::App* const compare = app.add_subcommand("compare", "Speed, all engines in turn");
  add_options(*compare, options);
  compare->add_option("--tokens", tokens, "To time at each length")
      ->check(CLI::Range(std::size_t{1}, longest_text));
  compare->callback([&] {
    read_plan(options);
    run_compare(options, tokens);
  });
  CLI::App* const memory = app.add_subcommand("memory", "The resident set, a process each");
  add_options(*memory, options);
  memory->callback([&] {
    read_plan(options);
    run_memory(options);
  });
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    constexpr int bad_usage = 2;
    return app.exit(e) == 0 ? 0 : bad_usage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  log_errors_only();
  try {
    const int code = parse_and_run(argc, argv);
    if (code == 0) require_printed();
    return code;
  } catch (const std::exception& e) {
    complain(e);
    return 1;
  }
}
