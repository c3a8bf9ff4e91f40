// SPDX-License-Identifier: Apache-2.0
//
// Bad maps: each one place in an otherwise good set is spoilt, and the error must name that place.

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "headwise/profile/profiler.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;

constexpr model_shape map_shape{2, 2, 1, 8};

// Two prompts of 6 tokens; the map of prompt 1, layer 1, query head 0 is `spoilt`.
std::vector<recorded_map> good_maps() {
  random_source random(1);
  std::vector<recorded_map> maps;
  for (std::uint32_t prompt = 0; prompt < 2; ++prompt)
    for (std::uint32_t layer = 0; layer < 2; ++layer)
      for (std::uint32_t head = 0; head < 2; ++head) {
        recorded_map map;
        map.prompt = prompt;
        map.layer = layer;
        map.query_head = head;
        map.queries = 6;
        random_source same_tokens(prompt);
        map.keys = random_prompt(same_tokens, 6, 1);
        fill_random(random, map);
        maps.push_back(std::move(map));
      }
  return maps;
}
constexpr std::size_t spoilt = 6;

blueprint profile_of(const std::vector<recorded_map>& maps) {
  recorded_source source{map_shape, &maps};
  return profile(source, {});
}

error error_of(const std::function<void(std::vector<recorded_map>&)>& spoil) {
  std::vector<recorded_map> maps = good_maps();
  spoil(maps);
  try {
    (void)profile_of(maps);
  } catch (const error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return {error_code::missing, "", "", ""};
}

const std::string place = "maps.safetensors: prompt 1 layer 1 query head 0";

TEST(map_check, accepts_good_maps) {
  EXPECT_EQ(profile_of(good_maps()).heads.size(), 2U);
}

TEST(map_check, names_a_weight_that_is_no_number) {
  for (const float weight :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()})
    for (std::size_t row = 0; row < 6; ++row)
      for (std::size_t key = 0; key < 6; ++key) {  // also behind the diagonal
        const error e = error_of([&](auto& maps) { maps[spoilt].at(row, key) = weight; });
        EXPECT_EQ(e.code(), error_code::not_normalized);
        EXPECT_EQ(e.place(), place + " row " + std::to_string(row));
        EXPECT_NE(e.got().find("key " + std::to_string(key)), std::string::npos) << e.got();
      }
}

TEST(map_check, names_a_negative_weight) {
  for (std::size_t row = 1; row < 6; ++row)
    for (std::size_t key = 0; key < row; ++key) {
      const error e = error_of([&](auto& maps) {  // the sum stays 1
        float& weight = maps[spoilt].at(row, key);
        maps[spoilt].at(row, row) += weight + 0.125F;
        weight = -0.125F;
      });
      EXPECT_EQ(e.code(), error_code::not_normalized);
      EXPECT_EQ(e.place(), place + " row " + std::to_string(row));
      EXPECT_EQ(e.got(),
                "weight -0.125 at query " + std::to_string(row) + " key " + std::to_string(key));
    }
}

TEST(map_check, names_mass_on_a_later_key) {
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t key = row + 1; key < 6; ++key)
      for (const float weight : {0.5F, 1e-30F, -0.5F}) {
        const error e = error_of([&](auto& maps) { maps[spoilt].at(row, key) = weight; });
        EXPECT_EQ(e.code(), weight < 0 ? error_code::not_normalized : error_code::not_causal);
        EXPECT_EQ(e.place(), place + " row " + std::to_string(row));
      }
}

TEST(map_check, accepts_a_negative_zero) {
  std::vector<recorded_map> maps = good_maps();
  maps[spoilt].at(0, 3) = -0.0F;
  EXPECT_EQ(profile_of(maps), profile_of(good_maps()));
}

TEST(map_check, names_a_row_that_does_not_sum_to_one) {
  for (const float factor : {0.0F, 0.5F, 0.99F, 1.01F, 1.0F / 0.9F})
    for (std::size_t row = 0; row < 6; ++row) {
      const error e = error_of([&](auto& maps) {
        for (std::size_t key = 0; key < 6; ++key) maps[spoilt].at(row, key) *= factor;
      });
      EXPECT_EQ(e.code(), error_code::not_normalized);
      EXPECT_EQ(e.place(), place + " row " + std::to_string(row));
      EXPECT_NE(e.got().find("row sum"), std::string::npos);
    }
}

TEST(map_check, takes_the_tolerance_that_it_says) {
  const std::vector<token> keys{{0, 1, {}}};
  for (const double sum : {1.0 - 1.0 / 128, 1.0 + 1.0 / 128}) {
    const recorded_map map = make_map(keys, {static_cast<float>(sum)});
    EXPECT_EQ(checked_row_sum(map.view(), 0), sum);
    EXPECT_THROW((void)checked_row_sum(map.view(), 0, 1.0 / 256), error);
  }
}

TEST(map_check, reads_no_row_that_is_not_there) {
  const std::vector<token> keys{{0, 1, {}}};
  recorded_map map = make_map(keys, {1.0F});
  EXPECT_DEATH((void)checked_row_sum(map.view(), 1), "no such row");
  map.first_query = 1;
  EXPECT_DEATH((void)checked_row_sum(map.view(), 0), "behind the last key");
}

TEST(map_check, normalises_rows_by_their_own_sums) {
  std::vector<recorded_map> scaled = good_maps();
  for (recorded_map& map : scaled)
    for (float& weight : map.weights) weight *= 1.00390625F;  // 1 + 2^-8
  const blueprint a = profile_of(scaled), b = profile_of(good_maps());
  for (std::size_t head = 0; head < a.heads.size(); ++head)
    for (std::size_t c = 0; c < a.heads[head].candidates.size(); ++c) {
      EXPECT_LE(a.heads[head].candidates[c].recovery, 1.0);
      EXPECT_NEAR(a.heads[head].candidates[c].recovery, b.heads[head].candidates[c].recovery, 1e-6);
    }
}

TEST(map_check, names_sizes_that_contradict_each_other) {
  const auto code_of = [](const auto& spoil) {
    const error e = error_of(spoil);
    EXPECT_EQ(e.place().substr(0, place.find(':')), "maps.safetensors");
    return e.code();
  };
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].layer = 2; }), error_code::out_of_range);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].query_head = 2; }), error_code::out_of_range);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].queries = 0; }), error_code::missing);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].queries = 5; }), error_code::shape_mismatch);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].first_query = 1; }), error_code::shape_mismatch);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].first_query = ~position{0}; }),
            error_code::shape_mismatch);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].keys[3].pos = 2; }), error_code::out_of_range);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].keys[3].id = 77; }), error_code::shape_mismatch);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].query_head = 1; }), error_code::duplicate);
  EXPECT_EQ(code_of([](auto& maps) { maps[spoilt].prompt = 0; }), error_code::malformed);
}

TEST(map_check, wants_a_key_for_each_token) {
  recorded_map map = good_maps().front();
  attention_map_view view = map.view();
  view.keys = view.keys.first(5);
  EXPECT_THROW(check_map_shape(view, map_shape), error);
}

TEST(map_check, wants_every_head_of_every_prompt) {
  for (std::size_t missing = 0; missing < 8; ++missing) {
    const error e = error_of(
        [&](auto& maps) { maps.erase(maps.begin() + static_cast<std::ptrdiff_t>(missing)); });
    EXPECT_EQ(e.code(), error_code::missing);
    EXPECT_EQ(e.place(), "prompt " + std::to_string(missing / 4) + " layer " +
                             std::to_string(missing / 2 % 2) + " query head " +
                             std::to_string(missing % 2));
  }
  EXPECT_EQ(error_of([](auto& maps) { maps.clear(); }).code(), error_code::missing);
}

TEST(map_check, wants_a_calibration_query) {
  const std::vector<recorded_map> maps = good_maps();
  recorded_source source{map_shape, &maps};
  profile_options options;
  options.measure.skip_queries = 6;
  EXPECT_THROW((void)profile(source, {}, {}, options), error);
}

}  // namespace
}  // namespace headwise_tests
