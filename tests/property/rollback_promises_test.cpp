// SPDX-License-Identifier: Apache-2.0
//
// What an engine is promised of rollbacks, held against the rules of lifetimes alone: nothing here
// works out which rows a cache may give up, so a mistake in that rule cannot be made twice.
// Post-conditions over random scripts of one sequence, G being its greatest length since it was
// last empty:
// 1. a step answers each query that it has to: first_query() is at most the first that attends
// 2. such a query sees exactly the rows with pos <= q and q - pos < lifetime, as they were written
// 3. after the commit its newest query is still answered
// 4. a rollback to at least G - rollback_horizon succeeds, and one to 0
// 5. a rollback that is refused changes nothing
// 6. after one that succeeded the sequence answers as one that was fed only the survivors
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f32.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "support/random_policy.hpp"

namespace headwise_tests {
namespace {

using headwise::attend_scope;
using headwise::head_id;
using cache = headwise::cache_manager<test_policies, headwise::f32>;

struct script_counts {
  std::size_t promised = 0;  // rollbacks that the horizon covers
  std::size_t refused = 0;
  std::size_t twins = 0;
  std::size_t queries = 0;  // of a head
};

class rollback_script {
 public:
  rollback_script(std::uint32_t seed, script_counts& counts)
      : random_(seed), counts_(counts), horizon_(random_.one_in(3) ? 0 : random_.between(1, 12)) {
    headwise::cache_config config;
    config.page_tokens = random_.between(1, 16);
    config.rollback_horizon = horizon_;
    std::vector<test_policy> plan;
    for (std::uint32_t head = 0; head < heads; ++head) {
      ruled_policy chosen = lifetime_policy();
      plan.push_back(std::move(chosen.policy));
      rules_.push_back(std::move(chosen.rule));
    }
    manager_.emplace(headwise::model_shape{1, heads, heads, width}, std::move(plan), config);
    text_.emplace(manager_->open());
  }

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      if (fed_.empty() || (fed_.size() < longest && !random_.one_in(3)))
        append();
      else
        roll_back();
    }
  }

 private:
  using sequence = cache::sequence_type;
  using step = cache::step_type;
  // One row of one head: width keys, then width values.
  using row = std::vector<float>;
  struct fed_token {
    token what;
    std::vector<row> rows;  // [heads]
  };

  static constexpr std::uint32_t heads = 3, width = 2;
  static constexpr std::size_t longest = 160;

  [[nodiscard]] ruled_policy lifetime_policy() {
    ruled_window window = random_window(random_);
    ruled_special special = random_special(random_);
    ruled_nth nth = random_nth(random_);
    switch (random_.below(4)) {
      case 0:
        return {window.policy, window.rule};
      case 1:
        return {nth.policy, nth.rule};
      case 2:
        return {headwise::union_of(nth.policy, window.policy), longer_of(nth.rule, window.rule)};
      default:
        return {headwise::union_of(special.policy, window.policy),
                longer_of(special.rule, window.rule)};
    }
  }

  [[nodiscard]] std::vector<fed_token> fresh(std::uint32_t count) {
    std::vector<fed_token> result;
    for (const token& t : random_tokens(random_, static_cast<position>(fed_.size()), count)) {
      result.push_back({t, {}});
      for (std::uint32_t head = 0; head < heads; ++head)
        result.back().rows.push_back(random_.numbers(std::size_t{2} * width));
    }
    return result;
  }

  // An open step of `text` in which all heads are written.
  [[nodiscard]] static step open_step(sequence& text, std::span<const fed_token> next,
                                      attend_scope scope) {
    std::vector<token> tokens;
    for (const fed_token& t : next) tokens.push_back(t.what);
    std::optional<step> opened = text.try_append(tokens, scope);
    if (!opened) throw std::runtime_error("a step was refused");
    for (std::uint32_t head = 0; head < heads; ++head) {
      std::vector<float> both;
      for (const fed_token& t : next)
        both.insert(both.end(), t.rows[head].begin(), t.rows[head].end());
      opened->write({0, head}, {both.data(), next.size(), width, 2 * width},
                    {both.data() + width, next.size(), width, 2 * width});
    }
    return std::move(*opened);
  }

  [[nodiscard]] static std::map<position, row> shown(const cache::view_type& view, position query) {
    std::map<position, row> rows;
    view.for_each_slab(query, [&](const headwise::slab& s) {
      for (std::uint32_t r = 0; r < s.count; ++r) {
        row both(std::size_t{2} * width);
        std::memcpy(both.data(), s.keys + r * width * sizeof(float), width * sizeof(float));
        std::memcpy(both.data() + width, s.values + r * width * sizeof(float),
                    width * sizeof(float));
        EXPECT_TRUE(rows.emplace(s.positions[r], std::move(both)).second) << "a row twice";
      }
    });
    return rows;
  }
  [[nodiscard]] std::map<position, row> expected(std::uint32_t head, position query,
                                                 const std::vector<fed_token>& all) const {
    std::map<position, row> rows;
    for (position pos = 0; pos <= query; ++pos)
      if (query - pos < rules_[head](all[pos].what)) rows.emplace(pos, all[pos].rows[head]);
    return rows;
  }

  void append() {
    const auto room = static_cast<std::uint32_t>(longest - fed_.size());
    const std::uint32_t count = random_.between(1, std::min(room, random_.one_in(3) ? 40U : 4U));
    const auto scope = random_.one_in(3) ? attend_scope::last_query : attend_scope::every_query;
    const auto length = static_cast<position>(fed_.size());
    const position attending = scope == attend_scope::every_query ? length : length + count - 1;
    std::vector<fed_token> all = fed_;
    for (fed_token& t : fresh(count)) all.push_back(std::move(t));
    step opened = open_step(*text_, std::span(all).subspan(length), scope);
    for (std::uint32_t head = 0; head < heads; ++head) {
      EXPECT_LE(opened.head({0, head}).first_query(), attending);  // 1
      for (position query = attending; query < all.size(); ++query, ++counts_.queries)
        EXPECT_EQ(shown(opened.head({0, head}), query), expected(head, query, all)) << query;  // 2
    }
    if (random_.one_in(6)) return;  // cancelled
    std::move(opened).commit();
    fed_ = std::move(all);
    greatest_ = std::max(greatest_, fed_.size());
    const position newest = static_cast<position>(fed_.size() - 1);
    for (std::uint32_t head = 0; head < heads; ++head) {
      const auto view = text_->head({0, head});
      EXPECT_LE(view.first_query(), newest);                                   // 3
      EXPECT_EQ(shown(view, newest), expected(head, newest, fed_)) << newest;  // 3
    }
  }

  void roll_back() {
    const auto length = static_cast<token_count>(fed_.size());
    const auto floor = static_cast<token_count>(greatest_ > horizon_ ? greatest_ - horizon_ : 0);
    token_count to = random_.between(0, length);
    if (!random_.one_in(3) && floor <= length) to = random_.between(floor, length);
    if (random_.one_in(20)) to = 0;
    const bool promised = to == 0 || to >= floor;
    const bool done = text_->try_rollback(length - to);
    EXPECT_TRUE(done || !promised) << "from " << length << " to " << to;  // 4
    counts_.promised += promised && to < length ? 1 : 0;
    counts_.refused += done ? 0 : 1;
    if (done) fed_.resize(to);
    EXPECT_EQ(text_->length(), fed_.size());  // 5
    if (fed_.empty()) greatest_ = 0;
    if (random_.one_in(3)) compare_with_twin();
  }

  // The survivors in chunks of any size, then one more token in both.
  void compare_with_twin() {
    sequence twin = manager_->open();
    for (std::size_t at = 0; at < fed_.size();) {
      const std::size_t count = random_.between(1, static_cast<std::uint32_t>(fed_.size() - at));
      open_step(twin, std::span(fed_).subspan(at, count), attend_scope::every_query).commit();
      at += count;
    }
    const std::vector<fed_token> next = fresh(1);
    const step mine = open_step(*text_, next, attend_scope::every_query);
    const step its = open_step(twin, next, attend_scope::every_query);
    const position query = next.front().what.pos;
    for (std::uint32_t head = 0; head < heads; ++head)
      EXPECT_EQ(shown(mine.head({0, head}), query), shown(its.head({0, head}), query));
    ++counts_.twins;  // 6; both steps are cancelled
  }

  random_source random_;
  script_counts& counts_;
  token_count horizon_;
  std::vector<lifetime_rule> rules_;  // [heads]
  std::optional<cache> manager_;
  std::optional<sequence> text_;
  std::vector<fed_token> fed_;  // the survivors
  std::size_t greatest_ = 0;
};

TEST(rollback_promises, hold_whatever_was_fed) {
  script_counts counts;
  for (std::uint32_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    rollback_script(seed, counts).run(60);
  }
  // Every kind of operation did occur, many times.
  EXPECT_GT(std::min({counts.promised, counts.refused, counts.twins}), 500U);
  EXPECT_GT(counts.queries, 50'000U);
}

}  // namespace
}  // namespace headwise_tests
