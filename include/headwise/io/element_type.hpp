// SPDX-License-Identifier: Apache-2.0
//
// The element types of tensors in files, and the way from their bytes, at any alignment, to float
// and to integers. Stateless.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/core/error.hpp"

HEADWISE_NAMESPACE_BEGIN

static_assert(std::endian::native == std::endian::little, "tensor files are little-endian");

// With the names that safetensors gives them.
enum class element_type {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64
};

namespace detail {

struct element_traits {
  element_type type;
  std::string_view name;
  std::size_t bytes;
};
inline constexpr std::array<element_traits, 15> all_element_traits{{
    {element_type::boolean, "BOOL", 1},
    {element_type::u8, "U8", 1},
    {element_type::i8, "I8", 1},
    {element_type::f8_e4m3, "F8_E4M3", 1},
    {element_type::f8_e5m2, "F8_E5M2", 1},
    {element_type::i16, "I16", 2},
    {element_type::u16, "U16", 2},
    {element_type::f16, "F16", 2},
    {element_type::bf16, "BF16", 2},
    {element_type::i32, "I32", 4},
    {element_type::u32, "U32", 4},
    {element_type::f32, "F32", 4},
    {element_type::i64, "I64", 8},
    {element_type::u64, "U64", 8},
    {element_type::f64, "F64", 8},
}};

template <class T>
[[nodiscard]] T load(const std::byte* src) noexcept {
  T value;
  std::memcpy(&value, src, sizeof value);
  return value;
}

}  // namespace detail

[[nodiscard]] constexpr std::string_view to_string(element_type type) noexcept {
  return detail::all_element_traits[static_cast<std::size_t>(type)].name;
}
[[nodiscard]] constexpr std::size_t element_bytes(element_type type) noexcept {
  return detail::all_element_traits[static_cast<std::size_t>(type)].bytes;
}
[[nodiscard]] constexpr std::optional<element_type> element_type_named(
    std::string_view name) noexcept {
  for (const auto& traits : detail::all_element_traits)
    if (traits.name == name) return traits.type;
  return std::nullopt;
}

// What decode_floats reads.
[[nodiscard]] constexpr bool is_float(element_type type) noexcept {
  return type == element_type::f16 || type == element_type::bf16 || type == element_type::f32 ||
         type == element_type::f64;
}

// src: [out.size() * element_bytes(type)] bytes of a type for which is_float holds. A double beyond
// the range of float becomes infinite.
inline void decode_floats(element_type type, const std::byte* src, std::span<float> out) noexcept {
  HEADWISE_EXPECTS(is_float(type), "decode_floats reads F16, BF16, F32 and F64");
  if (type == element_type::f16) {
    f16::decode(src, out);
  } else if (type == element_type::bf16) {
    bf16::decode(src, out);
  } else if (type == element_type::f32) {
    f32::decode(src, out);
  } else {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(detail::load<double>(src + i * sizeof(double)));
  }
}

// dst: [in.size() * element_bytes(type)] bytes; type: F16, BF16 or F32.
inline void encode_floats(element_type type, std::span<const float> in, std::byte* dst) noexcept {
  if (type == element_type::f16) {
    f16::encode(in, dst);
  } else if (type == element_type::bf16) {
    bf16::encode(in, dst);
  } else {
    HEADWISE_EXPECTS(type == element_type::f32, "encode_floats writes F16, BF16 and F32");
    f32::encode(in, dst);
  }
}

// src: an I32 or I64 element.
[[nodiscard]] inline std::int64_t decode_integer(element_type type, const std::byte* src) noexcept {
  HEADWISE_EXPECTS(type == element_type::i32 || type == element_type::i64,
                   "decode_integer reads I32 and I64");
  return type == element_type::i32 ? detail::load<std::int32_t>(src)
                                   : detail::load<std::int64_t>(src);
}

HEADWISE_NAMESPACE_END
