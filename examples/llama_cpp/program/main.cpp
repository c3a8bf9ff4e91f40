// SPDX-License-Identifier: Apache-2.0
//
// A text from a GGUF file and a blueprint inside stock llama.cpp, and what it costs beside it.

#include <exception>
#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>
#include <llama.h>

#include "options.hpp"

namespace {

using namespace headwise_llama_cpp;

template <class T>
void add_choice(CLI::App& command, const std::string& name, T& value,
                const std::map<std::string, T>& words, const std::string& help) {
  command.add_option(name, value, help)->transform(CLI::CheckedTransformer(words));
}

void add_rows(CLI::App& command, row_type& rows) {
  add_choice<row_type>(command, "--rows", rows,
                       {{"f32", row_type::f32},
                        {"f16", row_type::f16},
                        {"bf16", row_type::bf16},
                        {"int8", row_type::int8},
                        {"int4", row_type::int4},
                        {"int8+int4", row_type::int8_int4}},
                       "What keys and values are stored as");
}

void add_run(CLI::App& command, run_options& options) {
  command.add_option("--model", options.model, "The GGUF file")->required();
  command.add_option("--blueprint", options.blueprint, "Without one every head is global");
  command.add_option("--text", options.text, "A file with the text");
  command.add_option("--tokens", options.tokens, "To write, or of the text");
  command.add_option("--threads", options.threads, "Of llama.cpp");
  add_choice<engine_kind>(command, "--engine", options.engine,
                          {{"takeover", engine_kind::takeover},
                           {"emulation", engine_kind::emulation},
                           {"stock", engine_kind::stock},
                           {"stock-flash", engine_kind::stock_flash}},
                          "What holds the rows");
  add_choice<takeover_form>(command, "--form", options.form,
                            {{"automatic", takeover_form::automatic},
                             {"op-swap", takeover_form::op_swap},
                             {"overwrite", takeover_form::overwrite}},
                            "Of the takeover");
  add_rows(command, options.rows);
}

// The commands, with options that live as long as the parser.
struct commands {
  CLI::App app{"headwise inside stock llama.cpp"};
  run_options run;
  record_options record;
  compare_options compare;

  commands() {
    app.require_subcommand(1);
    CLI::App* const generate = app.add_subcommand("generate", "Write what follows a prompt");
    generate->add_option("--prompt", run.prompt, "Its text");
    add_run(*generate, run);
    generate->callback([this] { run_generate(run); });
    CLI::App* const eval = app.add_subcommand("eval", "The perplexity of a text");
    add_run(*eval, run);
    eval->callback([this] { run_eval(run); });
    add_record();
    add_compare();
  }

 private:
  void add_record() {
    CLI::App* const command = app.add_subcommand("record", "Attention maps, to profile");
    command->add_option("--model", record.model, "The GGUF file")->required();
    command->add_option("--text", record.text, "What to record")->required();
    command->add_option("--out", record.out, "A .safetensors file")->required();
    command->add_option("--prompts", record.prompts, "How many pieces of the text");
    command->add_option("--length", record.length, "Tokens of each");
    command->add_option("--sinks", record.sinks, "The first positions that count as sinks");
    command->add_option("--threads", record.threads, "Of llama.cpp");
    command->callback([this] { run_record(record); });
  }
  void add_compare() {
    CLI::App* const command = app.add_subcommand("compare", "Speed beside stock llama.cpp");
    auto* const model = command->add_option("--model", compare.model, "The GGUF file");
    command
        ->add_option("--random-layers", compare.random_layers,
                     "In place of a file: so many layers of the width of an 8B model")
        ->excludes(model);
    command->add_option("--blueprint", compare.blueprint,
                        "Without one every other head has sinks and a window");
    command->add_option("--window", compare.window, "Of those heads");
    command->add_option("--lengths", compare.lengths, "Tokens before those timed, ascending")
        ->delimiter(',');
    command->add_option("--threads", compare.threads, "Numbers of threads")->delimiter(',');
    command->add_option("--tokens", compare.tokens, "To time at each length");
    add_rows(*command, compare.rows);
    command->callback([this] { run_compare(compare); });
  }
};

}  // namespace

int main(int argc, char** argv) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level >= GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_CONT) std::cerr << text;
      },
      nullptr);
  commands all;
  try {
    all.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return all.app.exit(e);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
