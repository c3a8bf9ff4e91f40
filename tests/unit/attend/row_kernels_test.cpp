// SPDX-License-Identifier: Apache-2.0
//
// The kernels of every width that this processor has, against double precision.
#include "headwise/attend/row_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/attend/attend.hpp"
#include "support/engine.hpp"
#include "support/packed_nibbles.hpp"
#include "support/random.hpp"

namespace headwise_tests {
namespace {

using headwise::rows;
using headwise::simd_width;
namespace detail = headwise::detail;

[[nodiscard]] std::vector<simd_width> widths_of_this_machine() {
  std::vector<simd_width> result;
  for (const simd_width width : {simd_width::portable, simd_width::avx2, simd_width::avx512})
    if (headwise::has_simd(width)) result.push_back(width);
  return result;
}

// One group of queries and some encoded rows at an address that is a multiple of nothing.
template <class Codec>
struct problem {
  problem(std::size_t d_, std::size_t group_, std::size_t count_)
      : d(d_), group(group_), count(count_), bytes(1 + count_ * Codec::row_bytes(d_)) {
    random_source random(static_cast<std::uint32_t>(d_ * 64 + group_));
    queries = random.numbers(group * d);
    weights = random.numbers(group * count);
    for (std::size_t r = 0; r < count; ++r) {
      const std::vector<float> row = random.numbers(d);
      Codec::encode(row, bytes.data() + 1 + r * Codec::row_bytes(d));
      decoded.emplace_back(d);
      Codec::decode(bytes.data() + 1 + r * Codec::row_bytes(d), decoded.back());
    }
  }
  // Where the rows lie, in order.
  [[nodiscard]] std::vector<const std::byte*> all_rows() const {
    std::vector<const std::byte*> result;
    for (std::size_t r = 0; r < count; ++r)
      result.push_back(bytes.data() + 1 + r * Codec::row_bytes(d));
    return result;
  }
  [[nodiscard]] rows<const float> all_queries() const { return {queries.data(), group, d}; }

  std::size_t d, group, count;
  std::vector<std::byte> bytes;
  std::vector<float> queries, weights;
  std::vector<std::vector<float>> decoded;
};

constexpr float epsilon = std::numeric_limits<float>::epsilon();
constexpr float logit_scale = 0.3F;

// The order in which rows are added up: the first of each eighth, the second of each .., the rest.
[[nodiscard]] std::vector<std::size_t> order_of_reading(std::size_t count) {
  std::vector<std::size_t> result;
  for (std::size_t in_eighth = 0; in_eighth < count / 8; ++in_eighth)
    for (std::size_t eighth = 0; eighth < 8; ++eighth)
      result.push_back(eighth * (count / 8) + in_eighth);
  while (result.size() < count) result.push_back(result.size());
  return result;
}

// What a logit is off where the query is integers of largest / most: each meets a code, of 0 .. 15
// or of -128 .. 127, with half a unit; and a tenth for what is rounded of sums as large as theirs.
template <class Codec>
[[nodiscard]] double query_rounding(const problem<Codec>& p, std::size_t g, std::size_t r) {
  if constexpr (detail::affine_codec<Codec>) {
    constexpr bool int8 = std::same_as<Codec, headwise::int8_row>;
    double largest = 0.0, steps = 0.0;
    for (std::size_t i = 0; i < p.d; ++i) {
      largest = std::max(largest, std::abs(double{p.queries[g * p.d + i]}));
      const auto* const row = p.bytes.data() + 1 + r * Codec::row_bytes(p.d);
      const auto step = detail::affine_step::read(row + (int8 ? 0 : i / 32 * 4));
      steps += std::abs(double{detail::float_from_bf16(step.scale)});
    }
    const double most = std::min(32767.0, std::floor(2147483647.0 / 255.0 / double(p.d)));
    return 1.1 * steps * (int8 ? 128.0 : 15.0) * largest / (2.0 * most);
  } else {
    return 0.0;
  }
}

// 1. each dot product is right: every step rounds by at most epsilon of the sum of magnitudes
// 2. bitwise the same for one row at a time: no tile shows
template <class Codec>
void expect_dots(simd_width width, const problem<Codec>& p) {
  const auto kernels = detail::row_kernels_at<Codec>(width);
  const std::size_t stride = p.count + 3;
  std::vector<float> got(p.group * stride, 7.0F), singly(p.group * stride, 7.0F);
  const auto block = p.all_rows();
  kernels.dots(block, p.all_queries(), logit_scale, got.data(), stride);
  for (std::size_t r = 0; r < p.count; ++r)
    kernels.dots({&block[r], 1}, p.all_queries(), logit_scale, singly.data() + r, stride);
  EXPECT_EQ(std::memcmp(got.data(), singly.data(), got.size() * sizeof(float)), 0);  // 2
  for (std::size_t g = 0; g < p.group; ++g)
    for (std::size_t r = 0; r < stride; ++r) {
      if (r >= p.count) {
        ASSERT_EQ(got[g * stride + r], 7.0F);
        continue;
      }
      double sum = 0.0, magnitudes = 0.0;
      for (std::size_t i = 0; i < p.d; ++i) {
        const double product = double{p.queries[g * p.d + i]} * double{p.decoded[r][i]};
        sum += product;
        magnitudes += std::abs(product);
      }
      ASSERT_NEAR(
          double{got[g * stride + r]}, double{logit_scale} * sum,
          double{logit_scale} * (static_cast<double>(p.d + 2) * double{epsilon} * magnitudes +
                                 query_rounding(p, g, r)))
          << p.d << ' ' << p.group << ' ' << r;  // 1
    }
}

// The same two, for sums of rows; what lies between the outputs is left alone.
template <class Codec>
void expect_sums(simd_width width, const problem<Codec>& p) {
  const auto kernels = detail::row_kernels_at<Codec>(width);
  const std::size_t stride = p.d + 2;
  std::vector<float> got(p.group * stride, 0.5F), singly(p.group * stride, 0.5F);
  const auto block = p.all_rows();
  kernels.sums(block, p.weights.data(), p.count, {got.data(), p.group, p.d, stride});
  for (const std::size_t r : order_of_reading(p.count))
    kernels.sums({&block[r], 1}, p.weights.data() + r, p.count,
                 {singly.data(), p.group, p.d, stride});
  EXPECT_EQ(std::memcmp(got.data(), singly.data(), got.size() * sizeof(float)), 0);  // 2
  for (std::size_t g = 0; g < p.group; ++g)
    for (std::size_t i = 0; i < stride; ++i) {
      if (i >= p.d) {
        ASSERT_EQ(got[g * stride + i], 0.5F);
        continue;
      }
      double sum = 0.5, magnitudes = 0.5;
      for (std::size_t r = 0; r < p.count; ++r) {
        const double product = double{p.weights[g * p.count + r]} * double{p.decoded[r][i]};
        sum += product;
        magnitudes += std::abs(product);
      }
      ASSERT_NEAR(double{got[g * stride + i]}, sum,
                  static_cast<double>(p.count + 2) * double{epsilon} * magnitudes)
          << p.d << ' ' << p.group << ' ' << i;  // 1
    }
}

template <class Codec>
void expect_kernels() {
  for (const simd_width width : widths_of_this_machine())
    for (const std::size_t d : {1U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 33U, 64U, 80U, 96U, 128U, 257U})
      for (const std::size_t group : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U})
        for (const std::size_t count : {1U, 2U, 3U, 4U, 7U, 8U, 37U}) {
          const problem<Codec> p(d, group, count);
          expect_dots(width, p);
          expect_sums(width, p);
        }
}

TEST(row_kernels, f32_rows) {
  expect_kernels<headwise::f32>();
}
TEST(row_kernels, f16_rows) {
  expect_kernels<headwise::f16>();
}
TEST(row_kernels, bf16_rows) {
  expect_kernels<headwise::bf16>();
}
TEST(row_kernels, int8_rows) {
  expect_kernels<headwise::int8_row>();
}
TEST(row_kernels, int4_rows) {
  expect_kernels<headwise::int4_group>();
}

// One query and one row, whose elements are those of two functions of the index.
template <class Codec, class Query, class Key>
void expect_dot(std::size_t d, Query query, Key key) {
  for (const simd_width width : widths_of_this_machine()) {
    problem<Codec> p(d, 1, 1);
    for (std::size_t i = 0; i < d; ++i) {
      p.queries[i] = query(i);
      p.decoded[0][i] = key(i);
    }
    Codec::encode(p.decoded[0], p.bytes.data() + 1);
    Codec::decode(p.bytes.data() + 1, p.decoded[0]);
    expect_dots(width, p);
  }
}
template <class Codec>
void expect_extreme_dots() {
  for (const std::size_t d : {16U, 100U, 257U, 258U, 300U, 512U, 513U}) {
    // The largest sums, of codes that are all highest or lowest where the query is.
    expect_dot<Codec>(
        d, [](std::size_t) { return 1.0F; }, [](std::size_t i) { return i == 0 ? -1.0F : 1.0F; });
    expect_dot<Codec>(
        d, [](std::size_t i) { return i % 2 == 0 ? 1.0F : -1.0F; },
        [](std::size_t i) { return i % 2 == 0 ? 1.0F : -1.0F; });
    // A zero of 32,512: the query's rounding must not meet it.
    expect_dot<Codec>(
        d, [](std::size_t i) { return 1.0F / static_cast<float>(3 + i); },
        [](std::size_t) { return 100.0F; });
    expect_dot<Codec>(
        d, [](std::size_t) { return 0.0F; }, [](std::size_t) { return 5.0F; });
    for (const float size : {1e-38F, 1e-31F, 1e-29F, 1e29F, 1e31F})
      expect_dot<Codec>(
          d, [=](std::size_t i) { return size * std::sin(static_cast<float>(i)); },
          [](std::size_t i) { return std::cos(static_cast<float>(3 * i)); });
  }
}
TEST(row_kernels, extreme_dots_of_quantised_rows) {
  expect_extreme_dots<headwise::int8_row>();
  expect_extreme_dots<headwise::int4_group>();
}

// A NaN or an infinity of one query, or of a row, reaches its own logits alone.
template <class Codec>
void expect_no_numbers(simd_width width, std::size_t d) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {nan, inf, -inf})
    for (const std::size_t at : {std::size_t{0}, d / 2, d - 1}) {
      problem<Codec> p(d, 5, 9);
      p.queries[3 * d + at] = bad;
      std::vector<float> row(d, 1.0F);
      row[at] = bad;
      Codec::encode(row, p.bytes.data() + 1 + 4 * Codec::row_bytes(d));
      std::vector<float> got(5 * 9);
      detail::row_kernels_at<Codec>(width).dots(p.all_rows(), p.all_queries(), 1.0F, got.data(), 9);
      for (std::size_t g = 0; g < 5; ++g)
        for (std::size_t r = 0; r < 9; ++r)
          ASSERT_EQ(std::isfinite(got[g * 9 + r]), g != 3 && r != 4) << d << ' ' << g << ' ' << r;
    }
}
TEST(row_kernels, no_numbers_among_quantised_rows) {
  for (const simd_width width : widths_of_this_machine())
    for (const std::size_t d : {7U, 64U, 80U, 128U}) {
      expect_no_numbers<headwise::int8_row>(width, d);
      expect_no_numbers<headwise::int4_group>(width, d);
    }
}

// Every half and its decoding by the codec, subnormal ones, infinities and NaN included.
TEST(row_kernels, decode_what_the_codec_decodes) {
  for (const simd_width width : widths_of_this_machine()) {
    const auto f16_kernels = detail::row_kernels_at<headwise::f16>(width);
    const auto bf16_kernels = detail::row_kernels_at<headwise::bf16>(width);
    constexpr std::size_t d = 16;
    const float one = 1.0F;
    for (std::uint32_t first = 0; first < 65536; first += d) {
      std::array<std::uint16_t, d> bits;
      for (std::size_t i = 0; i < d; ++i) bits[i] = static_cast<std::uint16_t>(first + i);
      const auto* const row = reinterpret_cast<const std::byte*>(bits.data());
      const auto expect_decoded = [&](const detail::row_kernels& kernels, auto codec) {
        std::array<float, d> got{}, expected{};
        kernels.sums({&row, 1}, &one, 1, {got.data(), 1, d});  // 1 * x + 0
        decltype(codec)::decode(row, expected);
        for (std::size_t i = 0; i < d; ++i)
          ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
              << first + i << ": " << got[i] << ", not " << expected[i];
      };
      expect_decoded(f16_kernels, headwise::f16{});
      expect_decoded(bf16_kernels, headwise::bf16{});
    }
  }
}

// Probabilities and log-sum within 4 roundings of the exact ones, whatever the magnitude.
TEST(row_kernels, softmax) {
  for (const simd_width width : widths_of_this_machine()) {
    const auto softmax = detail::logit_kernels_at(width).softmax;
    for (const float magnitude : {1e-3F, 1.0F, 30.0F, 1e4F, 1e30F})
      for (std::size_t n = 1; n < 150; n += n < 40 ? 1 : 17) {
        random_source random(static_cast<std::uint32_t>(n));
        std::vector<float> logits = random.numbers(n);
        for (float& logit : logits) logit *= magnitude;
        const std::vector<float> given = logits;
        const float lse = softmax(logits);
        const double top = double{*std::max_element(given.begin(), given.end())};
        double sum = 0.0;
        for (const float logit : given) sum += std::exp(double{logit} - top);
        EXPECT_NEAR(double{lse}, top + std::log(sum), 1e-6 * (1.0 + std::abs(top)));
        for (std::size_t i = 0; i < n; ++i) {
          const double exact = std::exp(double{given[i]} - top) / sum;
          // logit - top is rounded too, which exp() magnifies.
          const double bound = (4.0 + std::abs(double{given[i]} - top)) * double{epsilon};
          ASSERT_NEAR(double{logits[i]}, exact, bound * exact + 2e-38) << i;
        }
      }
  }
}

TEST(row_kernels, softmax_of_what_is_no_number) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const simd_width width : widths_of_this_machine())
    for (const std::size_t n : {1U, 5U, 16U, 40U}) {
      std::vector<float> logits(n, 1.0F);
      logits[n / 2] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(detail::logit_kernels_at(width).softmax(logits)));
      for (const float weight : logits) EXPECT_TRUE(std::isnan(weight));
      std::vector<float> masked(n, -inf);
      masked[n / 2] = -3.0F;
      EXPECT_NEAR(detail::logit_kernels_at(width).softmax(masked), -3.0F, 1e-6F);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(masked[i], i == n / 2 ? 1.0F : 0.0F);
      std::vector<float> all_masked(n, -inf);
      EXPECT_EQ(detail::logit_kernels_at(width).softmax(all_masked), -inf);
      for (const float weight : all_masked) EXPECT_EQ(weight, 0.0F);
    }
}

// attend of every width, and of a codec that has no kernels, against dense attention.
template <class Codec>
void expect_attention(double tolerance) {
  for (const std::uint32_t d : {33U, 64U})
    for (const std::uint32_t group : {1U, 3U, 8U}) {
      const headwise::model_shape shape{1, group, 1, d};
      engine<Codec> text(shape, {sinks_and_window(40)}, random_fixture(5), {.page_tokens = 7},
                         headwise::token_classifier(3));
      text.feed(90);
      const positions kept = text.kept();
      ASSERT_EQ(kept.size(), 43U);
      std::vector<float> queries(group * d), out(group * d);
      for (std::uint32_t g = 0; g < group; ++g)
        random_fixture(5).query(0, g, 89, std::span(queries).subspan(g * d, d));
      for (const simd_width width : widths_of_this_machine()) {
        headwise::attend_scratch scratch(group, d, 43, std::pmr::get_default_resource(), width);
        headwise::attend(text.text().head({0, 0}), 89, rows<const float>(queries.data(), group, d),
                         0.5F, rows<float>(out.data(), group, d), {}, scratch);
        for (std::uint32_t g = 0; g < group; ++g) {
          const auto expected = text.dense(0, g, 89, kept);
          for (std::size_t i = 0; i < d; ++i)
            ASSERT_NEAR(double{out[g * d + i]}, expected.values[i], tolerance);
        }
      }
    }
}
TEST(row_kernels, attention) {
  expect_attention<headwise::f32>(1e-6);
  expect_attention<headwise::f16>(2e-3);
  expect_attention<headwise::bf16>(1.6e-2);
  expect_attention<stranger::packed_nibbles>(0.5);
}

TEST(row_kernels, the_widest_is_one_that_the_machine_has) {
  EXPECT_TRUE(headwise::has_simd(simd_width::portable));
  EXPECT_EQ(headwise::widest_simd(), widths_of_this_machine().back());
}

}  // namespace
}  // namespace headwise_tests
