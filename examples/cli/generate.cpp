// SPDX-License-Identifier: Apache-2.0

#include "generate.hpp"

#include <filesystem>
#include <iostream>
#include <optional>

#include "blueprint_file.hpp"
#include "llama/sampler.hpp"
#include "numbers.hpp"
#include "prompts.hpp"

namespace headwise_tool {
namespace {

headwise::blueprint chosen_blueprint(const generate_options& options, const model_facts& model) {
  if (options.blueprint.empty())
    return headwise::uniform_blueprint(model.shape, headwise::make_spec(headwise::global{}));
  return read_matching_blueprint(options.blueprint, model, options.model);
}

void print_held(const headwise::cache_stats& stats) {
  std::cerr << "\nkept " << with_commas(stats.payload_bytes) << " of "
            << with_commas(stats.full_bytes) << " bytes of keys and values ("
            << percent(stats.kept_ratio()) << ") after " << counted(stats.length, "token") << "; "
            << with_commas(stats.held_bytes()) << " bytes held in all\n";
}

}  // namespace

void run_generate(const generate_options& options) {
  const auto model = load_engine(options.engine, options.model);
  const headwise::blueprint plan = chosen_blueprint(options, model->facts());
  token_ids prompt = model->facts().start;
  const token_ids ids =
      encode_from("--prompt", *model, options.prompt, engine::special_tokens::as_tokens);
  prompt.insert(prompt.end(), ids.begin(), ids.end());
  if (prompt.empty())
    headwise::raise(headwise::error_code::missing, "--prompt", "no token",
                    "some text: this model has no token to begin with");
  require_context(model->facts(), prompt.size() + options.tokens,
                  "--prompt of " + with_commas(prompt.size()) + " and --tokens of " +
                      with_commas(options.tokens));

  text_options how;
  how.capacity = static_cast<headwise::token_count>(prompt.size()) + options.tokens;
  const auto text = model->open(plan, how);
  llama_example::sampler sampler(options.sampling);
  std::cout << options.prompt << std::flush;
  std::span<const float> logits = text->feed(prompt);
  for (headwise::token_count i = 0; i < options.tokens; ++i) {
    const std::int32_t next = sampler.pick(logits);
    if (model->is_end(next)) break;
    std::cout << model->piece(next) << std::flush;
    logits = text->feed(std::span(&next, 1));
  }
  std::cout << '\n';
  print_held(text->stats());
}

}  // namespace headwise_tool
