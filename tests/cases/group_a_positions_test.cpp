// SPDX-License-Identifier: Apache-2.0
//
// Fault cases A: positions and rotation. headwise keeps absolute positions and keys as they are
// given; it has no call that renumbers, shifts or rotates, so there is nothing that could mix two
// numberings or drift.
#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

// Random keys and queries, rotated at their positions; V[t] = t.
fixture rotated_fixture(std::size_t rotary) {
  fixture plain = random_fixture(3);
  return {
      [plain, rotary](headwise::head_id head, position pos, std::span<float> row) {
        plain.key(head, pos, row);
        rotate(row, pos, rotary);
      },
      value_is_position(),
      [plain, rotary](std::uint32_t layer, std::uint32_t head, position pos, std::span<float> row) {
        plain.query(layer, head, pos, row);
        rotate(row, pos, rotary);
      },
      0.9F};
}

void expect_dense(const engine<>& text, const outputs& got, const positions& kept) {
  const auto expected = text.dense(0, 0, text.text().length() - 1, kept);
  EXPECT_NEAR(got.last(), expected.values[0], 1e-5);
}

TEST(fault_cases, A01_positions_after_eviction) {
  engine text({1, 1, 1, 8}, {window(4)}, rotated_fixture(8));
  const outputs last = text.feed_singly(12);
  EXPECT_EQ(text.kept(), range(8, 11));
  expect_dense(text, last, range(8, 11));
  const headwise::cache_stats stats = text.text().stats();
  EXPECT_EQ(stats.length, 12U);
  EXPECT_EQ(stats.resident_rows, 4U);
  EXPECT_EQ(text.next_tokens({0})[0].pos, 12U);
}

TEST(fault_cases, A02_sinks_and_window_share_one_numbering) {
  engine text({1, 1, 1, 4}, {sinks_and_window(4)}, rotated_fixture(4), {},
              headwise::token_classifier(2));
  const outputs last = text.feed_singly(9);
  const positions kept{0, 1, 5, 6, 7, 8};
  EXPECT_EQ(text.kept(), kept);
  expect_dense(text, last, kept);
}

TEST(fault_cases, A03_stored_keys_never_change) {
  const fixture rows = rotated_fixture(64);
  engine<headwise::f16> text({1, 1, 1, 64}, {sinks_and_window(16)}, rows, {},
                             headwise::token_classifier(4));
  for (int i = 0; i < 20'000; ++i) text.append(1);
  std::size_t seen = 0;
  text.text().head({0, 0}).for_each_slab(19'999, [&](const headwise::slab& s) {
    for (std::uint32_t r = 0; r < s.count; ++r, ++seen) {
      std::vector<float> key(64);
      std::vector<std::byte> once(128);
      rows.key({0, 0}, s.positions[r], key);
      headwise::f16::encode(key, once.data());
      EXPECT_EQ(std::memcmp(once.data(), s.keys + r * 128, 128), 0) << s.positions[r];
    }
  });
  EXPECT_EQ(seen, 20U);
}

// The engine rotates, by whatever layout its model has, and the cache gives back what it was given.
TEST(fault_cases, A04_pair_layouts_are_the_engines) {
  const std::vector<float> raw{1, 2, 3, 4, 5, 6, 7, 8};
  const auto rotated = [&](pair_layout layout, double pos) {
    std::vector<float> key = raw;
    rotate(key, pos, 4, layout);
    return key;
  };
  const std::vector<float> neighbours{2.201511F, -0.391600F, 2.796334F, 4.144939F, 5, 6, 7, 8};
  const std::vector<float> halves{3.160435F, 1.797584F, -0.107938F, 4.094959F, 5, 6, 7, 8};
  const std::vector<float> neighbours_at_2{-2.234742F, 0.077004F, 2.919405F, 4.059196F, 5, 6, 7, 8};
  const std::vector<float> halves_at_2{-3.144039F, 1.919605F, -0.339143F, 4.039197F, 5, 6, 7, 8};
  for (std::size_t i = 0; i < raw.size(); ++i) {
    EXPECT_NEAR(rotated(pair_layout::neighbours, 5)[i], neighbours[i], 1e-5);
    EXPECT_NEAR(rotated(pair_layout::halves, 5)[i], halves[i], 1e-5);
    EXPECT_NEAR(rotated(pair_layout::neighbours, 2)[i], neighbours_at_2[i], 1e-5);
    EXPECT_NEAR(rotated(pair_layout::halves, 2)[i], halves_at_2[i], 1e-5);
  }
  for (const pair_layout layout : {pair_layout::neighbours, pair_layout::halves}) {
    fixture rows = uniform_fixture();
    rows.key = [&](headwise::head_id, position pos, std::span<float> row) {
      std::copy(raw.begin(), raw.end(), row.begin());
      rotate(row, pos, 4, layout);
    };
    engine text({1, 1, 1, 8}, {window(3)}, rows);
    text.feed_singly(6);
    const std::vector<float> expected = rotated(layout, 5);
    text.text().head({0, 0}).for_each_slab(5, [&](const headwise::slab& s) {
      const std::byte* const newest = s.keys + (s.count - 1) * 8 * sizeof(float);
      EXPECT_EQ(std::memcmp(newest, expected.data(), 8 * sizeof(float)), 0);
    });
  }
}

// Nothing happens when a window fills up but that its oldest row leaves.
TEST(fault_cases, A05_a_full_window_needs_no_shift) {
  engine<headwise::f16> text({1, 1, 1, 32}, {window(8)}, random_fixture(5));
  for (position pos = 0; pos < 40; ++pos) {
    const outputs out = text.feed(1);
    const positions kept = range(pos < 8 ? 0 : pos - 7, pos);
    EXPECT_EQ(text.kept(), kept);
    const auto expected = text.dense(0, 0, pos, kept);
    // f16 rows: each value within 2^-11, each logit within 32 * 2^-11 * 0.5.
    for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(out.row(0)[i], expected.values[i], 2e-2);
  }
}

TEST(fault_cases, A06_protected_first_tokens) {
  for (const std::int32_t first : {1, 5}) {  // with and without BOS, id 1
    engine text({1, 1, 1, 2}, {sinks_and_window(3)}, uniform_fixture(), {},
                headwise::token_classifier(4));
    text.feed({first, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    EXPECT_NEAR(text.feed(std::vector<std::int32_t>{16}).last(), 36.0 / 7.0, 1e-5);
    EXPECT_EQ(text.kept(), (positions{0, 1, 2, 3, 9, 10, 11}));
  }
}

}  // namespace
}  // namespace headwise_tests
