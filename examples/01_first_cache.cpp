// SPDX-License-Identifier: Apache-2.0
//
// 01: a decode loop around headwise, whole, and what it then holds beside a full cache.
#include <cstdio>

#include "headwise/headwise.hpp"
#include "support/claims.hpp"
#include "support/toy_model.hpp"

namespace hw = headwise;

int main() {
  const hw::model_shape shape{.layers = 2, .query_heads = 8, .kv_heads = 2, .head_dim = 64};
  const hw::token_count length = 1024;
  const toy_model model(shape, length);

  // One policy for each head. Most heads look at the first tokens and at a window behind the
  // newest; one looks everywhere. A real engine loads such a plan from a file: see 06.
  hw::blueprint plan =
      hw::uniform_blueprint(shape,
                            hw::make_spec(hw::union_of(hw::special_tokens(hw::token_classes::sink),
                                                       hw::local_window(128))),
                            "sink+local(128)", {.sink_count = 4, .classes = {}});
  const hw::head_id far_sighted{1, 0};
  plan.heads[std::size_t{far_sighted.layer} * shape.kv_heads + far_sighted.kv_head] = {};  // global
  const hw::token_classifier classifier = hw::make_classifier(plan);

  // Everything that an engine adds to its loop stands between here and the stats.
  hw::cache_manager<> cache(plan, {});
  auto text = cache.open();
  hw::attend_scratch scratch(shape.group_size(), shape.head_dim, length);
  std::vector<float> out(std::size_t{shape.group_size()} * shape.head_dim);
  float worst = 0.0F;
  for (hw::position pos = 0; pos < length; ++pos) {
    const hw::token next = classifier.classify(0, pos);
    auto step = text.try_append(next);
    if (!step) return std::puts("no memory for another token; the sequence is as it was"), 1;
    for (hw::head_id head; head.layer < shape.layers; ++head.layer)
      for (head.kv_head = 0; head.kv_head < shape.kv_heads; ++head.kv_head) {
        step->write(head, model.keys(head, pos), model.values(head, pos));
        hw::attend(step->head(head), pos, model.queries(head, pos), model.scale(),
                   {out.data(), shape.group_size(), shape.head_dim}, {}, scratch);
        // A policy changes which tokens a head sees, and nothing else.
        const auto sees = [&](hw::position key) {
          return head == far_sighted || key < 4 || pos - key < 128;
        };
        if (pos % 31 == 0 || pos + 1 == length)
          worst = std::max(worst, difference(out, model.attention(head, pos, sees)));
      }
    std::move(*step).commit();
  }

  const hw::cache_stats stats = text.stats();
  std::printf("%u tokens, %u layers x %u KV heads, rows in f16\n", stats.length, shape.layers,
              shape.kv_heads);
  std::printf("  full cache   %7zu rows %9zu bytes\n", stats.full_rows, stats.full_bytes);
  std::printf("  headwise     %7zu rows %9zu bytes (%.1f %%)\n", stats.resident_rows,
              stats.payload_bytes, 100.0 * stats.kept_ratio());
  std::printf("  and for it   %9zu bytes of positions and pages, %zu reserved in pages\n",
              stats.metadata_bytes, stats.reserved_bytes);

  claims claims;
  claims.check(worst < 1e-5F, "each head attended to the tokens of its policy and to no other");
  claims.check(stats.resident_rows == 1024 + 3 * (4 + 128), "each head stores just those tokens");
  claims.check(stats.held_bytes() < stats.full_bytes / 2, "less than half the memory, all counted");
  return claims.exit_code();
}
