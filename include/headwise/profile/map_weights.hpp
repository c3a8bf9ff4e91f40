// SPDX-License-Identifier: Apache-2.0
//
// map_weights: the weights of one map as they were recorded, [queries, keys] of f32, f16 or bf16 at
// any alignment: a view, so that a file that is mapped or a tensor of an engine needs no copy.
// rows<const float> reads as one.
//
//   map.weights = {weights.data(), queries, keys};                          // const float*
//   map.weights = {weight_type::f16, bytes, queries, keys};                 // const std::byte*
//
// O(1), copy_row() O(keys); it checks no bounds. A value: any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"
#include "headwise/core/rows.hpp"

HEADWISE_NAMESPACE_BEGIN

enum class weight_type : std::uint8_t { f32, f16, bf16 };

namespace detail {

// fn of the codec that reads the type.
template <class Fn>
constexpr decltype(auto) with_codec_of(weight_type type, Fn&& fn) {
  if (type == weight_type::f16) return fn(f16{});
  if (type == weight_type::bf16) return fn(bf16{});
  return fn(f32{});
}

}  // namespace detail

struct map_weights {
  weight_type type = weight_type::f32;
  const std::byte* data = nullptr;
  std::size_t count = 0;   // queries
  std::size_t width = 0;   // keys
  std::size_t stride = 0;  // elements from one row to the next

  map_weights() = default;
  map_weights(weight_type element, const std::byte* first, std::size_t queries, std::size_t keys,
              std::size_t row_stride) noexcept
      : type(element), data(first), count(queries), width(keys), stride(row_stride) {}
  map_weights(const rows<const float>& weights) noexcept
      : map_weights(weight_type::f32, reinterpret_cast<const std::byte*>(weights.data),
                    weights.count, weights.width, weights.stride) {}
  map_weights(const float* first, std::size_t queries, std::size_t keys,
              std::size_t row_stride) noexcept
      : map_weights(rows<const float>(first, queries, keys, row_stride)) {}
  // Dense: stride == width.
  map_weights(weight_type element, const std::byte* first, std::size_t queries,
              std::size_t keys) noexcept
      : map_weights(element, first, queries, keys, keys) {}
  map_weights(const float* first, std::size_t queries, std::size_t keys) noexcept
      : map_weights(first, queries, keys, keys) {}

  // As recorded, of the query with that index.
  [[nodiscard]] std::span<const std::byte> row(std::size_t query) const noexcept {
    return {data + bytes_of(query * stride), bytes_of(width)};
  }
  [[nodiscard]] float at(std::size_t query, std::size_t key) const noexcept {
    float weight = 0.0F;
    decode(data + bytes_of(query * stride + key), {&weight, 1});
    return weight;
  }
  // out: [keys]
  void copy_row(std::size_t query, std::span<float> out) const noexcept {
    HEADWISE_EXPECTS(out.size() == width, "a weight for each key");
    decode(row(query).data(), out);
  }

 private:
  [[nodiscard]] std::size_t bytes_of(std::size_t elements) const noexcept {
    return detail::with_codec_of(type,
                                 [&](auto codec) { return decltype(codec)::row_bytes(elements); });
  }
  void decode(const std::byte* from, std::span<float> out) const noexcept {
    detail::with_codec_of(type, [&](auto codec) { decltype(codec)::decode(from, out); });
  }
};

HEADWISE_NAMESPACE_END
