// SPDX-License-Identifier: Apache-2.0
//
// What does asking a policy cost? Two ways that a cache asks: a prompt puts 4096 tokens before the
// policy of one head; decode puts one token before the policies of 4096 heads, each behind its own
// variant. The baseline is an engine without policies: a window, in the code or in a table.
#include <algorithm>
#include <variant>

#include "headwise/headwise.hpp"
#include "support/comparison.hpp"

namespace headwise_bench {
namespace {

namespace hw = headwise;
using any_policy = hw::builtin_policies::variant;
using token_list = std::vector<hw::token>;

constexpr hw::token_count total = 4096, window = 256;
constexpr hw::position newest = total - 1;

// Every 8th token is punctuation; ids run through a vocabulary of 1000.
[[nodiscard]] token_list make_tokens() {
  token_list tokens;
  for (hw::position pos = 0; pos < total; ++pos)
    tokens.push_back({pos, static_cast<std::int32_t>(pos * 37 % 1000),
                      pos % 8 == 0 ? hw::token_classes::punctuation : hw::token_classes::none});
  return tokens;
}

// How many of the tokens does the newest query see? Out of line, as are the three below: inlined
// into a timing loop, a loop is no longer what a cache would run.
[[gnu::noinline]] hw::token_count ask(const any_policy& policy, const token_list& tokens) {
  return std::visit(
      [&](const auto& p) {
        hw::token_count seen = 0;
        for (const hw::token& t : tokens) seen += hw::sees(newest, t.pos, p.lifetime(t)) ? 1U : 0U;
        return seen;
      },
      policy);
}
[[gnu::noinline]] hw::token_count ask_window(const token_list& tokens) {
  hw::token_count seen = 0;
  for (const hw::token& t : tokens) seen += hw::sees(newest, t.pos, window) ? 1U : 0U;
  return seen;
}

// How many of the heads let the newest query see this token?
[[gnu::noinline]] hw::token_count ask_heads(const std::vector<any_policy>& plan,
                                            const hw::token& t) {
  hw::token_count seen = 0;
  for (const any_policy& policy : plan)
    seen += hw::sees(newest, t.pos, hw::lifetime_of(policy, t)) ? 1U : 0U;
  return seen;
}
[[gnu::noinline]] hw::token_count ask_table(const std::vector<hw::token_count>& windows,
                                            const hw::token& t) {
  hw::token_count seen = 0;
  for (const hw::token_count w : windows) seen += hw::sees(newest, t.pos, w) ? 1U : 0U;
  return seen;
}

template <class Count>
void time_count(benchmark::State& state, hw::token_count expected, Count count) {
  hw::token_count seen = 0;
  for (auto _ : state) {
    seen = count();
    benchmark::DoNotOptimize(seen);
    benchmark::ClobberMemory();
  }
  compare_checksum(state, seen, expected);
  state.SetItemsProcessed(state.iterations() * total);
}

template <class Fn>
void add(const std::string& name, Fn fn) {
  benchmark::RegisterBenchmark(("policy/" + name).c_str(), std::move(fn))
      ->Unit(benchmark::kMicrosecond);
}

// visible(token): what the policy says, written out by hand.
template <class Visible>
void add_policy(const std::string& name, const any_policy& policy, Visible visible) {
  const token_list tokens = make_tokens();
  const auto expected =
      static_cast<hw::token_count>(std::count_if(tokens.begin(), tokens.end(), visible));
  add("4096 tokens, one head/" + name, [=](benchmark::State& state) {
    time_count(state, expected, [&] { return ask(policy, tokens); });
  });
  const hw::token asked = tokens[total / 2];
  const std::vector<any_policy> plan(total, policy);
  add("one token, 4096 heads/" + name, [=](benchmark::State& state) {
    time_count(state, visible(asked) ? total : 0, [&] { return ask_heads(plan, asked); });
  });
}

void register_all() {
  const token_list tokens = make_tokens();
  add("4096 tokens, one head/no policy", [=](benchmark::State& state) {
    time_count(state, window, [&] { return ask_window(tokens); });
  });
  const std::vector<hw::token_count> windows(total, window);
  add("one token, 4096 heads/no policy", [=](benchmark::State& state) {
    time_count(state, total, [&] { return ask_table(windows, tokens.back()); });
  });

  std::vector<std::int32_t> ids(16);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 61);
  const hw::special_tokens marks(hw::token_classes::punctuation);
  const hw::special_tokens learned(hw::token_classes::none, ids);
  const hw::local_window near(window);
  const auto is_mark = [](const hw::token& t) { return t.pos % 8 == 0; };
  const auto is_near = [](const hw::token& t) { return t.pos >= total - window; };
  const auto is_known = [](const hw::token& t) { return t.id % 61 == 0 && t.id / 61 < 16; };
  const auto is_newest = [](const hw::token& t) { return t.pos == newest; };
  add_policy("global", hw::global{}, [](const hw::token&) { return true; });
  add_policy("local", near, is_near);
  add_policy("classes", marks, [=](const auto& t) { return is_mark(t) || is_newest(t); });
  add_policy("16 ids", learned, [=](const auto& t) { return is_known(t) || is_newest(t); });
  add_policy("classes+local", hw::union_of(marks, near),
             [=](const auto& t) { return is_mark(t) || is_near(t); });
  add_policy("16 ids+local", hw::union_of(learned, near),
             [=](const auto& t) { return is_known(t) || is_near(t); });
}

}  // namespace
}  // namespace headwise_bench

int main(int argc, char** argv) {
  headwise_bench::register_all();
  return headwise_bench::run(argc, argv, "no policy");
}
