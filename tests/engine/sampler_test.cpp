// SPDX-License-Identifier: Apache-2.0

#include "llama/sampler.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/files.hpp"

namespace headwise_tests {
namespace {

using headwise::error_code;
using llama_example::sampler;
using llama_example::sampling;

// Probabilities 0.1, 0.5, 0.15, 0.25.
const std::vector<float> four_logits{std::log(0.1F), std::log(0.5F), std::log(0.15F),
                                     std::log(0.25F)};

std::vector<double> shares(const sampling& settings, int draws = 20000) {
  sampler source(settings);
  std::vector<double> result(four_logits.size());
  for (int i = 0; i < draws; ++i)
    result[static_cast<std::size_t>(source.pick(four_logits))] += 1.0 / draws;
  return result;
}

TEST(sampler, greedy_takes_the_likeliest_and_the_lowest_id_of_equals) {
  EXPECT_EQ(llama_example::greedy(four_logits), 1);
  EXPECT_EQ(llama_example::greedy(std::vector<float>{1.0F, 3.0F, 3.0F}), 1);
  EXPECT_EQ(sampler({.temperature = 0.0F}).pick(four_logits), 1);
}

TEST(sampler, temperature_one_draws_the_model_s_probabilities) {
  const auto got = shares({.temperature = 1.0F, .seed = 5});
  const std::vector<double> expected{0.1, 0.5, 0.15, 0.25};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 0.015);  // four sigma
}

TEST(sampler, a_low_temperature_sharpens) {
  const auto got =
      shares({.temperature = 0.5F, .seed = 5});  // squares: .01 .25 .0225 .0625 of .345
  const std::vector<double> expected{0.029, 0.7246, 0.0652, 0.1812};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], expected[i], 0.015);
}

TEST(sampler, top_p_keeps_the_fewest_likeliest_that_hold_it) {
  const auto two = shares({.temperature = 1.0F, .top_p = 0.7F, .seed = 5});
  EXPECT_EQ(two[0] + two[2], 0.0);
  EXPECT_NEAR(two[1], 0.5 / 0.75, 0.015);
  const auto one = shares({.temperature = 1.0F, .top_p = 0.3F, .seed = 5}, 100);
  EXPECT_NEAR(one[1], 1.0, 1e-9);
}

TEST(sampler, a_seed_says_it_all) {
  sampler a({.temperature = 1.0F, .seed = 9}), b({.temperature = 1.0F, .seed = 9});
  sampler c({.temperature = 1.0F, .seed = 10});
  int different = 0;
  for (int i = 0; i < 200; ++i) {
    const auto drawn = a.pick(four_logits);
    EXPECT_EQ(drawn, b.pick(four_logits));
    different += drawn == c.pick(four_logits) ? 0 : 1;
  }
  EXPECT_GT(different, 50);
}

TEST(sampler, bad_settings_are_refused) {
  for (const float bad :
       {-1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    expect_error(error_code::invalid_argument, {"temperature"},
                 [&] { sampler({.temperature = bad}); });
  }
  for (const float bad : {0.0F, 1.5F, std::numeric_limits<float>::quiet_NaN()}) {
    expect_error(error_code::invalid_argument, {"top_p"}, [&] { sampler({.top_p = bad}); });
  }
}

}  // namespace
}  // namespace headwise_tests
