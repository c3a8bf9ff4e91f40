// SPDX-License-Identifier: Apache-2.0
//
// Fault cases K: sequences saved and restored.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"
#include "support/packed_nibbles.hpp"

namespace headwise_tests {
namespace {

using headwise::heavy_hitters;
using headwise::union_of;
using half_engine = engine<headwise::f16>;

constexpr headwise::model_shape two_wide_heads{1, 2, 2, 8};

[[nodiscard]] std::string refusal(half_engine& text, const std::string& file) {
  try {
    static_cast<void>(text.restored(file));
    return {};
  } catch (const headwise::error& e) {
    return e.what();
  }
}

TEST(fault_cases, K01_a_file_that_is_cut_or_altered_changes_nothing) {
  const std::vector<test_policy> plan{headwise::global{}, window(4)};
  half_engine text(two_wide_heads, plan, random_fixture(1)),
      untouched(two_wide_heads, plan, random_fixture(1));
  text.feed_singly(12);
  untouched.feed_singly(12);
  const std::string file = text.saved();
  const headwise::manager_stats before = text.cache().stats();
  for (std::size_t i = 0; i < file.size(); ++i) {
    ASSERT_NE(refusal(text, file.substr(0, i)), "") << "cut at " << i;
    std::string flipped = file;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    ASSERT_NE(refusal(text, flipped), "") << "flipped at " << i;
  }
  EXPECT_EQ(text.cache().stats().held_bytes, before.held_bytes);
  EXPECT_EQ(text.cache().stats().sequences, 1U);
  EXPECT_EQ(text.feed(1), untouched.feed(1));
  EXPECT_NE(refusal(text, file.substr(0, 100)).find("truncated"), std::string::npos);
  EXPECT_NE(refusal(text, "no such thing at all").find("hw-state"), std::string::npos);
}

// Sequence 1 is fed by turns with 0 and then trimmed, so that its pages lie apart; and there are so
// few pages that a restore needs those that the trimming gave back.
TEST(fault_cases, K02_a_restore_leaves_its_neighbours_alone) {
  const std::vector<test_policy> plan{union_of(window(3), heavy_hitters(2)), headwise::global{}};
  headwise::cache_config config;
  config.page_tokens = 2;
  config.rollback_horizon = 12;
  struct two_texts {
    half_engine zero, one;
    std::size_t most_pages = 0;
  };
  const auto interleaved = [&] {
    half_engine zero(two_wide_heads, plan, random_fixture(2), config);
    half_engine one(zero.shared_cache(), random_fixture(3));
    for (int i = 0; i < 12; ++i) {
      zero.feed(1);
      one.feed(2);
    }
    two_texts made{std::move(zero), std::move(one)};
    made.most_pages = made.zero.cache().stats().pages_in_use;
    EXPECT_TRUE(made.one.text().try_rollback(12));
    return made;
  };
  std::size_t pages_of_zero = 0;
  {
    two_texts roomy = interleaved();
    const std::size_t both = roomy.zero.cache().stats().pages_in_use;
    const half_engine copy = roomy.zero.restored(roomy.zero.saved());
    pages_of_zero = roomy.zero.cache().stats().pages_in_use - both;
    config.pages = config.reserved_pages = roomy.most_pages + pages_of_zero - 1;
    EXPECT_GT(roomy.most_pages, both + 6);  // holes
  }

  two_texts texts = interleaved();
  half_engine& zero = texts.zero;
  half_engine& one = texts.one;
  half_engine alone_zero(two_wide_heads, plan, random_fixture(2), config);
  half_engine alone_one(two_wide_heads, plan, random_fixture(3), config);
  alone_zero.feed_singly(12);
  for (int i = 0; i < 12; ++i) alone_one.feed(2);
  ASSERT_TRUE(alone_one.text().try_rollback(12));

  const std::string file = zero.saved(), untouched = one.saved();
  ASSERT_LT(config.pages - texts.most_pages, pages_of_zero);  // never used: not enough
  half_engine two = zero.restored(file);
  EXPECT_TRUE(one.saved() == untouched);
  EXPECT_TRUE(two.saved() == file);
  EXPECT_EQ(one.feed(1), alone_one.feed(1));
  // Over 0: what it held is given back first.
  zero.text() = zero.cache().open();
  zero = zero.restored(file);
  EXPECT_TRUE(one.saved() == alone_one.saved());
  EXPECT_EQ(one.feed(1), alone_one.feed(1));
  const outputs expected = alone_zero.feed(2);
  EXPECT_EQ(zero.feed(2), expected);
  EXPECT_EQ(two.feed(2), expected);
  EXPECT_TRUE(one.saved() == alone_one.saved());
}

TEST(fault_cases, K03_windows_go_on_where_they_were) {
  for (const token_count length : {3U, 4U, 5U, 9U, 40U})
    for (const test_policy& policy :
         {test_policy(window(4)), sinks_and_window(4),
          test_policy(union_of(sinks(), window(4), heavy_hitters(3)))}) {
      headwise::cache_config config;
      config.page_tokens = 4;
      config.rollback_horizon = 2;
      half_engine text({1, 1, 1, 8}, {policy}, random_fixture(3), config,
                       headwise::token_classifier(2));
      text.feed_singly(length);
      half_engine back = text.restored(text.saved());
      EXPECT_EQ(back.saved(), text.saved());
      EXPECT_EQ(back.kept(), text.kept());
      const headwise::cache_stats a = text.text().stats(), b = back.text().stats();
      EXPECT_EQ(b.payload_bytes, a.payload_bytes);
      EXPECT_EQ(b.reserved_bytes, a.reserved_bytes);
      EXPECT_TRUE(text.text().try_rollback(2));
      EXPECT_TRUE(back.text().try_rollback(2));
      for (int i = 0; i < 5; ++i) EXPECT_EQ(back.feed(1), text.feed(1));
      EXPECT_EQ(back.kept(), text.kept());
    }
}

TEST(fault_cases, K04_exactly_the_rows_that_are_held) {
  // A row of the file is its position, its key and its value.
  constexpr std::size_t row = 4 + 2 * 2 * 8;
  const auto size = [](std::size_t tokens) {
    half_engine text({1, 1, 1, 8}, {headwise::global{}}, random_fixture(4));
    text.feed_singly(tokens);
    return text.saved().size();
  };
  const std::size_t header = size(0);
  for (const std::size_t tokens : {1U, 2U, 31U, 32U, 33U, 100U})
    EXPECT_EQ(size(tokens), header + tokens * row);

  half_engine one({1, 1, 1, 8}, {headwise::global{}}, uniform_fixture());
  one.feed(1);
  EXPECT_EQ(one.saved().size(), header + row);
  EXPECT_EQ(one.restored(one.saved()).kept(), (positions{0}));
  half_engine rolled({1, 1, 1, 8}, {headwise::global{}}, uniform_fixture());
  rolled.feed(8);
  ASSERT_TRUE(rolled.text().try_rollback(5));
  EXPECT_EQ(rolled.saved().size(), header + 3 * row);
  const half_engine back = rolled.restored(rolled.saved());
  EXPECT_EQ(half_engine::visible(back.text().head({0, 0}), 3), (positions{0, 1, 2}));
}

// Tokens 0 and 5 draw all attention: of 10 tokens they are kept, and the newest.
TEST(fault_cases, K04_exactly_the_heavy_hitters_that_are_held) {
  fixture rows = random_fixture(4);
  rows.key = [](headwise::head_id, position pos, std::span<float> key) {
    fill(key, pos == 0 || pos == 5 ? 1.0F : 0.0F);
  };
  rows.query = [](std::uint32_t, std::uint32_t, position, std::span<float> q) { fill(q, 8.0F); };
  const auto text = [&](std::uint32_t head_dim, std::size_t tokens) {
    half_engine made({1, 1, 1, head_dim}, {heavy_hitters(2)}, rows);
    made.feed_singly(tokens);
    return made;
  };
  const auto size = [&](std::uint32_t head_dim, std::size_t tokens) {
    return text(head_dim, tokens).saved().size();
  };
  half_engine hitters = text(8, 10);
  EXPECT_EQ(hitters.kept(), (positions{0, 5, 9}));
  half_engine back = hitters.restored(hitters.saved());
  EXPECT_EQ(back.kept(), (positions{0, 5, 9}));
  EXPECT_EQ(back.saved(), hitters.saved());

  // Whatever was appended and lost, three rows are in the file: only rows grow with head_dim, by
  // two bytes an element of a key and of a value.
  EXPECT_EQ(size(16, 10) - size(8, 10), 3U * 2 * 2 * 8);
  EXPECT_EQ(size(16, 1) - size(8, 1), 1U * 2 * 2 * 8);
  EXPECT_EQ(size(16, 0), size(8, 0));
  for (const std::size_t tokens : {3U, 31U, 100U}) EXPECT_EQ(size(8, tokens), size(8, 10));
  // A row of a key and a value, its position and score; a member of the pool another 16 bytes.
  EXPECT_EQ(size(8, 10) - size(8, 0), 3 * (4 + 2 * 2 * 8) + 2 * 16 + 4U);
}

TEST(fault_cases, K05_an_empty_sequence) {
  const std::vector<test_policy> plan{union_of(window(3), heavy_hitters(2)), headwise::global{}};
  half_engine text(two_wide_heads, plan, random_fixture(5)),
      fresh(two_wide_heads, plan, random_fixture(5));
  const std::string file = text.saved();
  text.feed(9);
  half_engine back = text.restored(file);
  EXPECT_EQ(back.text().length(), 0U);
  EXPECT_EQ(back.feed(4), fresh.feed(4));
}

// Rows of 33 packed elements end within a byte.
TEST(fault_cases, K08_rows_that_are_packed) {
  using packed_engine = engine<stranger::packed_nibbles>;
  constexpr std::size_t tokens = 10, scale = sizeof(float);
  for (const std::uint32_t d : {33U, 64U}) {
    packed_engine text({1, 1, 1, d}, {headwise::global{}}, random_fixture(7));
    const std::size_t header = text.saved().size();
    text.feed(tokens);
    const std::size_t row = (d == 33 ? 17U : 32U) + scale;
    EXPECT_EQ(text.text().stats().payload_bytes, tokens * 2 * row);
    const std::string file = text.saved();
    EXPECT_EQ(file.size() - header, tokens * (2 * row + sizeof(position)));
    packed_engine back = text.restored(file);
    EXPECT_EQ(back.saved(), file);
    EXPECT_EQ(back.feed(3), text.feed(3));
  }
}

TEST(fault_cases, K10_files_hold_nothing_but_the_rows) {
  fixture rows = random_fixture(10);
  rows.value = [](headwise::head_id, position pos, std::span<float> row) {
    // 0x5a5a in half precision: what is taken back must not be in the file.
    fill(row, pos >= 20 ? 203.25F : 1.0F);
  };
  const std::vector<test_policy> plan{headwise::global{}, union_of(window(8), heavy_hitters(3))};
  headwise::cache_config config;
  config.rollback_horizon = 12;
  const auto run = [&] {
    half_engine text(two_wide_heads, plan, rows, config);
    text.feed_singly(30);
    EXPECT_TRUE(text.text().try_rollback(10));
    return text.saved();
  };
  const std::string file = run();
  EXPECT_EQ(file, run());
  EXPECT_EQ(file.find("\x5a\x5a\x5a\x5a"), std::string::npos);
  std::byte encoded[2];
  headwise::f16::encode(std::array{203.25F}, encoded);
  EXPECT_EQ(encoded[0], std::byte{0x5a});
  EXPECT_EQ(encoded[1], std::byte{0x5a});
}

// What was taken back leaves no trace: a sequence that was emptied is saved as one that is new.
TEST(saved_sequence, is_of_no_other_bytes_after_truncation_to_nothing) {
  for (const test_policy& policy :
       {test_policy(headwise::global{}), test_policy(window(4)), test_policy(heavy_hitters(2)),
        test_policy(union_of(window(3), heavy_hitters(2)))}) {
    half_engine used({1, 1, 1, 8}, {policy}, random_fixture(8)),
        fresh({1, 1, 1, 8}, {policy}, random_fixture(8));
    used.feed_singly(20);
    ASSERT_TRUE(used.text().try_truncate(0));
    EXPECT_TRUE(used.saved() == fresh.saved()) << headwise::to_string(headwise::make_spec(policy));
    used.feed_singly(20);
    fresh.feed_singly(20);
    EXPECT_TRUE(used.saved() == fresh.saved()) << headwise::to_string(headwise::make_spec(policy));
  }
}

// A file of another cache names what it is of and what is expected.
TEST(saved_sequence, is_refused_by_a_cache_of_another_kind) {
  half_engine text(two_wide_heads, {headwise::global{}, window(4)}, random_fixture(6));
  text.feed(5);
  const std::string file = text.saved();
  half_engine other_plan(two_wide_heads, {headwise::global{}, window(5)}, random_fixture(6));
  EXPECT_NE(refusal(other_plan, file)
                .find("got head 1 with local_window(window=4), expected local_window(window=5)"),
            std::string::npos);
  half_engine other_shape({1, 4, 2, 8}, {headwise::global{}, window(4)}, random_fixture(6));
  EXPECT_NE(refusal(other_shape, file).find("got query heads 2, expected query heads 4"),
            std::string::npos);
  headwise::cache_config config;
  config.rollback_horizon = 3;
  half_engine other_horizon(two_wide_heads, {headwise::global{}, window(4)}, random_fixture(6),
                            config);
  EXPECT_NE(refusal(other_horizon, file).find("rollback_horizon"), std::string::npos);
  engine<headwise::f32> other_codec(two_wide_heads, {headwise::global{}, window(4)},
                                    random_fixture(6));
  try {
    static_cast<void>(other_codec.restored(file));
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_EQ(e.code(), headwise::error_code::shape_mismatch);
    EXPECT_EQ(e.got(), "codec of keys f16");
    EXPECT_EQ(e.expected(), "codec of keys f32");
  }
}

// What was taken back leaves no trace, not even in the numbers of a pool's entries.
TEST(saved_sequence, does_not_depend_on_what_was_taken_back) {
  for (const test_policy& policy :
       {test_policy(window(3)), test_policy(union_of(window(3), heavy_hitters(2)))}) {
    half_engine fresh({1, 1, 1, 8}, {policy}, random_fixture(8));
    half_engine used({1, 1, 1, 8}, {policy}, random_fixture(8));
    used.feed_singly(9);
    ASSERT_TRUE(used.text().try_truncate(0));
    fresh.feed_singly(6);
    used.feed_singly(6);
    EXPECT_EQ(used.saved(), fresh.saved());
  }
}

TEST(saved_sequence, goes_on_over_pages_of_another_size) {
  const std::vector<test_policy> plan{union_of(window(5), heavy_hitters(4)), headwise::global{}};
  headwise::cache_config small, large;
  small.page_tokens = 3;
  large.page_tokens = 16;
  half_engine text(two_wide_heads, plan, random_fixture(7), small);
  half_engine other(two_wide_heads, plan, random_fixture(7), large);
  text.feed_singly(23);
  half_engine back = other.restored(text.saved());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(back.feed(1), text.feed(1));
}

}  // namespace
}  // namespace headwise_tests
