// SPDX-License-Identifier: Apache-2.0
//
// 03: going back and branching. Drafts are taken back exactly, within a horizon that is paid for in
// rows; beams share pages until they part; what cannot be done is refused and changes nothing.
#include <cstdio>
#include <optional>

#include "headwise/headwise.hpp"
#include "support/claims.hpp"
#include "support/toy_model.hpp"

namespace hw = headwise;

constexpr hw::model_shape shape{.layers = 1, .query_heads = 2, .kv_heads = 1, .head_dim = 64};
constexpr hw::head_id head{0, 0};
constexpr hw::token_count near = 64, draft_room = 4;
using attended = std::optional<std::vector<float>>;

// Appends one token and returns what its query read; nullopt where the cache has no pages left.
// source: the position in the model whose rows the token gets, so that drafts can be wrong.
template <class Sequence>
attended decode(Sequence& text, const toy_model& model, hw::position source) {
  const hw::token next{.pos = text.length()};
  auto step = text.try_append(next);
  if (!step) return std::nullopt;
  hw::attend_scratch scratch(shape.group_size(), shape.head_dim, near);
  std::vector<float> out(std::size_t{shape.group_size()} * shape.head_dim);
  step->write(head, model.keys(head, source), model.values(head, source));
  hw::attend(step->head(head), next.pos, model.queries(head, source), model.scale(),
             {out.data(), shape.group_size(), shape.head_dim}, {}, scratch);
  std::move(*step).commit();
  return out;
}

int main() {
  const toy_model model(shape, 256);
  hw::cache_manager<> cache(shape, {hw::local_window(near)},
                            {.page_tokens = 16, .pages = 16, .rollback_horizon = draft_room});
  claims claims;

  // Speculative decoding: four drafts, all wrong. The window moved over four old tokens, but the
  // horizon kept them. The twin never sees a draft.
  auto text = cache.open(), twin = cache.open();
  for (hw::position pos = 0; pos < 100; ++pos)
    claims.require(decode(text, model, pos) && decode(twin, model, pos));
  std::printf("a window of %u and a horizon of %u: %zu rows\n", near, draft_room,
              text.stats().resident_rows);
  for (hw::position draft = 200; draft < 204; ++draft)
    claims.require(decode(text, model, draft).has_value());
  claims.check(text.try_rollback(4) && decode(text, model, 100) == decode(twin, model, 100),
               "four drafts are taken back: the next token reads the same bits");

  // Further back there are rows missing. A refusal can be asked for its reason.
  if (const auto why = text.rollback_blocker(10))
    std::printf("taking back 10: %s needs position %u and has those from %u\n",
                hw::to_string(why->head).c_str(), why->needed, why->oldest_kept);
  claims.check(!text.try_rollback(10) && decode(text, model, 101) == decode(twin, model, 101),
               "a rollback that would not be exact is refused, and nothing changed");

  // Beams: a fork shares all pages; who writes into a shared page copies that one page.
  const std::size_t alone = cache.stats().pages_in_use;
  auto beam = text.fork();
  const attended left = decode(text, model, 102), right = decode(beam, model, 205);
  const std::size_t together = cache.stats().pages_in_use;
  std::printf("pages before the fork: %zu; with two beams: %zu\n", alone, together);
  claims.check(left != right && left == decode(twin, model, 102), "each beam goes its own way");
  claims.check(together <= alone + 2, "and the two share the pages of what they have in common");

  // The pages are counted out. A step that does not fit is refused whole; the engine closes or
  // shortens another sequence and tries again.
  auto late = cache.open();
  while (decode(late, model, late.length())) {
  }
  const hw::token_count stored = late.length();
  std::printf("%zu of %zu pages in use: token %u is refused\n", cache.stats().pages_in_use,
              cache.stats().pages_in_use + cache.stats().pages_available, stored);
  { const auto closed = std::move(twin); }
  claims.check(decode(late, model, stored) && late.length() == stored + 1,
               "after another sequence closed, the same step fits");
  return claims.exit_code();
}
