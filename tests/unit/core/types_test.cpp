// SPDX-License-Identifier: Apache-2.0
#include "headwise/core/types.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/core/rows.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::forever;
using headwise::lifetime_set;
using headwise::position;
using headwise::sees;
using headwise::token_classes;
using headwise::token_count;

// Post-conditions of sees(query, pos, lifetime), over all small numbers and the largest:
// 1. a query sees its own token for every lifetime >= 1
// 2. no query sees a later token
// 3. exactly `lifetime` queries see a token, its own first
// 4. a longer lifetime never hides what a shorter one shows
// 5. forever is seen from the last position of the longest sequence
TEST(sees, counts_queries_from_the_tokens_own) {
  for (position pos = 0; pos < 20; ++pos)
    for (token_count lifetime = 1; lifetime < 25; ++lifetime) {
      EXPECT_TRUE(sees(pos, pos, lifetime));  // 1
      token_count queries = 0;
      for (position query = 0; query < 60; ++query) {
        if (query < pos) {
          EXPECT_FALSE(sees(query, pos, lifetime));  // 2
        }
        if (sees(query, pos, lifetime)) ++queries;
        if (sees(query, pos, lifetime)) {
          EXPECT_TRUE(sees(query, pos, lifetime + 1));  // 4
        }
      }
      EXPECT_EQ(queries, lifetime);  // 3
    }
  for (position later = 1; later < 10; ++later) EXPECT_FALSE(sees(0, later, forever));  // 2
  EXPECT_TRUE(sees(headwise::max_length - 1, 0, forever));                              // 5
  EXPECT_FALSE(sees(headwise::max_length - 1, 0, forever - 2));
}

// Post-conditions of lifetime_set, against a sorted vector without doubles, for random inserts:
// 1. the same values in the same order  2. size  3. contains  4. order of inserts does not matter
TEST(lifetime_set, is_a_small_sorted_set) {
  random_source random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<token_count> values;
    lifetime_set forwards, backwards;
    const std::uint32_t inserts = random.below(20);
    std::vector<token_count> inserted;
    for (std::uint32_t i = 0; i < inserts; ++i)
      inserted.push_back(random.one_in(5) ? forever : random.between(1, 7));
    for (const token_count value : inserted) forwards.insert(value);
    std::for_each(inserted.rbegin(), inserted.rend(), [&](auto v) { backwards.insert(v); });
    values = inserted;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    EXPECT_TRUE(std::equal(forwards.begin(), forwards.end(), values.begin(), values.end()));  // 1
    EXPECT_EQ(forwards.size(), values.size());                                                // 2
    for (token_count v = 1; v < 10; ++v)
      EXPECT_EQ(forwards.contains(v), std::binary_search(values.begin(), values.end(), v));  // 3
    EXPECT_EQ(forwards, backwards);                                                          // 4
  }
  static_assert(lifetime_set{5, 1, 5, forever}[1] == 5);
  static_assert(lifetime_set{5, 1, 5, forever}.size() == 3);
}

TEST(lifetime_set, holds_eight_and_says_so) {
  lifetime_set full{1, 2, 3, 4, 5, 6, 7, 8};
  full.insert(8);  // is there already
  EXPECT_EQ(full.size(), lifetime_set::capacity);
  EXPECT_DEATH(full.insert(9), "a policy gives at most 8 distinct lifetimes");
}

TEST(token_classes, are_a_bit_set) {
  const auto both = token_classes::sink | token_classes::punctuation;
  EXPECT_TRUE(any(both & token_classes::sink));
  EXPECT_FALSE(any(both & token_classes::special));
  EXPECT_FALSE(any(token_classes::none));
  token_classes classes = token_classes::none;
  classes |= static_cast<token_classes>(headwise::first_user_class);
  EXPECT_EQ(static_cast<std::uint32_t>(classes), 0x10000U);
}

TEST(model_shape, group_and_heads) {
  constexpr headwise::model_shape shape{30, 9, 3, 64};
  static_assert(shape.group_size() == 3);
  static_assert(shape.heads() == 90);
  constexpr headwise::model_shape vast{4'000'000'000, 8, 8, 1};
  static_assert(vast.heads() == 32'000'000'000);  // no 32-bit product
  EXPECT_NO_THROW(validate(shape));
  EXPECT_EQ(to_string(headwise::head_id{3, 1}), "layer 3 head 1");
  EXPECT_LT((headwise::head_id{1, 7}), (headwise::head_id{2, 0}));
}

TEST(rows, address_by_stride) {
  std::vector<float> data{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const headwise::rows<float> strided(data.data(), 2, 3, 5);
  EXPECT_EQ(strided[0][2], 2.0F);
  EXPECT_EQ(strided[1][0], 5.0F);
  EXPECT_EQ(strided[1].size(), 3U);
  strided[1][0] = -1.0F;
  const headwise::rows<const float> read_only = strided;
  EXPECT_EQ(read_only[1][0], -1.0F);
  const headwise::rows<float> dense(data.data(), 5, 2);
  EXPECT_EQ(dense.stride, 2U);
  EXPECT_EQ(dense[4].data(), data.data() + 8);
}

}  // namespace
}  // namespace headwise_tests
