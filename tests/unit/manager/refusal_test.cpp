// SPDX-License-Identifier: Apache-2.0
//
// One scripted run over every kind of head: a prompt by column sums, chunks, decode, rollback, a
// fork, a saved file. Memory refuses at the n-th call, for every n; or there are 0, 1, 2 ... pages.
// What is refused changes nothing, to the last bit of the saved state; and once there is memory the
// run ends as it does undisturbed.
#include <functional>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>

#include "headwise/attend/attend.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/manager/saved_sequence.hpp"
#include "support/counting_resource.hpp"
#include "support/engine.hpp"
#include "support/saved.hpp"

namespace headwise_tests {
namespace {

using cache = headwise::cache_manager<test_policies, headwise::f16>;
using sequence = cache::sequence_type;
using headwise::attend_scope;
using headwise::heavy_hitters;
using headwise::union_of;

constexpr headwise::model_shape four_heads{1, 4, 4, 8};

[[nodiscard]] std::vector<test_policy> plan() {
  return {headwise::global{}, window(5), union_of(window(3), heavy_hitters(4)),
          union_of(stranger::every_nth(4, 2, 6), heavy_hitters(3))};
}

class scripted_run {
 public:
  // allow: called after a refusal, to make the next try possible; false: there is no next try.
  scripted_run(const headwise::cache_config& config, std::function<bool()> allow)
      : manager_(four_heads, plan(), config), allow_(std::move(allow)), scratch_(1, 8, 200) {}

  // The saved states of the sequence and its fork at the end; nullopt where it gave up.
  std::optional<std::string> run() {
    std::optional<sequence> text;
    if (!retry([&] {
          text = opened();
          return text.has_value();
        }))
      return std::nullopt;
    const auto step = [&](sequence& on, std::uint32_t n, attend_scope scope) {
      const std::string before = saved(on);
      return retry([&] {
        if (append(on, n, scope)) return true;
        EXPECT_EQ(saved(on), before);
        return false;
      });
    };
    if (!step(*text, 9, attend_scope::last_query) || !step(*text, 7, attend_scope::every_query))
      return std::nullopt;
    for (int i = 0; i < 6; ++i)
      if (!step(*text, 1, attend_scope::every_query)) return std::nullopt;
    EXPECT_TRUE(text->try_rollback(2));
    std::optional<sequence> twin;
    const std::string before = saved(*text);
    if (!retry([&] {
          twin = forked(*text);
          return twin.has_value();
        }))
      return std::nullopt;
    EXPECT_EQ(saved(*text), before);
    if (!step(*twin, 3, attend_scope::every_query) || !step(*text, 2, attend_scope::every_query))
      return std::nullopt;
    std::optional<sequence> back;
    if (!retry([&] {
          back = restored(before);
          return back.has_value();
        }))
      return std::nullopt;
    EXPECT_EQ(saved(*back), before);
    return saved(*text) + saved(*twin);
  }
  [[nodiscard]] std::size_t refusals() const { return refusals_; }

 private:
  template <class Try>
  bool retry(Try&& attempt) {
    while (!attempt()) {
      ++refusals_;
      if (!allow_()) return false;
    }
    return true;
  }
  std::optional<sequence> opened() {
    try {
      return manager_.open();
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  }
  static std::optional<sequence> forked(sequence& text) {
    try {
      return text.fork();
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  }
  std::optional<sequence> restored(const std::string& file) {
    std::istringstream in(file);
    try {
      return headwise::try_restore(manager_, in);
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
  }
  bool append(sequence& text, std::uint32_t count, attend_scope scope) {
    std::vector<token> tokens;
    for (std::uint32_t i = 0; i < count; ++i) tokens.push_back({text.length() + i, 1});
    const std::size_t needed = text.pages_needed(tokens, scope);
    const std::size_t available = manager_.stats().pages_available;
    auto step = text.try_append(tokens, scope);
    if (!step) return false;
    EXPECT_LE(needed, available);  // what a scheduler goes by
    const bool prompt = scope == attend_scope::last_query;
    for (std::uint32_t h = 0; h < four_heads.kv_heads; ++h) {
      const headwise::head_id id{0, h};
      std::vector<float> rows(count * 8), query(8, 0.3F), out(8), sums;
      for (std::uint32_t i = 0; i < count; ++i)
        fill_random(std::span(rows).subspan(i * 8, 8), tokens[i].pos * 16 + h);
      for (position pos = 0; pos < text.length() + count; ++pos)
        sums.push_back(static_cast<float>((pos * 7 + h) % 5));
      if (prompt && h >= 2) step->observe_prompt(id, sums);
      step->write(id, {rows.data(), count, 8}, {rows.data(), count, 8});
      for (std::uint32_t i = prompt ? count - 1 : 0; i < count; ++i)
        headwise::attend(step->head(id), tokens[i].pos, {query.data(), 1, 8}, 1.0F,
                         {out.data(), 1, 8}, {}, scratch_);
    }
    std::move(*step).commit();
    return true;
  }

  cache manager_;
  std::function<bool()> allow_;
  headwise::attend_scratch scratch_;
  std::size_t refusals_ = 0;
};

TEST(refusals, at_any_call_of_the_memory_resource) {
  counting_resource memory;
  headwise::cache_config config;
  config.page_tokens = 3;
  config.rollback_horizon = 2;
  config.memory = &memory;
  const auto expected = scripted_run(config, [] { return false; }).run();
  ASSERT_TRUE(expected.has_value());
  std::size_t n = 0;
  for (bool refused = true; refused; ++n) {
    {
      scripted_run run(config, [&] {
        memory.allow_all();
        return true;
      });
      memory.refuse_after(n);
      EXPECT_EQ(run.run(), expected) << "a refusal at call " << n;
      refused = run.refusals() > 0;
      memory.allow_all();
    }
    EXPECT_EQ(memory.bytes(), 0U) << "a refusal at call " << n;
  }
  EXPECT_GT(n, 60U);
}

TEST(refusals, at_any_limit_of_pages) {
  headwise::cache_config config;
  config.page_tokens = 3;
  config.rollback_horizon = 2;
  std::size_t limit = 0;
  for (; limit < 300; ++limit) {
    config.pages = config.reserved_pages = limit;
    scripted_run run(config, [] { return false; });
    if (run.run()) break;
    EXPECT_EQ(run.refusals(), 1U);
  }
  EXPECT_GT(limit, 10U);  // 0, 1, and all that are too few
  EXPECT_LT(limit, 300U);
}

// What a scheduler does: a step that the pages do not suffice for waits until there is room, and
// pages_needed tells when. The parameter: tokens of the step.
class a_refused_step : public testing::TestWithParam<std::uint32_t> {
 protected:
  using half_engine = engine<headwise::f16>;

  static headwise::cache_config limited(std::size_t pages) {
    headwise::cache_config config;
    config.page_tokens = 3;
    config.rollback_horizon = 12;
    config.pages = config.reserved_pages = pages;
    return config;
  }
  void SetUp() override {
    other.feed_singly(24);
    while (needed() <= available()) EXPECT_EQ(text.feed(GetParam()), undisturbed.feed(GetParam()));
    const std::string before = saved(text.text());
    for (int tries = 0; tries < 2; ++tries) {
      ASSERT_FALSE(text.text().try_append(next()).has_value());
      EXPECT_TRUE(saved(text.text()) == before);
    }
  }
  void expect_success() {
    ASSERT_LE(needed(), available());
    EXPECT_EQ(text.feed(GetParam()), undisturbed.feed(GetParam()));
    EXPECT_TRUE(saved(text.text()) == saved(undisturbed.text()));
  }
  [[nodiscard]] std::vector<token> next() const {
    return text.next_tokens(std::vector<std::int32_t>(GetParam(), 0));
  }
  [[nodiscard]] std::size_t needed() const { return text.text().pages_needed(next()); }
  [[nodiscard]] std::size_t available() { return text.cache().stats().pages_available; }

  half_engine text{four_heads, plan(), random_fixture(5), limited(60)};
  half_engine other{text.shared_cache(), random_fixture(6)};
  half_engine undisturbed{four_heads, plan(), random_fixture(5), limited(600)};
};

TEST_P(a_refused_step, succeeds_once_another_sequence_was_closed) {
  other.text() = other.cache().open();
  expect_success();
}
TEST_P(a_refused_step, succeeds_once_another_sequence_was_rolled_back) {
  ASSERT_TRUE(other.text().try_rollback(12));
  expect_success();
}
TEST_P(a_refused_step, succeeds_once_it_goes_on_from_an_earlier_token) {
  ASSERT_TRUE(text.text().try_rollback(10));
  ASSERT_TRUE(undisturbed.text().try_rollback(10));
  expect_success();
}

INSTANTIATE_TEST_SUITE_P(of_tokens, a_refused_step, testing::Values(1U, 4U));

}  // namespace
}  // namespace headwise_tests
