// SPDX-License-Identifier: Apache-2.0
//
// headwise generate: continues a prompt with a cache that keeps what a blueprint says.

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "commands.hpp"
#include "llama/sampler.hpp"
#include "llama/session.hpp"
#include "matching_blueprint.hpp"
#include "numbers.hpp"
#include "prompts.hpp"

namespace headwise_tool {
namespace {

struct generate_options {
  std::filesystem::path model, blueprint;
  std::string prompt;
  headwise::token_count tokens = 128;
  llama_example::sampling sampling;
};

headwise::blueprint chosen_blueprint(const generate_options& options,
                                     const llama_example::model& model) {
  if (options.blueprint.empty())
    return headwise::uniform_blueprint(model.shape(), headwise::make_spec(headwise::global{}));
  return load_matching_blueprint(options.blueprint, model, options.model);
}

void report(const headwise::cache_stats& stats) {
  std::cerr << "\nkept " << with_commas(stats.payload_bytes) << " of "
            << with_commas(stats.full_bytes) << " bytes of keys and values ("
            << percent(stats.kept_ratio()) << ") after " << with_commas(stats.length) << " tokens; "
            << with_commas(stats.held_bytes()) << " bytes held in all\n";
}

void run_generate(const generate_options& options) {
  const llama_example::model model(options.model);
  const headwise::blueprint plan = chosen_blueprint(options, model);
  const auto& tokenizer = model.tokens();
  const token_ids prompt = tokenizer.encode(options.prompt, {.bos = true, .special_tokens = true});
  if (prompt.empty())
    headwise::raise(headwise::error_code::missing, "--prompt", "no token",
                    "some text: this model has no token to begin with");

  llama_example::session_options session_options;
  session_options.capacity = static_cast<headwise::token_count>(prompt.size()) + options.tokens;
  llama_example::session<headwise::f16> session(model, plan, session_options);
  llama_example::sampler sampler(options.sampling);
  std::cout << options.prompt << std::flush;
  std::span<const float> logits = session.feed(prompt);
  for (headwise::token_count i = 0; i < options.tokens; ++i) {
    const std::int32_t next = sampler.pick(logits);
    if (tokenizer.is_end(next)) break;
    std::cout << tokenizer.piece(next) << std::flush;
    logits = session.feed(std::span(&next, 1));
  }
  std::cout << '\n';
  report(session.stats());
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto options = std::make_shared<generate_options>();
  CLI::App* const command =
      app.add_subcommand("generate", "Continue a prompt, with or without a blueprint.");
  command->add_option("--model", options->model, "Model, a GGUF file of a Llama architecture")
      ->required();
  command->add_option("--prompt", options->prompt, "Text to continue")->required();
  command->add_option("--blueprint", options->blueprint, "Blueprint; without it, a full cache");
  command->add_option("--tokens", options->tokens, "The most tokens to add")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1U << 24));
  command->add_option("--temperature", options->sampling.temperature, "0: the likeliest token")
      ->capture_default_str();
  command
      ->add_option("--top-p", options->sampling.top_p,
                   "Draw from the fewest likeliest tokens that hold this probability")
      ->capture_default_str();
  command->add_option("--seed", options->sampling.seed, "Same seed, same text")
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  headwise generate --model M.gguf --prompt 'Once upon a time' --blueprint blueprint.json\n"
      "The text goes to standard output, what was kept to standard error.");
  command->callback([options] { run_generate(*options); });
}

}  // namespace headwise_tool
