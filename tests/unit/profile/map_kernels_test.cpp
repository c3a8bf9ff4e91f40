// SPDX-License-Identifier: Apache-2.0
//
// The loops over a row of a map, for every type and width: against their definition, to the last
// bit.

#include "headwise/profile/map_kernels.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/random.hpp"
#include "support/typed_maps.hpp"

namespace headwise_tests {
namespace {

using namespace headwise;
using detail::map_kernels;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<simd_width> widths() {
  std::vector<simd_width> all;
  for (const simd_width width : {simd_width::portable, simd_width::avx2, simd_width::avx512})
    if (has_simd(width)) all.push_back(width);
  return all;
}

// One row, at an odd address; what lies around it must not be read as weights.
class row_of_weights {
 public:
  row_of_weights(weight_type type, std::vector<float> values, std::size_t visible)
      : type_(type), values_(std::move(values)), visible_(visible), bytes_(1) {
    append_weights(type_, std::vector<float>{-1.0F, nan}, bytes_);
    first_ = bytes_.size();
    append_weights(type_, values_, bytes_);
    append_weights(type_, std::vector<float>(16, -1.0F), bytes_);
    for (float& value : values_) value = rounded_to(type_, value);
  }
  [[nodiscard]] detail::map_row row() const {
    return {bytes_.data() + first_, visible_, values_.size()};
  }
  [[nodiscard]] const std::vector<float>& values() const { return values_; }

 private:
  weight_type type_;
  std::vector<float> values_;
  std::size_t visible_, first_ = 0;
  std::vector<std::byte> bytes_;
};

// fn(kernels, type) for each type and width.
template <class Fn>
void for_each_kernel(Fn&& fn) {
  for (const weight_type type : all_weight_types)
    for (const simd_width width : widths()) {
      SCOPED_TRACE("type " + std::to_string(static_cast<int>(type)) + " width " +
                   std::to_string(static_cast<int>(width)));
      fn(detail::map_kernels_at(type, width), type);
    }
}

// Some that no float sum would get right, and some subnormal.
std::vector<float> random_weights(random_source& random, std::size_t keys, std::size_t visible) {
  std::vector<float> weights(keys, 0.0F);
  for (std::size_t key = 0; key < visible; ++key) {
    weights[key] = std::abs(random.number());
    if (random.one_in(4)) weights[key] *= 1e-6F;
    if (random.one_in(8)) weights[key] = 0.0F;
  }
  return weights;
}

TEST(map_kernels, sum_in_sixteen_lanes) {
  for_each_kernel([](const map_kernels& kernels, weight_type type) {
    random_source random(7);
    for (std::size_t keys = 1; keys < 70; ++keys)
      for (std::size_t visible = 1; visible <= keys; ++visible) {
        const row_of_weights row(type, random_weights(random, keys, visible), visible);
        double lanes[16] = {};
        for (std::size_t key = 0; key < visible; ++key)
          lanes[key % 16] += static_cast<double>(row.values()[key]);
        for (std::size_t half = 8; half > 0; half /= 2)
          for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
        const detail::row_scan scan = kernels.scan(row.row());
        ASSERT_EQ(scan.sum, lanes[0]) << keys << ' ' << visible;
        ASSERT_FALSE(scan.negative || scan.late_mass) << keys << ' ' << visible;
      }
  });
}

TEST(map_kernels, add_each_visible_weight_once) {
  for_each_kernel([](const map_kernels& kernels, weight_type type) {
    random_source random(8);
    for (std::size_t keys = 1; keys < 70; ++keys)
      for (std::size_t visible = 1; visible <= keys; ++visible) {
        const row_of_weights row(type, random_weights(random, keys, visible), visible);
        std::vector<double> mass((keys + 15) / 16 * 16), expected(mass.size());
        for (std::size_t i = 0; i < mass.size(); ++i) mass[i] = expected[i] = random.number();
        const double scale = 1.0 + 1.0 / (1 << 28);
        for (std::size_t key = 0; key < visible; ++key)
          expected[key] += scale * static_cast<double>(row.values()[key]);
        kernels.add(row.row(), scale, mass.data());
        ASSERT_EQ(mass, expected) << keys << ' ' << visible;
      }
  });
}

TEST(map_kernels, see_what_must_not_be_there) {
  for_each_kernel([](const map_kernels& kernels, weight_type type) {
    const float least = type == weight_type::f32    ? 0x1p-149F
                        : type == weight_type::bf16 ? 0x1p-133F
                                                    : 0x1p-24F;
    for (const std::size_t keys : {1U, 5U, 16U, 17U, 31U, 48U, 67U})
      for (std::size_t visible = 1; visible <= keys; visible += 3)
        for (std::size_t key = 0; key < keys; ++key) {
          std::vector<float> weights(keys, 0.0F);
          const auto scan = [&](float bad) {
            weights[key] = bad;
            return kernels.scan(row_of_weights(type, weights, visible).row());
          };
          const bool late = key >= visible;
          for (const float bad : {-least, -1.0F, -infinity}) {
            ASSERT_TRUE(late ? scan(bad).late_mass : scan(bad).negative) << keys << ' ' << key;
          }
          for (const float bad : {least, 1.0F, infinity, nan}) {
            ASSERT_EQ(scan(bad).late_mass, late) << keys << ' ' << visible << ' ' << key;
            if (!late) {
              ASSERT_FALSE(scan(bad).negative);
            }
          }
          if (!late) {
            ASSERT_TRUE(std::isnan(scan(nan).sum));
            ASSERT_EQ(scan(infinity).sum, double{infinity});
          }
          ASSERT_FALSE(scan(-0.0F).negative || scan(-0.0F).late_mass);
        }
  });
}

}  // namespace
}  // namespace headwise_tests
