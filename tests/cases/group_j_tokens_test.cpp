// SPDX-License-Identifier: Apache-2.0
//
// Fault group J, token ids: what a class holds, ids outside of a vocabulary, another tokenizer.
#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/files.hpp"
#include "support/recorded_maps.hpp"

namespace {

using namespace headwise_tests;
using headwise::error_code;
using headwise::token_rules;

TEST(fault_cases, J06_punctuation_with_space_in_front) {
  const std::vector<std::int32_t> prompt{5, 13, 6, 842, 7, 627};  // 13 '.', 842 ' .', 627 '.\n'
  const auto kept = [&](std::vector<std::int32_t> ids) {
    const token_rules rules{0, {{"punctuation", token_classes::punctuation, std::move(ids)}}};
    const auto classifier = headwise::make_classifier(rules, 1000);
    // The last query looks at all six tokens alike.
    recorded_map map =
        make_map(classifier.tokens(std::span(prompt)), std::vector<float>(6, 1.0F / 6));
    map.first_query = 5;
    const std::vector<recorded_map> maps{map};
    recorded_source source{{1, 1, 1, 8}, &maps};
    headwise::profile_options options;
    options.measure.use_ladder = false;
    options.measure.candidates = {
        {"punctuation", make_spec(headwise::special_tokens(token_classes::punctuation))}};
    const headwise::blueprint plan = headwise::profile(source, rules, {}, options);
    EXPECT_EQ(plan.tokens, rules);  // says how many ids the class has
    return plan.heads.front().candidates.front();
  };
  // All three ids: positions 1, 3, 5. {13} alone: position 1, and the query's own.
  EXPECT_NEAR(kept({13, 627, 842}).recovery, 3.0 / 6, 1e-7);
  EXPECT_DOUBLE_EQ(kept({13, 627, 842}).resident_fraction, 3.0 / 6);
  EXPECT_NEAR(kept({13}).recovery, 2.0 / 6, 1e-7);
  EXPECT_DOUBLE_EQ(kept({13}).resident_fraction, 2.0 / 6);
}

TEST(fault_cases, J08_id_out_of_vocabulary) {
  const headwise::token_classifier classifier = headwise::make_classifier({}, 100);
  const auto refused = [&](std::int64_t id) {
    const std::vector<std::int64_t> ids{5, id};
    expect_error(error_code::out_of_range, {"[1]", std::to_string(id), "0 to 99"},
                 [&] { static_cast<void>(classifier.tokens(std::span(ids))); });
  };
  refused(-1);
  refused(100);
  refused(std::int64_t{1} << 31);
  refused((std::int64_t{1} << 32) + 5);  // not 5
  const std::vector<std::int64_t> good{5, 99};
  EXPECT_EQ(classifier.tokens(std::span(good)).back().id, 99);
}

TEST(fault_cases, J10_another_tokenizer) {
  random_source random(1);
  const model_shape shape{1, 1, 1, 8};
  const std::vector<recorded_map> maps = random_maps(random, shape, 1, 0);
  recorded_source source{shape, &maps};
  const headwise::blueprint plan = headwise::profile(source, {}, {"llama", 32000, "00ff"});
  EXPECT_NO_THROW(require_match(plan, shape, {"llama", 32000, "00ff"}));
  expect_error(error_code::shape_mismatch, {"vocab_size", "32000", "128256"}, [&] {
    require_match(plan, shape, {"llama", 128256, "00ff"});
  });
  expect_error(error_code::shape_mismatch, {"tokenizer", "00ff", "00fe"}, [&] {
    require_match(plan, shape, {"llama", 32000, "00fe"});
  });
  // Opting out is to say nothing of the model.
  EXPECT_NO_THROW(require_match(plan, shape));
}

}  // namespace
