// SPDX-License-Identifier: Apache-2.0

#include "generate.hpp"

#include <filesystem>
#include <iostream>
#include <optional>

#include "blueprint_file.hpp"
#include "llama/sampler.hpp"
#include "llama/session.hpp"
#include "numbers.hpp"
#include "prompts.hpp"

namespace headwise_tool {
namespace {

headwise::blueprint chosen_blueprint(const generate_options& options,
                                     const llama_example::model& model) {
  if (options.blueprint.empty())
    return headwise::uniform_blueprint(model.shape(), headwise::make_spec(headwise::global{}));
  return read_matching_blueprint(options.blueprint, model, options.model);
}

void print_held(const headwise::cache_stats& stats) {
  std::cerr << "\nkept " << with_commas(stats.payload_bytes) << " of "
            << with_commas(stats.full_bytes) << " bytes of keys and values ("
            << percent(stats.kept_ratio()) << ") after " << with_commas(stats.length) << " tokens; "
            << with_commas(stats.held_bytes()) << " bytes held in all\n";
}

}  // namespace

void run_generate(const generate_options& options) {
  const llama_example::model model(options.model);
  const headwise::blueprint plan = chosen_blueprint(options, model);
  const auto& tokenizer = model.tokens();
  const token_ids prompt = tokenizer.encode(options.prompt, {.bos = true, .special_tokens = true});
  if (prompt.empty())
    headwise::raise(headwise::error_code::missing, "--prompt", "no token",
                    "some text: this model has no token to begin with");
  require_context(model, prompt.size() + options.tokens,
                  "--prompt of " + with_commas(prompt.size()) + " and --tokens of " +
                      with_commas(options.tokens));

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
  print_held(session.stats());
}

}  // namespace headwise_tool
