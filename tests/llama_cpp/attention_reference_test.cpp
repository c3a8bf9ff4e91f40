// SPDX-License-Identifier: Apache-2.0
//
// What the self-check holds every layer against: it must see rows, scales and outputs that are a
// little off, in any layer, and nothing where all is right.
#include "llama_cpp/attention_reference.hpp"

#include <cmath>
#include <limits>

#include <ggml.h>
#include <gtest/gtest.h>

#include "llama_cpp/cached_rows.hpp"

#include "headwise/codec/f32.hpp"
#include "headwise/policy/spec.hpp"
#include "support/random.hpp"
#include "support/reference_attention.hpp"

namespace headwise_tests {
namespace {

namespace hlc = headwise_llama_cpp;

constexpr headwise::model_shape checked_shape{2, 4, 2, 8};
constexpr std::size_t checked_tokens = 12, kv_floats = 16, query_floats = 32;
constexpr float checked_scale = 0.35F;

struct layer_inputs {
  std::vector<float> keys, values, queries;
};

class attention_reference_test : public testing::Test {
 protected:
  attention_reference_test() {
    random_source random(7);
    for (layer_inputs& layer : layers_)
      layer = {random.numbers(checked_tokens * kv_floats),
               random.numbers(checked_tokens * kv_floats),
               random.numbers(checked_tokens * query_floats)};
  }
  static headwise::rows<const float> of(const std::vector<float>& all, std::size_t first,
                                        std::size_t count, std::size_t width) {
    return {all.data() + first * width, count, width};
  }
  // A prompt of eight tokens and four single ones; out(layer, first, rows): what the layer gives.
  template <class Out>
  void run(hlc::attention_reference& reference, hlc::row_store* store, const Out& out) {
    for (std::size_t first = 0; first < checked_tokens;) {
      const std::size_t count = first == 0 ? 8 : 1;
      std::vector<headwise::token> tokens;
      for (std::size_t i = 0; i < count; ++i)
        tokens.push_back({static_cast<headwise::position>(first + i), 1});
      const hlc::step_part part{0, tokens};
      ASSERT_TRUE(store == nullptr || store->try_begin({&part, 1}));
      for (std::uint32_t l = 0; l < checked_shape.layers; ++l) {
        std::vector<float> result(count * query_floats);
        reference.add_keys({}, of(layers_[l].keys, first, count, kv_floats));
        reference.add_values({}, l, of(layers_[l].values, first, count, kv_floats));
        const headwise::rows<float> rows(result.data(), count, query_floats);
        out(l, first, rows);
        reference.attend({}, l, of(layers_[l].queries, first, count, query_floats), checked_scale,
                         rows);
      }
      if (store != nullptr) store->commit();
      first += count;
    }
  }
  // The most of any layer, with rows of headwise.
  std::vector<double> differences_of_store(std::span<const float> scales,
                                           const headwise::policy_spec& policy) {
    hlc::cached_rows<headwise::f32, headwise::f32> store(
        headwise::uniform_blueprint(checked_shape, policy), {},
        {1, checked_tokens, checked_tokens, 1, nullptr});
    hlc::attention_reference reference(checked_shape, scales, &store, checked_tokens);
    run(reference, &store, [](std::uint32_t, std::size_t, const headwise::rows<float>&) {});
    return {reference.differences().begin(), reference.differences().end()};
  }
  // Attention of 16-bit rows and queries by the tests' own oracle, with a scale for each layer.
  std::vector<float> attention(std::uint32_t layer, std::size_t token, std::size_t head,
                               double scale) const {
    constexpr std::size_t d = checked_shape.head_dim;
    const std::size_t column = head / checked_shape.group_size() * d;
    const auto halved = [](const std::vector<float>& from, std::size_t begin) {
      std::vector<float> row(from.begin() + static_cast<std::ptrdiff_t>(begin),
                             from.begin() + static_cast<std::ptrdiff_t>(begin + d));
      for (float& x : row) x = ggml_fp16_to_fp32(ggml_fp32_to_fp16(x));
      return row;
    };
    std::vector<std::vector<float>> rows;
    std::vector<std::span<const float>> keys, values;
    rows.reserve(2 * checked_tokens);
    for (std::size_t t = 0; t <= token; ++t) {
      rows.push_back(halved(layers_[layer].keys, t * kv_floats + column));
      keys.emplace_back(rows.back());
      rows.push_back(halved(layers_[layer].values, t * kv_floats + column));
      values.emplace_back(rows.back());
    }
    const auto query = halved(layers_[layer].queries, token * query_floats + head * d);
    const auto exact = reference_attention(query, scale, keys, values).values;
    return {exact.begin(), exact.end()};
  }
  std::vector<double> differences_of_others(double scale_of_last_layer) {
    hlc::attention_reference reference(checked_shape, {}, nullptr, checked_tokens);
    run(reference, nullptr,
        [&](std::uint32_t l, std::size_t first, const headwise::rows<float>& out) {
          for (std::size_t t = 0; t < out.count; ++t)
            for (std::size_t head = 0; head < checked_shape.query_heads; ++head) {
              const double scale = l == 1 ? scale_of_last_layer : double{checked_scale};
              const auto values = attention(l, first + t, head, scale);
              std::copy(values.begin(), values.end(),
                        out[t].begin() + static_cast<std::ptrdiff_t>(head * values.size()));
            }
        });
    return {reference.differences().begin(), reference.differences().end()};
  }

  layer_inputs layers_[checked_shape.layers];
  headwise::policy_spec all_ = headwise::make_spec(headwise::global{});
};

TEST_F(attention_reference_test, sees_nothing_where_all_is_right) {
  const float scales[] = {checked_scale, checked_scale};
  for (const double d : differences_of_store(scales, all_)) EXPECT_LT(d, 1e-6);
  for (const double d : differences_of_store({}, all_)) EXPECT_LT(d, 1e-6);
  for (const double d : differences_of_others(double{checked_scale})) EXPECT_LT(d, 1e-6);
}

TEST_F(attention_reference_test, sees_a_scale_that_is_two_percent_off) {
  const float scales[] = {checked_scale, checked_scale * 1.02F};
  const std::vector<double> found = differences_of_store(scales, all_);
  EXPECT_LT(found[0], 1e-6);
  EXPECT_GT(found[1], 1e-3);
  const std::vector<double> others = differences_of_others(double{checked_scale} * 1.02);
  EXPECT_LT(others[0], 1e-6);
  EXPECT_GT(others[1], 1e-3);
}

TEST_F(attention_reference_test, sees_rows_that_are_missing) {
  for (const double d : differences_of_store({}, headwise::make_spec(headwise::local_window(3))))
    EXPECT_GT(d, 1e-2);
}

TEST_F(attention_reference_test, keeps_a_nan) {
  hlc::attention_reference reference(checked_shape, {}, nullptr, checked_tokens);
  run(reference, nullptr, [](std::uint32_t l, std::size_t first, const headwise::rows<float>& out) {
    if (l == 1 && first == 0) out[2][3] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_FALSE(std::isnan(reference.differences()[0]));
  EXPECT_TRUE(std::isnan(reference.differences()[1]));
}

}  // namespace
}  // namespace headwise_tests
