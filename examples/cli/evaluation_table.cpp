// SPDX-License-Identifier: Apache-2.0

#include "evaluation_table.hpp"

#include "numbers.hpp"
#include "text_table.hpp"

#include "headwise/core/printable.hpp"

namespace headwise_tool {
namespace {

void add_plan(text_table& table, const evaluation& result, const std::string& name,
              const plan_score& score) {
  const bool full = &score == &result.full;
  table.add({name, short_bytes(score.resident_bytes),
             percent(score.resident_bytes / result.full_bytes), fixed(score.perplexity, 3),
             full ? "" : change(score.perplexity, result.full.perplexity),
             full ? "" : percent(score.agreement), fixed(score.tokens_per_second, 0)});
}

}  // namespace

void print_evaluation(std::ostream& out, const evaluation& result) {
  out << headwise::printable(result.model) << " on " << headwise::printable(result.text) << ": "
      << counted(result.tokens_evaluated, "token") << " in windows of "
      << with_commas(result.window_tokens) << ", " << result.cache << " cache\n\n";
  text_table table({"", "bytes held", "kept", "perplexity", "change", "same token", "tokens/s"});
  add_plan(table, result, "full cache", result.full);
  for (const blueprint_score& at : result.scores) {
    if (result.scores.size() > 1) table.rule();
    add_plan(table, result, "blueprint, target " + fixed(at.recovery_target, 2), at.blueprint);
    add_plan(table, result,
             "first " + std::to_string(at.sinks) + " + last " +
                 counted(at.window_behind_sinks, "token") + ", every head",
             at.sinks_and_window);
    add_plan(table, result, "last " + counted(at.window, "token") + ", every head",
             at.plain_window);
  }
  table.print(out);
  out << "\n  bytes held  what the cache's memory resource gave out (keys, values, positions, "
         "page\n"
         "              tables, unfilled slots), read after every "
      << step_tokens
      << " tokens: the mean\n"
         "  kept        of "
      << short_bytes(result.full_bytes)
      << ", the keys and values of a dense cache at the same positions\n"
         "  same token  positions where the likeliest next token is that of the full cache\n";
}

}  // namespace headwise_tool
