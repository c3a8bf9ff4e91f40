// SPDX-License-Identifier: Apache-2.0
//
// 05: a policy of your own. Two functions make it one; two more let a blueprint name it. Nothing in
// headwise has to know it.
#include <cstdio>

#include "headwise/headwise.hpp"
#include "support/claims.hpp"
#include "support/toy_model.hpp"

namespace hw = headwise;

// The last `window` tokens, and of all others every `stride`-th: near in full, far in outline.
class outline {
 public:
  static constexpr std::string_view kind = "example.outline";  // its name in a blueprint

  outline() = default;
  outline(hw::token_count window, hw::token_count stride) : window_(window), stride_(stride) {}

  // The policy itself: how many queries may see this token, its own being the first. Pure.
  hw::token_count lifetime(const hw::token& t) const noexcept {
    return t.pos % stride_ == 0 ? hw::forever : window_;
  }
  // All that lifetime() ever says. A head has one stream of rows for each.
  hw::lifetime_set lifetimes() const noexcept { return {window_, hw::forever}; }
  friend bool operator==(const outline&, const outline&) = default;

  // Between policy and blueprint. A file is not to be trusted: say what is wrong with it.
  hw::policy_spec to_spec() const {
    return {std::string(kind), {{"window", window_}, {"stride", stride_}}, {}, {}};
  }
  static outline from_spec(const hw::policy_spec& spec, const std::string& place) {
    return {at_least_one(spec, "window", place), at_least_one(spec, "stride", place)};
  }

 private:
  static hw::token_count at_least_one(const hw::policy_spec& spec, std::string_view name,
                                      const std::string& place) {
    return static_cast<hw::token_count>(hw::spec_param(spec, name, 1, hw::forever - 1, place));
  }

  hw::token_count window_ = 1, stride_ = 1;
};
static_assert(hw::retention_policy<outline>);

// The set that this engine's caches choose from. Policies combine: a union with it is one, too.
using policies = hw::policy_list<hw::global, hw::local_window, outline,
                                 hw::union_of<outline, hw::special_tokens>>;

int main() {
  const hw::model_shape shape{.layers = 1, .query_heads = 2, .kv_heads = 2, .head_dim = 32};
  const hw::token_count length = 500;
  const toy_model model(shape, length);

  const outline every_eighth(64, 8);
  const hw::blueprint plan =
      hw::uniform_blueprint(shape, hw::make_spec(every_eighth), "outline(64, 8)");
  hw::cache_manager<policies> cache(plan, {});
  auto text = cache.open();
  for (hw::position pos = 0; pos < length; ++pos) {
    const hw::token next{.pos = pos};
    auto step = text.try_append(next);
    if (!step) return 1;
    for (hw::head_id head; head.kv_head < shape.kv_heads; ++head.kv_head)
      step->write(head, model.keys(head, pos), model.values(head, pos));
    std::move(*step).commit();
  }

  const hw::position newest = length - 1;
  const hw::head_id head{0, 1};
  std::vector<float> out(shape.head_dim);
  hw::attend_scratch scratch(1, shape.head_dim, length);
  hw::attend(text.head(head), newest, model.queries(head, newest), model.scale(),
             {out.data(), 1, out.size()}, {}, scratch);
  const auto visible = [&](hw::position pos) { return newest - pos < 64 || pos % 8 == 0; };
  std::size_t expected = 0;
  for (hw::position pos = 0; pos < length; ++pos) expected += visible(pos) ? 1U : 0U;
  std::printf("outline(64, 8) after %u tokens: %zu of %zu rows\n", length,
              text.stats().resident_rows, text.stats().full_rows);

  claims claims;
  claims.check(text.stats().resident_rows == 2 * expected, "the cache stores what the policy says");
  claims.check(difference(out, model.attention(head, newest, visible)) < 1e-5F,
               "and a query sees just that");
  claims.check(
      hw::make_policy<policies>(hw::make_spec(every_eighth)) == policies::variant(every_eighth),
      "through a blueprint and back it is the same policy");
  try {
    const hw::cache_manager<> refused(plan, {});
    claims.check(false, "a cache without this policy refuses the blueprint");
  } catch (const hw::error& e) {
    std::printf("a cache of built-in policies: %s\n", e.what());
    claims.check(e.code() == hw::error_code::unsupported,
                 "a cache without this policy refuses the blueprint");
  }
  return claims.exit_code();
}
