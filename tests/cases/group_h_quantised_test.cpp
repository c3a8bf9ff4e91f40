// SPDX-License-Identifier: Apache-2.0
//
// Fault cases H: quantised storage. A row of headwise is quantised by itself, once, as it is
// written: no group reaches over tokens, none waits to be filled, and no row is kept in full.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "support/affine_layout.hpp"
#include "support/counting_resource.hpp"
#include "support/decoded_fixture.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

using headwise::int4_group;
using headwise::int8_row;

constexpr headwise::model_shape one_head_of_64{1, 1, 1, 64};

// The keys of a head as they lie in the cache, in order of position.
template <class Codec, class Engine>
[[nodiscard]] std::vector<std::vector<std::byte>> stored_keys(const Engine& text) {
  const std::size_t bytes = Codec::row_bytes(text.shape().head_dim);
  std::vector<std::vector<std::byte>> result(text.text().length());
  text.text().head({0, 0}).for_each_slab(text.text().length() - 1, [&](const headwise::slab& s) {
    for (std::uint32_t r = 0; r < s.count; ++r)
      result[s.positions[r]].assign(s.keys + r * bytes, s.keys + (r + 1) * bytes);
  });
  return result;
}

// int4 keys and values of 64: two groups, each of a step of 4 bytes and 16 bytes of codes.
TEST(fault_cases, H01_rows_are_quantised_when_they_come) {
  constexpr std::size_t tokens = 200, key_bytes = tokens * 2 * (4 + 16);
  counting_resource memory;
  headwise::cache_config config;
  config.memory = &memory;
  engine<int4_group> at_once(one_head_of_64, {headwise::global{}}, random_fixture(1), config);
  engine<int4_group> singly(one_head_of_64, {headwise::global{}}, random_fixture(1));
  const outputs prompt = at_once.feed(tokens);
  singly.feed(32);
  const outputs decoded = singly.feed_singly(tokens - 32);
  EXPECT_EQ(std::memcmp(prompt.row(tokens - 1).data(), decoded.row(0).data(), 64 * sizeof(float)),
            0);
  EXPECT_TRUE(at_once.saved() == singly.saved());

  const headwise::cache_stats stats = at_once.text().stats();
  EXPECT_EQ(stats.payload_bytes, 2 * key_bytes);
  std::size_t stored = 0;
  for (const auto& row : stored_keys<int4_group>(at_once)) stored += row.size();
  EXPECT_EQ(stored, key_bytes);
  EXPECT_EQ(at_once.cache().stats().held_bytes, memory.bytes());
}

// No window of rows in full precision, so none that could be lost or grow: the last 4 rows are the
// bytes that the codec makes of them, as all others are, at every length.
TEST(fault_cases, H02_no_row_is_kept_in_full) {
  for (const std::size_t chunk : {1U, 3U, 7U}) {
    const fixture given = random_fixture(2);
    engine<int4_group> text(one_head_of_64, {headwise::global{}}, given);
    while (text.text().length() < 20) {
      text.feed(std::min<std::size_t>(chunk, 20 - text.text().length()));
      const auto stored = stored_keys<int4_group>(text);
      ASSERT_EQ(stored.size(), text.text().length());
      for (position pos = 0; pos < stored.size(); ++pos) {
        std::vector<float> row(64), decoded(64);
        given.key({0, 0}, pos, row);
        std::vector<std::byte> expected(int4_group::row_bytes(64));
        int4_group::encode(row, expected.data());
        ASSERT_EQ(stored[pos], expected) << pos;
        int4_group::decode(stored[pos].data(), decoded);
        for (std::size_t i = 0; i < 64; ++i) {
          const auto group = std::span(row).subspan(i / 32 * 32, 32);
          ASSERT_NEAR(decoded[i], row[i], step_bound(group, 15) / 2) << pos << ' ' << i;
        }
      }
      EXPECT_EQ(text.text().stats().payload_bytes, stored.size() * 80);
    }
  }
}

template <class Codec>
void expect_constants() {
  for (const float constant : {0.0F, 100.0F, -100.0F, 1e-30F, 65504.0F, -65504.0F}) {
    std::vector<float> row(32, constant);
    decode_encoded<Codec>(row);
    for (const float x : row) EXPECT_NEAR(x, constant, 1e-3 * std::abs(double{constant}));
  }
  std::vector<float> row(32, 0.0F);
  row[20] = 1e-7F;
  decode_encoded<Codec>(row);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(row[i], i == 20 ? 1e-7 : 0.0, 1e-7 * 1e-2);

  // In a cache: a head whose rows are all one constant gives it back.
  fixture rows = uniform_fixture();
  rows.key =
      rows.value = [](headwise::head_id, position, std::span<float> to) { fill(to, -65504.0F); };
  engine<Codec> text({1, 1, 1, 32}, {headwise::global{}}, rows);
  EXPECT_NEAR(text.feed(9).last(), -65504.0, 65.0);
}
TEST(fault_cases, H04_groups_of_equal_elements) {
  expect_constants<int8_row>();
  expect_constants<int4_group>();
}

// There is no range that was calibrated before: each row has the step that it needs.
template <class Codec>
void expect_no_wrap() {
  using layout = affine_layout<Codec>;
  const std::vector<float> pushed{1.0F, 1.2F, -1.2F};
  fixture rows = uniform_fixture();
  rows.key = [&](headwise::head_id, position pos, std::span<float> row) {
    fill(row, 0.25F);
    row[3] = pushed[pos];
    row[4] = -pushed[pos];
  };
  engine<Codec> text({1, 1, 1, 32}, {headwise::global{}}, rows);
  std::vector<std::vector<std::byte>> before;
  for (std::size_t pos = 0; pos < pushed.size(); ++pos) {
    text.feed(1);
    const auto stored = stored_keys<Codec>(text);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(stored[i], before[i]);
    before = stored;
    const read_element third = element_at<Codec>(stored[pos].data(), 32, 3);
    const read_element fourth = element_at<Codec>(stored[pos].data(), 32, 4);
    EXPECT_NEAR(third.value(), double{pushed[pos]}, third.step.scale / 2 * (1 + 1e-9));
    EXPECT_NEAR(fourth.value(), -double{pushed[pos]}, fourth.step.scale / 2 * (1 + 1e-9));
    const bool rising = pushed[pos] > 0.0F;
    EXPECT_GE(rising ? third.code : fourth.code, layout::top - 2);
    EXPECT_LE(rising ? fourth.code : third.code, 1);
  }
}
TEST(fault_cases, H05_values_beyond_those_before) {
  expect_no_wrap<int8_row>();
  expect_no_wrap<int4_group>();
}

// int8 keys beside f16 values: a length is one for both, and each prompt is as good as the first.
TEST(fault_cases, H09_codecs_that_differ) {
  using mixed_engine = engine<int8_row, headwise::f16>;
  const fixture given = random_fixture(9);
  mixed_engine text({1, 2, 1, 64}, {headwise::global{}}, given);
  for (const std::size_t count : {40U, 1U, 1U, 1U, 1U, 1U, 10U}) {
    const position length = text.text().length() + static_cast<position>(count);
    const outputs got = text.feed(count);
    EXPECT_EQ(text.text().length(), length);
    for (std::uint32_t head = 0; head < 2; ++head) {
      const position query = length - 1;
      const reference_output exact = text.dense(0, head, query, range(0, query));
      text.set_rows(decoded_fixture<int8_row, headwise::f16>(given));
      const reference_output same_rows = text.dense(0, head, query, range(0, query));
      text.set_rows(given);
      // Half a step of at most 2 / 255 in each product moves a logit by so much, a probability by
      // the exponential of twice that.
      std::vector<float> row(64);
      given.query(0, head, query, row);
      double moved = 0.0, largest = 0.0;
      for (const float x : row) {
        moved += double{given.scale} * std::abs(double{x}) * 1.008 / 255;
        largest = std::max(largest, std::abs(double{x}));
      }
      const double bound = std::expm1(2 * moved) + 0x1p-11;
      // attend rounds the query to a 32767th of its largest element, half of which meets 128 steps
      // of at most 1.008 * 2 / 255 in each product.
      const double rounded = double{given.scale} * 64 * largest * 1.02 / 65534;
      for (std::size_t i = 0; i < 64; ++i) {
        EXPECT_NEAR(double{got.row(count - 1, head)[i]}, same_rows.values[i],
                    1e-5 + std::expm1(2 * rounded));
        EXPECT_NEAR(double{got.row(count - 1, head)[i]}, exact.values[i],
                    bound + std::expm1(2 * rounded));
      }
    }
  }
  EXPECT_EQ(text.text().length(), 55U);
}

}  // namespace
}  // namespace headwise_tests
