// SPDX-License-Identifier: Apache-2.0

#include "dequantize.hpp"

#include <array>
#include <cstring>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"

namespace llama_example {
namespace {

struct type_entry {
  tensor_type type;
  const char* name;
  block_format format;
};

constexpr std::array<type_entry, 11> types{{{tensor_type::f32, "F32", {1, 4}},
                                            {tensor_type::f16, "F16", {1, 2}},
                                            {tensor_type::bf16, "BF16", {1, 2}},
                                            {tensor_type::q4_0, "Q4_0", {32, 18}},
                                            {tensor_type::q4_1, "Q4_1", {32, 20}},
                                            {tensor_type::q5_0, "Q5_0", {32, 22}},
                                            {tensor_type::q5_1, "Q5_1", {32, 24}},
                                            {tensor_type::q8_0, "Q8_0", {32, 34}},
                                            {tensor_type::q4_k, "Q4_K", {256, 144}},
                                            {tensor_type::q5_k, "Q5_K", {256, 176}},
                                            {tensor_type::q6_k, "Q6_K", {256, 210}}}};

std::uint32_t byte_at(const std::byte* block, std::size_t i) noexcept {
  return std::to_integer<std::uint32_t>(block[i]);
}

std::uint32_t word_at(const std::byte* source) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, source, sizeof word);
  return word;
}

float half_at(const std::byte* source) noexcept {
  float value = 0;
  headwise::f16::decode(source, {&value, 1});
  return value;
}

float signed_byte(const std::byte* block, std::size_t i) noexcept {
  return static_cast<float>(static_cast<std::int8_t>(byte_at(block, i)));
}

// 32 elements of 4 or 5 bits: byte j of `low` holds elements j and j + 16, bit i of `high` is the
// fifth bit of element i. The result is scale * integer + minimum.
void decode_nibbles(const std::byte* low, std::uint32_t high, float scale, float minimum,
                    float* out) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    const std::uint32_t first = (byte_at(low, j) & 0xFU) | ((high >> j & 1U) << 4U);
    const std::uint32_t second = (byte_at(low, j) >> 4U) | ((high >> (j + 16) & 1U) << 4U);
    out[j] = scale * static_cast<float>(first) + minimum;
    out[j + 16] = scale * static_cast<float>(second) + minimum;
  }
}

void decode_q8_0(const std::byte* block, float* out) noexcept {
  const float scale = half_at(block);
  for (std::size_t j = 0; j < 32; ++j) out[j] = scale * signed_byte(block + 2, j);
}

// Eight pairs of 6-bit scale and minimum in twelve bytes: four pairs whole, four with their upper
// two bits kept in the top of the first eight bytes.
struct scale_pair {
  float scale, minimum;
};

scale_pair packed_scales(const std::byte* packed, std::size_t j) noexcept {
  if (j < 4) {
    return {static_cast<float>(byte_at(packed, j) & 63U),
            static_cast<float>(byte_at(packed, j + 4) & 63U)};
  }
  return {
      static_cast<float>((byte_at(packed, j + 4) & 0xFU) | (byte_at(packed, j - 4) >> 6U << 4U)),
      static_cast<float>((byte_at(packed, j + 4) >> 4U) | (byte_at(packed, j) >> 6U << 4U))};
}

// Q4_K and Q5_K: eight sub-blocks of 32; sub-blocks 2i and 2i + 1 share 32 bytes of nibbles, and
// bit s of byte l of `high` (Q5_K only) is the fifth bit of element l of sub-block s.
void decode_k(const std::byte* block, const std::byte* high, const std::byte* low,
              float* out) noexcept {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (std::size_t s = 0; s < 8; ++s) {
    const scale_pair pair = packed_scales(block + 4, s);
    const std::byte* nibbles = low + s / 2 * 32;
    for (std::size_t l = 0; l < 32; ++l) {
      std::uint32_t value = byte_at(nibbles, l) >> (s % 2 * 4) & 0xFU;
      if (high != nullptr) value |= (byte_at(high, l) >> s & 1U) << 4U;
      out[s * 32 + l] = scale * pair.scale * static_cast<float>(value) - minimum * pair.minimum;
    }
  }
}

// Q6_K: [128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales, scale]. Element
// 128h + 32q + l takes nibble q / 2 of byte 64h + 32 (q % 2) + l and bit pair q of byte 32h + l.
void decode_q6_k(const std::byte* block, float* out) noexcept {
  const std::byte* high = block + 128;
  const std::byte* scales = block + 192;
  const float scale = half_at(block + 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i / 32 % 4;
    const std::size_t l = i % 32;
    const std::uint32_t nibble =
        byte_at(block, 64 * half + 32 * (quarter % 2) + l) >> (quarter / 2 * 4) & 0xFU;
    const std::uint32_t upper = byte_at(high, 32 * half + l) >> (quarter * 2) & 3U;
    out[i] =
        scale * signed_byte(scales, i / 16) * (static_cast<float>(nibble | upper << 4U) - 32.0F);
  }
}

void decode_block(tensor_type type, const std::byte* block, float* out) noexcept {
  switch (type) {
    case tensor_type::f32:
    case tensor_type::f16:
    case tensor_type::bf16:
      break;  // rows of these are decoded whole
    case tensor_type::q4_0: {
      const float scale = half_at(block);
      decode_nibbles(block + 2, 0, scale, -8.0F * scale, out);
      break;
    }
    case tensor_type::q4_1:
      decode_nibbles(block + 4, 0, half_at(block), half_at(block + 2), out);
      break;
    case tensor_type::q5_0: {
      const float scale = half_at(block);
      decode_nibbles(block + 6, word_at(block + 2), scale, -16.0F * scale, out);
      break;
    }
    case tensor_type::q5_1:
      decode_nibbles(block + 8, word_at(block + 4), half_at(block), half_at(block + 2), out);
      break;
    case tensor_type::q8_0:
      decode_q8_0(block, out);
      break;
    case tensor_type::q4_k:
      decode_k(block, nullptr, block + 16, out);
      break;
    case tensor_type::q5_k:
      decode_k(block, block + 16, block + 48, out);
      break;
    case tensor_type::q6_k:
      decode_q6_k(block, out);
      break;
  }
}

}  // namespace

std::optional<block_format> block_format_of(tensor_type type) noexcept {
  for (const type_entry& entry : types) {
    if (entry.type == type) return entry.format;
  }
  return std::nullopt;
}

std::string known_tensor_types() {
  std::string names;
  for (const type_entry& entry : types) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name) + " (" +
             std::to_string(static_cast<std::uint32_t>(entry.type)) + ")";
  }
  return names;
}

void dequantize(tensor_type type, std::span<const std::byte> encoded,
                std::span<float> out) noexcept {
  if (type == tensor_type::f32) return headwise::f32::decode(encoded.data(), out);
  if (type == tensor_type::f16) return headwise::f16::decode(encoded.data(), out);
  if (type == tensor_type::bf16) return headwise::bf16::decode(encoded.data(), out);
  const auto format = block_format_of(type);
  if (!format) return;
  const std::byte* block = encoded.data();
  for (std::size_t i = 0; i < out.size(); i += format->elements, block += format->bytes) {
    decode_block(type, block, out.data() + i);
  }
}

}  // namespace llama_example
