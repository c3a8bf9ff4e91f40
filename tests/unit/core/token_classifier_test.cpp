// SPDX-License-Identifier: Apache-2.0
#include "headwise/core/token_classifier.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tests {
namespace {

using headwise::token_classes;
using headwise::token_classifier;

// Post-conditions of tokens(ids, first):
// 1. one token for each id, in order  2. positions count from first  3. the id as given
// 4. the classes of the id, and sink below sink_count
TEST(token_classifier, classes_by_id_and_sinks_by_position) {
  std::vector<token_classes> by_id(10, token_classes::none);
  by_id[3] = token_classes::punctuation;
  by_id[7] = token_classes::special | token_classes::punctuation;
  const token_classifier classifier(2, by_id);
  const std::vector<std::int32_t> ids{7, 3, 3, 0, 7, 9};
  for (const headwise::position first : {0U, 1U, 2U, 500U}) {
    const auto tokens = classifier.tokens(std::span<const std::int32_t>(ids), first);
    ASSERT_EQ(tokens.size(), ids.size());  // 1
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(tokens[i].pos, first + i);  // 2
      EXPECT_EQ(tokens[i].id, ids[i]);      // 3
      token_classes expected = by_id[static_cast<std::size_t>(ids[i])];
      if (first + i < 2) expected |= token_classes::sink;
      EXPECT_EQ(tokens[i].classes, expected);  // 4
      EXPECT_EQ(classifier.classify(ids[i], first + i), tokens[i]);
    }
  }
}

TEST(token_classifier, without_a_vocabulary_every_id_is_known) {
  const token_classifier classifier(1);
  const std::vector<std::int64_t> ids{0, std::numeric_limits<std::int32_t>::max()};
  const auto tokens = classifier.tokens(std::span<const std::int64_t>(ids));
  EXPECT_EQ(tokens[0].classes, token_classes::sink);
  EXPECT_EQ(tokens[1].classes, token_classes::none);
  EXPECT_EQ(tokens[1].id, std::numeric_limits<std::int32_t>::max());
}

// Positions end where a sequence does: none wraps to 0, where it would be a sink.
TEST(token_classifier, gives_no_position_beyond_a_sequence) {
  using headwise::max_length;
  const token_classifier classifier(4);
  const std::vector<std::int32_t> ids{1, 2, 3};
  const auto last = classifier.tokens(ids, max_length - 3);
  EXPECT_EQ(last.back().pos, max_length - 1);
  EXPECT_EQ(last.back().classes, token_classes::none);
  for (const headwise::position first : {max_length - 2, max_length, max_length + 1}) try {
      static_cast<void>(classifier.tokens(ids, first));
      FAIL() << first;
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.code(), headwise::error_code::out_of_range);
      EXPECT_EQ(e.got(), "3 ids from position " + std::to_string(first));
    }
}

TEST(fault_cases, J08_token_ids_outside_of_the_vocabulary) {
  const token_classifier classifier(0, std::vector<token_classes>(100, token_classes::none));
  const std::int64_t wrong[] = {-1, 100, std::int64_t{1} << 31, (std::int64_t{1} << 32) + 5,
                                std::numeric_limits<std::int64_t>::min()};
  for (const std::int64_t id : wrong) {
    const std::vector<std::int64_t> ids{5, id};
    try {
      static_cast<void>(classifier.tokens(std::span<const std::int64_t>(ids)));
      FAIL() << id;
    } catch (const headwise::error& e) {
      EXPECT_EQ(e.what(), "token ids[1]: out of range: got " + std::to_string(id) +
                              ", expected an id from 0 to 99");
    }
  }
  const std::vector<std::uint64_t> unsigned_ids{(std::uint64_t{1} << 63) + 5};
  EXPECT_THROW(static_cast<void>(classifier.tokens(std::span<const std::uint64_t>(unsigned_ids))),
               headwise::error);
  const std::vector<std::uint16_t> last{99};
  EXPECT_EQ(classifier.tokens(std::span<const std::uint16_t>(last))[0].id, 99);
}

// classify() is for ids that are known to be good: a wrong one is a caller's bug.
TEST(fault_cases, J08_a_single_wrong_id_is_a_broken_contract) {
  const token_classifier classifier(0, std::vector<token_classes>(100, token_classes::none));
  EXPECT_DEATH(static_cast<void>(classifier.classify(100, 0)), "outside of the vocabulary");
  EXPECT_DEATH(static_cast<void>(classifier.classify(-1, 0)), "outside of the vocabulary");
}

TEST(token_classifier, comes_out_of_the_rules_of_a_blueprint) {
  headwise::token_rules rules;
  rules.sink_count = 1;
  rules.classes = {{"special", token_classes::special, {2, 4}},
                   {"punctuation", token_classes::punctuation, {4, 5}}};
  const token_classifier classifier = headwise::make_classifier(rules, 6);
  EXPECT_EQ(classifier.classify(2, 3).classes, token_classes::special);
  EXPECT_EQ(classifier.classify(4, 3).classes, token_classes::special | token_classes::punctuation);
  EXPECT_EQ(classifier.classify(0, 0).classes, token_classes::sink);
  try {
    static_cast<void>(headwise::make_classifier(rules, 5));
    FAIL();
  } catch (const headwise::error& e) {
    EXPECT_STREQ(e.what(),
                 "tokens.classes.punctuation: out of range: got 5, expected an id below vocab_size "
                 "5");
  }
}

}  // namespace
}  // namespace headwise_tests
