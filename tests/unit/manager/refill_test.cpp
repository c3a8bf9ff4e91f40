// SPDX-License-Identifier: Apache-2.0
//
// A prompt that is held whole, a plan that becomes known behind it, and a second sequence that
// takes over what its plan keeps: bit for bit the sequence that had this plan from the start, and
// what it holds is what the definitions of the policies say.
#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"
#include "support/saved.hpp"

namespace headwise_tests {
namespace {

using headwise::attend_scope;
using headwise::head_id;
using headwise::heavy_hitters;
using headwise::union_of;

class refill : public testing::Test {
 protected:
  using cache = headwise::cache_manager<test_policies, headwise::f16>;
  using sequence = cache::sequence_type;
  using step_type = cache::step_type;
  static constexpr headwise::model_shape shape{1, 5, 5, 8};
  static constexpr std::uint32_t length = 150;

  refill() {
    auto step = whole.try_append(prompt, attend_scope::last_query).value();
    for (std::uint32_t h = 0; h < shape.kv_heads; ++h) write_rows(step, {0, h});
    std::move(step).commit();
  }

  void write_rows(step_type& on, head_id head) const {
    std::vector<float> keys(on.tokens().size() * shape.head_dim), values = keys;
    for (std::size_t i = 0; i < on.tokens().size(); ++i) {
      const auto row = [&](std::vector<float>& of) {
        return std::span(of).subspan(i * shape.head_dim, shape.head_dim);
      };
      rows.key(head, on.tokens()[i].pos, row(keys));
      rows.value(head, on.tokens()[i].pos, row(values));
    }
    on.write(head, {keys.data(), on.tokens().size(), shape.head_dim},
             {values.data(), on.tokens().size(), shape.head_dim});
  }
  // The column sums of token p: no two alike, the earliest in the middle of the order.
  [[nodiscard]] static std::vector<float> column_sums() {
    std::vector<float> sums;
    for (std::uint32_t p = 0; p < length; ++p)
      sums.push_back(static_cast<float>(p * 67 % 151) / 16.0F);
    return sums;
  }
  // put(step, head) writes one head of the prompt.
  template <class Put>
  [[nodiscard]] sequence opened_with_plan(Put&& put) {
    sequence text = manager.open(plan);
    auto step = text.try_append(prompt, attend_scope::last_query).value();
    for (std::uint32_t h = 0; h < shape.kv_heads; ++h) {
      if (h >= 3) step.observe_prompt({0, h}, column_sums());
      put(step, head_id{0, h});
    }
    std::move(step).commit();
    return text;
  }
  [[nodiscard]] static positions kept(const sequence& text, std::uint32_t head) {
    return engine<headwise::f16>::visible(text.head({0, head}), length - 1);
  }

  fixture rows = random_fixture(3);
  std::vector<test_policy> plan{headwise::global{}, window(7), sinks_and_window(40),
                                union_of(window(5), heavy_hitters(6)),
                                union_of(stranger::every_nth(4, 2, 60), heavy_hitters(3))};
  std::vector<token> prompt = headwise::token_classifier(4).tokens(
      std::span<const std::int32_t>(std::vector<std::int32_t>(length, 1)));
  cache manager{shape, std::vector<test_policy>(5), {.page_tokens = 16}};
  sequence whole = manager.open();
};

TEST_F(refill, is_the_sequence_that_had_the_plan_from_the_start) {
  const sequence from_start = opened_with_plan([&](step_type& s, head_id h) { write_rows(s, h); });
  const std::string before = saved(whole);
  const sequence refilled =
      opened_with_plan([&](step_type& s, head_id h) { s.write(h, whole.head(h)); });
  EXPECT_EQ(saved(refilled), saved(from_start));
  EXPECT_EQ(saved(whole), before);
}

TEST_F(refill, keeps_what_the_policies_say) {
  const sequence text =
      opened_with_plan([&](step_type& s, head_id h) { s.write(h, whole.head(h)); });
  EXPECT_EQ(kept(text, 0), range(0, 149));
  EXPECT_EQ(kept(text, 1), range(143, 149));
  positions sinks_and_last = range(110, 149);
  sinks_and_last.insert(sinks_and_last.begin(), {0, 1, 2, 3});
  EXPECT_EQ(kept(text, 2), sinks_and_last);
  // The six greatest of p * 67 mod 151 below 145, and the window.
  const std::vector<float> sums = column_sums();
  positions order = range(0, 144);
  std::sort(order.begin(), order.end(), [&](position a, position b) { return sums[a] > sums[b]; });
  positions ranked(order.begin(), order.begin() + 6);
  for (const position pos : range(145, 149)) ranked.push_back(pos);
  std::sort(ranked.begin(), ranked.end());
  EXPECT_EQ(kept(text, 3), ranked);
}

TEST_F(refill, gives_the_pages_of_the_whole_prompt_back) {
  const std::size_t whole_bytes = manager.stats().held_bytes;
  {
    const sequence own =
        opened_with_plan([&](step_type& s, head_id h) { s.write(h, whole.head(h)); });
    whole = manager.open();
    // Of the stranger's: each fourth, the halves between of 60, one of the others, three in the
    // pool.
    EXPECT_EQ(own.stats().resident_rows,
              150U + 7U + (4U + 40U) + (5U + 6U) + (38U + 15U + 1U + 3U));
    EXPECT_LT(manager.stats().held_bytes, 2 * whole_bytes / 3);
  }
  EXPECT_EQ(manager.stats().pages_in_use, 0U);
}

TEST_F(refill, takes_what_a_window_needs_from_a_window) {
  sequence wide = manager.open({headwise::global{}, window(9), window(44), window(60), window(60)});
  auto filling = wide.try_append(prompt, attend_scope::last_query).value();
  for (std::uint32_t h = 0; h < shape.kv_heads; ++h) filling.write({0, h}, whole.head({0, h}));
  std::move(filling).commit();

  sequence narrow = manager.open(std::vector<test_policy>(5, window(7)));
  auto step = narrow.try_append(prompt, attend_scope::last_query).value();
  for (std::uint32_t h = 0; h < shape.kv_heads; ++h) step.write({0, h}, wide.head({0, h}));
  std::move(step).commit();
  for (std::uint32_t h = 0; h < shape.kv_heads; ++h) EXPECT_EQ(kept(narrow, h), range(143, 149));
}

TEST_F(refill, says_that_a_row_is_gone) {
  const sequence own =
      opened_with_plan([&](step_type& s, head_id h) { s.write(h, whole.head(h)); });
  sequence again = manager.open();
  auto step = again.try_append(prompt, attend_scope::last_query).value();
  EXPECT_DEATH(step.write({0, 0}, own.head({0, 1})), "given up a row of the step");
}

TEST_F(refill, is_from_another_sequence) {
  sequence own = manager.open();
  auto step = own.try_append(prompt, attend_scope::last_query).value();
  EXPECT_DEATH(step.write({0, 0}, step.head({0, 0})), "or is the step's own");
}

TEST_F(refill, opens_with_the_plan_of_a_blueprint) {
  headwise::blueprint measured =
      headwise::uniform_blueprint(shape, headwise::make_spec(window(12)));
  measured.heads[4].policy = headwise::make_spec(heavy_hitters(0.5, 100));
  const sequence own = manager.open(measured, 40);
  EXPECT_EQ(own.plan()[0], test_policy(window(12)));
  EXPECT_EQ(own.plan()[4], test_policy(heavy_hitters(0.5, 100)));

  measured.shape.layers = 2;
  try {
    static_cast<void>(manager.open(measured));
    FAIL() << "a blueprint of two layers was opened";
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.code(), headwise::error_code::shape_mismatch);
    EXPECT_NE(std::string(e.what()).find("layers"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace headwise_tests
