// SPDX-License-Identifier: Apache-2.0

#include "llama/dequantize.hpp"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "engine/golden_blocks.hpp"

#include "support/files.hpp"

namespace headwise_tests {
namespace {

using llama_example::dequantize;
using llama_example::tensor_type;

constexpr std::size_t blocks = 4;

// As golden_blocks.py makes them.
std::vector<std::byte> block_bytes(std::size_t size, const std::vector<std::size_t>& offsets) {
  constexpr std::array<std::uint16_t, 4> scales{0x2E66, 0xB4CD, 0x3555, 0x2A3D};
  std::vector<std::byte> data;
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < size * blocks; ++i) {
    state = 1664525U * state + 1013904223U;
    data.push_back(static_cast<std::byte>(state >> 24U));
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      std::memcpy(data.data() + block * size + offsets[i], &scales[(block + i) % 4], 2);
    }
  }
  return data;
}

TEST(dequantize, blocks_decode_to_what_another_reader_decodes) {
  for (const golden_block& golden : golden_blocks) {
    const auto format = llama_example::block_format_of(golden.type).value();
    const auto data = block_bytes(format.bytes, golden.offsets);
    std::vector<float> values(blocks * format.elements);
    dequantize(golden.type, data, values);
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += double{values[i]} * static_cast<double>(i * 7919 % 251 + 1);
    }
    EXPECT_NEAR(sum, golden.weighted_sum, 1e-5 * std::abs(golden.weighted_sum))
        << "type " << static_cast<std::uint32_t>(golden.type);
  }
}

template <class T>
std::vector<float> decoded(tensor_type type, const std::vector<T>& encoded, std::size_t count) {
  std::vector<float> values(count);
  dequantize(type, std::as_bytes(std::span(encoded)), values);
  return values;
}

TEST(dequantize, plain_types_are_exact) {
  const std::vector<float> expected{-2.5F, -0.125F, 0.0F, 0x1p-24F, 1.0F, 65504.0F};
  EXPECT_EQ(decoded(tensor_type::f32, expected, 6), expected);
  EXPECT_EQ(decoded(tensor_type::f16,
                    std::vector<std::uint16_t>{0xC100, 0xB000, 0x0000, 0x0001, 0x3C00, 0x7BFF}, 6),
            expected);
  EXPECT_EQ(
      decoded(tensor_type::bf16, std::vector<std::uint16_t>{0xC020, 0xBE00, 0x0000, 0x3380}, 4),
      (std::vector<float>{-2.5F, -0.125F, 0.0F, 0x1p-24F}));
}

TEST(dequantize, a_q4_1_block_is_scale_times_nibble_plus_minimum) {
  std::vector<std::uint8_t> block{0x00, 0x3C, 0x00, 0xC0};  // 1.0 and -2.0
  for (unsigned j = 0; j < 16; ++j) block.push_back(static_cast<std::uint8_t>(j | (15 - j) << 4U));
  const auto values = decoded(tensor_type::q4_1, block, 32);
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(values[j], static_cast<float>(j) - 2.0F);
    EXPECT_EQ(values[j + 16], 13.0F - static_cast<float>(j));
  }
}

TEST(dequantize, unknown_types_have_no_format) {
  EXPECT_FALSE(llama_example::block_format_of(static_cast<tensor_type>(99)));
  EXPECT_FALSE(llama_example::block_format_of(static_cast<tensor_type>(4)));
}

}  // namespace
}  // namespace headwise_tests
