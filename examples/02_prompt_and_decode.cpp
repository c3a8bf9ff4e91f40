// SPDX-License-Identifier: Apache-2.0
//
// 02: how a prompt gets in. At once, in chunks or token by token: a head ends up with the same rows
// and answers with the same bits. What differs is the memory on the way.
#include <algorithm>
#include <cstdio>

#include "headwise/headwise.hpp"
#include "support/claims.hpp"
#include "support/toy_model.hpp"

namespace hw = headwise;

constexpr hw::model_shape shape{.layers = 1, .query_heads = 4, .kv_heads = 2, .head_dim = 64};
constexpr hw::token_count prompt_length = 600, length = 640;

struct outcome {
  std::vector<float> prompt, decode;  // attention outputs, token by token, head by head
  std::size_t resident_rows = 0, peak_pages = 0;
};

outcome run(const toy_model& model, hw::token_count chunk, hw::attend_scope scope) {
  const hw::local_window near(96);
  const hw::special_tokens sinks(hw::token_classes::sink);
  hw::cache_manager<> cache(shape, {near, hw::union_of(sinks, near)}, {});
  auto text = cache.open();
  const hw::token_classifier classifier(4);
  hw::attend_scratch scratch(shape.group_size(), shape.head_dim, length);
  std::vector<float> out(std::size_t{shape.group_size()} * shape.head_dim);
  outcome result;
  const auto append = [&](hw::token_count count, hw::attend_scope who_attends) {
    const std::vector<std::int32_t> ids(count, 0);
    const auto tokens = classifier.tokens(ids, text.length());
    auto step = text.try_append(tokens, who_attends);
    if (!step) return false;
    result.peak_pages = std::max(result.peak_pages, cache.stats().pages_in_use);
    for (hw::head_id head; head.kv_head < shape.kv_heads; ++head.kv_head) {
      step->write(head, model.keys(head, text.length(), count),
                  model.values(head, text.length(), count));
      // Each query of a chunk sees what it would have seen token by token, no more and no less.
      for (hw::position query = step->head(head).first_query(); query < text.length() + count;
           ++query) {
        hw::attend(step->head(head), query, model.queries(head, query), model.scale(),
                   {out.data(), shape.group_size(), shape.head_dim}, {}, scratch);
        auto& outputs = query < prompt_length ? result.prompt : result.decode;
        outputs.insert(outputs.end(), out.begin(), out.end());
      }
    }
    std::move(*step).commit();
    return true;
  };
  bool stored = true;
  while (stored && text.length() < prompt_length)
    stored = append(std::min(chunk, prompt_length - text.length()), scope);
  result.resident_rows = text.stats().resident_rows;
  while (stored && text.length() < length) stored = append(1, hw::attend_scope::every_query);
  return stored ? result : outcome{};
}

int main() {
  const toy_model model(shape, length);
  const outcome by_token = run(model, 1, hw::attend_scope::every_query);
  const outcome in_chunks = run(model, 250, hw::attend_scope::every_query);
  const outcome at_once = run(model, prompt_length, hw::attend_scope::every_query);
  // An engine that computes the prompt's attention by itself says so: only the newest query will
  // read the cache, and rows that it does not see are not stored at all.
  const outcome own_prefill = run(model, prompt_length, hw::attend_scope::last_query);

  const auto print = [](const char* name, const outcome& o) {
    std::printf("  %-29s %4zu rows after the prompt, at most %2zu pages\n", name, o.resident_rows,
                o.peak_pages);
  };
  std::printf("a prompt of %u tokens, windows of 96:\n", prompt_length);
  print("token by token", by_token);
  print("chunks of 250", in_chunks);
  print("at once", at_once);
  print("at once, last query attends", own_prefill);

  claims claims;
  claims.check(by_token.resident_rows == 96 + 4 + 96, "a window of 96 holds 96 rows");
  claims.check(by_token.resident_rows == in_chunks.resident_rows &&
                   by_token.resident_rows == at_once.resident_rows &&
                   by_token.resident_rows == own_prefill.resident_rows,
               "the same rows stay, however the prompt came in");
  claims.check(!by_token.decode.empty() && by_token.decode == in_chunks.decode &&
                   by_token.decode == at_once.decode && by_token.decode == own_prefill.decode,
               "the tokens after the prompt read the same bits");
  claims.check(own_prefill.peak_pages < at_once.peak_pages,
               "last_query takes fewer pages for the same prompt");
  return claims.exit_code();
}
