// SPDX-License-Identifier: Apache-2.0
//
// Fault cases F that need no batch call: sequences of one manager beside and after each other.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"
#include "support/packed_nibbles.hpp"

namespace headwise_tests {
namespace {

const std::vector<test_policy> mixed{headwise::global{}, window(4), ids_and_window({0}, 2)};
constexpr headwise::model_shape three_heads{1, 3, 3, 8};

TEST(fault_cases, F02_a_sequence_that_holds_nothing_yet) {
  engine first({1, 1, 1, 4}, {headwise::global{}}, uniform_fixture());
  engine second(first.shared_cache(), uniform_fixture());
  first.feed(4);
  EXPECT_EQ(first.feed(1).last(), 2.0F);
  EXPECT_EQ(second.feed(1).last(), 0.0F);
  EXPECT_EQ(first.text().length(), 5U);
  EXPECT_EQ(second.text().length(), 1U);

  engine empty_first({1, 1, 1, 4}, {headwise::global{}}, uniform_fixture());
  engine four(empty_first.shared_cache(), uniform_fixture());
  four.feed(4);
  EXPECT_EQ(empty_first.feed(1).last(), 0.0F);
  EXPECT_EQ(four.feed(1).last(), 2.0F);
  EXPECT_EQ(empty_first.text().length(), 1U);
  EXPECT_EQ(four.text().length(), 5U);
}

// A sequence is an object, not an id: none can be used again, and none outlives its end.
TEST(fault_cases, F05_pages_that_are_used_again_show_nothing_old) {
  const std::vector<test_policy> plan{headwise::global{}, window(4), ids_and_window({0}, 2),
                                      headwise::union_of(window(2), headwise::heavy_hitters(2))};
  constexpr headwise::model_shape four_heads{1, 4, 4, 8};
  fixture old = uniform_fixture();
  old.value = [](headwise::head_id, position, std::span<float> row) { fill(row, 1000.0F); };
  headwise::cache_config config;
  config.page_tokens = 4;
  config.pages = config.reserved_pages = 40;  // so that the same pages come again
  auto first = std::make_optional<engine<>>(four_heads, plan, old, config);
  first->feed(30);
  engine second(first->shared_cache(), uniform_fixture());
  first.reset();
  engine fresh(four_heads, plan, uniform_fixture(), config);
  const outputs got = second.feed(4);
  EXPECT_EQ(got, fresh.feed(4));
  // global: 0 to 3; the window of 4: the same; the id 0, which all four have: the same again; the
  // window of 2 and two heavy hitters: and again.
  for (std::uint32_t head = 0; head < 4; ++head) {
    EXPECT_EQ(got.last(head), 1.5F) << head;
    EXPECT_EQ(second.kept({0, head}), range(0, 3)) << head;
  }
  EXPECT_EQ(second.text().length(), 4U);
  EXPECT_EQ(second.next_tokens({0})[0].pos, 4U);

  // Each query gave equal parts to all that it saw. Token 2 has lost against 0 and 1 by now.
  const std::map<position, float> scores = second.scores({0, 3});
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_FLOAT_EQ(scores.at(0), 1.0F + 1.0F / 2 + 1.0F / 3 + 1.0F / 4);
  EXPECT_FLOAT_EQ(scores.at(1), 1.0F / 2 + 1.0F / 3 + 1.0F / 4);
  EXPECT_FLOAT_EQ(scores.at(3), 1.0F / 4);
  EXPECT_EQ(scores, fresh.scores({0, 3}));
  EXPECT_TRUE(second.saved() == fresh.saved());
}

// A batch is what the engine makes of it: sequences move in a list, and one may end at any time.
TEST(fault_cases, F03_sequences_that_change_places) {
  const std::vector<test_policy> ranked(3,
                                        headwise::union_of(window(3), headwise::heavy_hitters(2)));
  headwise::cache_config config;
  config.page_tokens = 2;
  using half_engine = engine<headwise::f16>;
  constexpr std::size_t lengths[] = {4, 6, 3};
  std::vector<std::unique_ptr<half_engine>> batch, alone;
  for (std::uint32_t b = 0; b < 3; ++b) {
    batch.push_back(
        b == 0 ? std::make_unique<half_engine>(three_heads, ranked, random_fixture(b), config)
               : std::make_unique<half_engine>(batch[0]->shared_cache(), random_fixture(b)));
    alone.push_back(std::make_unique<half_engine>(three_heads, ranked, random_fixture(b), config));
  }
  for (std::uint32_t b = 0; b < 3; ++b)
    for (std::size_t done = 0; done < lengths[b]; done += 2) {
      const std::size_t chunk = std::min<std::size_t>(2, lengths[b] - done);
      EXPECT_EQ(batch[b]->feed(chunk), alone[b]->feed(chunk));
    }
  std::swap(batch[0], batch[2]);  // [2, 1, 0]
  std::swap(alone[0], alone[2]);
  batch.erase(batch.begin() + 1);  // the middle one, amid its prompt
  alone.erase(alone.begin() + 1);
  for (int i = 0; i < 5; ++i)
    for (std::size_t b = 0; b < 2; ++b) {
      EXPECT_EQ(batch[b]->feed(1), alone[b]->feed(1));
      for (std::uint32_t head = 0; head < 3; ++head)
        EXPECT_EQ(batch[b]->kept({0, head}), alone[b]->kept({0, head}));
    }
  EXPECT_EQ(batch[0]->saved(), alone[0]->saved());  // scores and all
}

// Sequences have lengths of their own, so there is no padding to be stored, billed or looked at.
TEST(fault_cases, F04_prompts_of_different_lengths_without_padding) {
  const headwise::token_classifier two_sinks(2);
  engine row_a({1, 1, 1, 4}, {sinks_and_window(2)}, uniform_fixture(), {}, two_sinks);
  engine row_b(row_a.shared_cache(), uniform_fixture(), two_sinks);
  const outputs a = row_a.feed(3);
  row_b.feed(6);
  EXPECT_FLOAT_EQ(a.last(), 1.0F);  // of 0, 1, 2
  EXPECT_EQ(row_a.text().length(), 3U);
  EXPECT_EQ(row_a.text().stats().resident_rows, 3U);
  EXPECT_FLOAT_EQ(row_a.feed_singly(2).last(), 2.0F);
  EXPECT_EQ(row_a.kept(), (positions{0, 1, 3, 4}));
  EXPECT_EQ(row_b.kept(), (positions{0, 1, 4, 5}));
}

// Any number of sequences of any length, fed by turns: each sees its own rows and no other's.
TEST(fault_cases, F06_odd_numbers_of_sequences) {
  constexpr headwise::model_shape narrow{1, 3, 3, 24};
  headwise::cache_config config;
  config.page_tokens = 4;
  for (const std::uint32_t count : {1U, 31U, 33U, 48U, 65U}) {
    const auto own = [](std::uint32_t b) {
      fixture rows = random_fixture(b);
      rows.value = [b](headwise::head_id, position, std::span<float> row) {
        fill(row, static_cast<float>(b));
      };
      return rows;
    };
    const auto length = [](std::uint32_t b) { return 1 + 7 * b % 13; };
    std::vector<engine<>> texts;
    texts.emplace_back(narrow, mixed, own(0), config);
    for (std::uint32_t b = 1; b < count; ++b)
      texts.emplace_back(texts.front().shared_cache(), own(b));
    for (std::uint32_t turn = 0; turn < 13; ++turn)
      for (std::uint32_t b = 0; b < count; ++b) {
        if (turn >= length(b)) continue;
        // A mean of equal numbers: the rounding of weights that sum to 1.
        const auto b_is = static_cast<float>(b);
        const outputs got = texts[b].feed(std::vector<std::int32_t>{turn % 2 == 0 ? 0 : 1});
        for (const float value : got.values) ASSERT_NEAR(value, b_is, 1e-6F * b_is) << count;
      }
    for (std::uint32_t b = 0; b < count; ++b) {
      const position newest = length(b) - 1;
      ASSERT_EQ(texts[b].text().length(), length(b));
      EXPECT_EQ(texts[b].kept({0, 0}), range(0, newest)) << b;
      EXPECT_EQ(texts[b].kept({0, 1}), range(newest < 3 ? 0 : newest - 3, newest)) << b;
      positions third;  // the id 0, which even positions have, and the last two
      for (position pos = 0; pos <= newest; ++pos)
        if (pos % 2 == 0 || pos + 1 >= newest) third.push_back(pos);
      EXPECT_EQ(texts[b].kept({0, 2}), third) << b;
    }
  }
}

TEST(fault_cases, F07_a_sequence_does_not_depend_on_its_neighbours) {
  using half_engine = engine<headwise::f16>;
  const std::vector<test_policy> plan{headwise::global{}, window(4),
                                      headwise::union_of(window(2), headwise::heavy_hitters(3))};
  headwise::cache_config config;
  config.page_tokens = 4;
  // 20 tokens of X in five steps; between(i) is called behind step i.
  const auto push = [](half_engine& x, auto&& between) {
    std::vector<outputs> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(x.feed(4));
      between(i);
    }
    return all;
  };
  const auto nothing = [](int) {};
  half_engine alone(three_heads, plan, random_fixture(1), config);
  const std::vector<outputs> expected = push(alone, nothing);
  for (std::uint32_t head = 0; head < 2; ++head) {
    const reference_output dense =
        alone.dense(0, head, 19, head == 0 ? range(0, 19) : range(16, 19));
    for (std::size_t i = 0; i < three_heads.head_dim; ++i)
      EXPECT_NEAR(expected.back().row(3, head)[i], dense.values[i], 2e-3);  // f16 rows
  }
  const outputs next = alone.feed(4);

  half_engine y_before(three_heads, plan, random_fixture(2), config);
  y_before.feed(13);
  half_engine behind(y_before.shared_cache(), random_fixture(1));
  EXPECT_EQ(push(behind, nothing), expected);
  EXPECT_EQ(behind.feed(4), next);

  half_engine ahead(three_heads, plan, random_fixture(1), config);
  EXPECT_EQ(push(ahead, nothing), expected);
  half_engine y_after(ahead.shared_cache(), random_fixture(3));
  y_after.feed(13);
  EXPECT_EQ(ahead.feed(4), next);

  std::optional<half_engine> y_between(std::in_place, y_before.shared_cache(), random_fixture(3));
  half_engine interleaved(y_before.shared_cache(), random_fixture(1));
  EXPECT_EQ(push(interleaved,
                 [&](int i) {
                   if (i < 3)
                     y_between->feed(7);
                   else
                     y_between.reset();
                 }),
            expected);
  EXPECT_EQ(interleaved.feed(4), next);
  for (half_engine* x : {&behind, &ahead, &interleaved}) EXPECT_TRUE(x->saved() == alone.saved());
}

// A row is quantised by itself: no group of elements reaches into another row, head or sequence.
TEST(fault_cases, F08_outliers_of_a_neighbour) {
  using packed_engine = engine<stranger::packed_nibbles>;
  const auto times = [](fixture::row_filler fill_row, float factor) {
    return [=](headwise::head_id head, position pos, std::span<float> row) {
      fill_row(head, pos, row);
      for (float& x : row) x *= factor;
    };
  };
  const auto run = [&](float factor) {
    packed_engine a(three_heads, mixed, random_fixture(1));
    fixture rows = random_fixture(2);
    rows.key = times(rows.key, factor);
    rows.value = times(rows.value, factor);
    packed_engine b(a.shared_cache(), rows);
    std::pair<std::string, outputs> result;
    for (int i = 0; i < 5; ++i) {  // 20 tokens of each, by turns
      b.feed(4);
      result.second = a.feed(4);
    }
    result.first = a.saved();
    return result;
  };
  EXPECT_EQ(run(1.0F), run(1000.0F));
}

TEST(fault_cases, F09_steps_of_no_tokens) {
  engine text(three_heads, mixed, random_fixture(9)), plain(three_heads, mixed, random_fixture(9));
  text.feed(0);
  text.append(0);
  EXPECT_EQ(text.text().length(), 0U);
  text.feed(5);
  plain.feed(5);
  text.feed(0);
  text.append(0);
  EXPECT_EQ(text.feed(1), plain.feed(1));
  EXPECT_EQ(text.text().length(), 6U);
}

}  // namespace
}  // namespace headwise_tests
