// SPDX-License-Identifier: Apache-2.0
//
// Fault case H10: no codec, policy or way to copy a sequence is accepted and then not applied. All
// pairs of them, on two KV heads of eight query heads, over 200 tokens.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/codec/f16.hpp"
#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"
#include "support/counting_resource.hpp"
#include "support/decoded_fixture.hpp"
#include "support/engine.hpp"

namespace headwise_tests {
namespace {

constexpr headwise::model_shape grouped{1, 8, 2, 64};
constexpr position paired_tokens = 200;
constexpr std::size_t f16_global_bytes = 2 * paired_tokens * (2 * 64 * 2);

struct paired_policy {
  test_policy policy;
  positions kept;  // what the newest of 200 tokens sees
};
[[nodiscard]] positions joined(positions a, const positions& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Each of these draws nearly all that a query gives from when it comes to when the next one does.
[[nodiscard]] float pull_of(position pos) {
  return pos == 10 ? 30.0F : pos == 60 ? 60.0F : pos == 110 ? 90.0F : pos == 150 ? 120.0F : 0.0F;
}
[[nodiscard]] std::vector<paired_policy> paired_policies() {
  return {{headwise::global{}, range(0, 199)},
          {window(8), range(192, 199)},
          {sinks_and_window(8), joined({0, 1}, range(192, 199))},
          {headwise::union_of(window(4), headwise::heavy_hitters(4)),
           joined({10, 60, 110, 150}, range(196, 199))}};
}
[[nodiscard]] fixture pulling_fixture(std::uint32_t seed) {
  fixture rows = random_fixture(seed, 1.0F);
  rows.key = [](headwise::head_id head, position pos, std::span<float> row) {
    fill_random(row, 4096 * pos + head.kv_head);
    row[0] = pull_of(pos);
  };
  rows.query = [fill_query = rows.query](std::uint32_t layer, std::uint32_t head, position pos,
                                         std::span<float> row) {
    fill_query(layer, head, pos, row);
    for (float& x : row) x *= 0.125F;
    row[0] = 1.0F;
  };
  return rows;
}

// As the headers of the codecs say, for a key and a value of 64.
template <class Codec>
constexpr std::size_t pair_bytes = 2 * (std::is_same_v<Codec, headwise::f16>        ? 2 * 64
                                        : std::is_same_v<Codec, headwise::int8_row> ? 4 + 64
                                                                                    : 2 * (4 + 16));

template <class Codec>
class pair_of_options {
 public:
  using text_type = engine<Codec>;

  explicit pair_of_options(const paired_policy& option) : option_(option) {
    config_.memory = &memory_;
  }
  [[nodiscard]] text_type opened(std::uint32_t seed = 10) const {
    return text_type(grouped, {option_.policy, option_.policy}, pulling_fixture(seed), config_,
                     headwise::token_classifier(2));
  }
  // 1. kept set  2. payload: the formula, and below that of f16 and global  3. bytes held as
  // counted
  // 4. the policy's name  5. the output of the newest token over the rows as decoded
  void expect_applied(text_type& text) const {
    const headwise::cache_stats stats = text.text().stats();
    for (std::uint32_t head = 0; head < 2; ++head) {
      EXPECT_EQ(text.kept({0, head}), option_.kept);  // 1
      EXPECT_EQ(headwise::to_string(headwise::make_spec(text.text().plan()[head])),
                headwise::to_string(headwise::make_spec(option_.policy)));  // 4
    }
    EXPECT_EQ(stats.payload_bytes, 2 * option_.kept.size() * pair_bytes<Codec>);  // 2
    if (!std::is_same_v<Codec, headwise::f16> || option_.kept.size() < paired_tokens) {
      EXPECT_LT(stats.payload_bytes, f16_global_bytes * 6 / 10);
    }
    EXPECT_EQ(text.cache().stats().held_bytes, memory_.bytes());  // 3
  }
  // Quantised keys: attend rounds the query, whose largest element is 1, to a 32767th. Half of that
  // meets the range of the keys' elements, 2 at most; half of it in int8_row, whose codes lie to
  // both sides. Where rows that pull are kept, the range is larger, but one of them draws all.
  [[nodiscard]] static double query_rounding() {
    if (std::is_same_v<Codec, headwise::f16>) return 0.0;
    return 64 * 1.008 * 2.0 / 65534 * (std::is_same_v<Codec, headwise::int8_row> ? 0.502 : 1.0);
  }
  void expect_attended(text_type& text, const outputs& last, const fixture& rows) const {
    text.set_rows(decoded_fixture<Codec, Codec>(rows));
    for (std::uint32_t head = 0; head < 8; ++head) {
      const auto expected = text.dense(0, head, paired_tokens - 1, option_.kept);
      for (std::size_t i = 0; i < 64; ++i)
        EXPECT_NEAR(double{last.row(0, head)[i]}, expected.values[i],
                    1e-5 + std::expm1(2 * query_rounding()));  // 5
    }
    text.set_rows(rows);
  }

 private:
  const paired_policy& option_;
  counting_resource memory_;
  headwise::cache_config config_;
};

template <class Codec>
void expect_plain(const paired_policy& option) {
  const pair_of_options<Codec> options(option);
  auto text = options.opened();
  options.expect_attended(text, text.feed_singly(paired_tokens), pulling_fixture(10));
  options.expect_applied(text);
}
template <class Codec>
void expect_forked(const paired_policy& option) {
  const pair_of_options<Codec> options(option);
  auto text = options.opened();
  text.feed_singly(paired_tokens);
  auto fork = text.fork();
  options.expect_applied(fork);
  EXPECT_TRUE(fork.saved() == text.saved());
  EXPECT_EQ(fork.feed(5), text.feed(5));
}
// Two sequences of one manager, fed by turns: what comes of batches that are merged.
template <class Codec>
void expect_side_by_side(const paired_policy& option) {
  const pair_of_options<Codec> alone_options(option), options(option);
  auto alone = alone_options.opened();
  alone.feed_singly(paired_tokens);
  auto text = options.opened(11);
  engine<Codec> second(text.shared_cache(), pulling_fixture(10), headwise::token_classifier(2));
  for (position pos = 0; pos < paired_tokens; ++pos) {
    text.feed(1);
    second.feed(1);
  }
  options.expect_applied(text);
  options.expect_applied(second);
  EXPECT_TRUE(second.saved() == alone.saved());
  EXPECT_EQ(second.feed(5), alone.feed(5));
}
template <class Codec>
void expect_restored(const paired_policy& option) {
  const pair_of_options<Codec> options(option);
  auto text = options.opened();
  text.feed_singly(paired_tokens);
  const std::string file = text.saved();
  auto back = text.restored(file);
  options.expect_applied(back);
  EXPECT_TRUE(back.saved() == file);
  EXPECT_EQ(back.feed(5), text.feed(5));
}

template <class Codec>
void expect_all_pairs() {
  for (const paired_policy& option : paired_policies()) {
    SCOPED_TRACE(std::string(Codec::name) + " with " +
                 headwise::to_string(headwise::make_spec(option.policy)));
    expect_plain<Codec>(option);
    expect_forked<Codec>(option);
    expect_side_by_side<Codec>(option);
    expect_restored<Codec>(option);
  }
}
TEST(fault_cases, H10_all_pairs_with_int4) {
  expect_all_pairs<headwise::int4_group>();
}
TEST(fault_cases, H10_all_pairs_with_int8) {
  expect_all_pairs<headwise::int8_row>();
}
TEST(fault_cases, H10_all_pairs_with_f16) {
  expect_all_pairs<headwise::f16>();
}

}  // namespace
}  // namespace headwise_tests
