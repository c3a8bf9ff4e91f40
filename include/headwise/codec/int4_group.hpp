// SPDX-License-Identifier: Apache-2.0
//
// int4_group: half a byte an element, each 32 elements of a row between their own lowest and
// highest. 20 bytes for each 32 elements, the last of which may be fewer.
//
//   row   = [steps [groups] | codes [groups, 16]]
//   codes = words [8] of 16 bits, the lower byte first: word j holds the elements j, 8 + j, 16 + j
//           and 24 + j of the group, from its lowest four bits on
//
// Error: at most half of a step, which is a 15th of the group's range (affine_step.hpp says it
// exactly). A channel that is far from all others costs the 31 beside it their precision: with one
// key channel at 600 among others of about 1, those read back as one constant. Such keys want
// int8_row; or, where the channel is far away for every token, take one and the same vector from
// all keys of the head first, which changes no probability. row_error.hpp measures what your own
// rows lose.
// Measured on the keys and values of SmolLM2-135M, 1,024 tokens, error of the attention's output
// relative to its size: 5.6 % with values in int4_group (8.8 % in the worst head), 16 % with keys
// (31 %). Groups of 64 would be 6.9 % and 19 %, groups of 16 4.4 % and 13 %, one step a row without
// a zero 9.5 % and 30 %. So it is meant for values, with int8_row for keys. Steps of a channel over
// some tokens would serve keys better (5.8 %), but then a row would depend on its neighbours, and
// could not be evicted, copied or rolled back alone. Perplexity of that text with keys in int8_row
// and values in int4_group 11.01, with both in int4_group 12.23, in f16 10.96.
#pragma once

#include "headwise/codec/affine_step.hpp"
#include "headwise/codec/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

struct int4_group {
  static constexpr std::string_view name = "int4_group";
  static constexpr std::size_t group_elements = 32;
  static constexpr std::size_t group_bytes = 16;

  [[nodiscard]] static constexpr std::size_t groups(std::size_t d) noexcept {
    return (d + group_elements - 1) / group_elements;
  }
  // Where the codes of a row begin.
  [[nodiscard]] static constexpr std::size_t codes_at(std::size_t d) noexcept {
    return groups(d) * detail::affine_step::bytes;
  }
  [[nodiscard]] static constexpr std::size_t row_bytes(std::size_t d) noexcept {
    return codes_at(d) + groups(d) * group_bytes;
  }
  static void encode(std::span<const float> in, std::byte* dst) noexcept {
    std::byte* const codes = dst + codes_at(in.size());
    std::memset(codes, 0, groups(in.size()) * group_bytes);
    for (std::size_t i = 0; i < in.size(); i += group_elements) {
      const std::span<const float> group = in.subspan(i, std::min(group_elements, in.size() - i));
      const detail::affine_encoder encoder(group, 15);
      encoder.step().write(dst + i / group_elements * detail::affine_step::bytes);
      for (std::size_t j = 0; j < group.size(); ++j)
        codes[byte_of(i + j)] |= std::byte(encoder.code_of(group[j]) << shift_of(j));
    }
  }
  static void decode(const std::byte* src, std::span<float> out) noexcept {
    const std::byte* const codes = src + codes_at(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto step =
          detail::affine_step::read(src + i / group_elements * detail::affine_step::bytes);
      out[i] = step.decode((std::to_integer<unsigned>(codes[byte_of(i)]) >> shift_of(i)) & 15U);
    }
  }

 private:
  [[nodiscard]] static constexpr std::size_t byte_of(std::size_t i) noexcept {
    return i / group_elements * group_bytes + i % 8 * 2 + i % group_elements / 16;
  }
  [[nodiscard]] static constexpr unsigned shift_of(std::size_t i) noexcept {
    return i % 16 < 8 ? 0 : 4;
  }
};

HEADWISE_NAMESPACE_END
