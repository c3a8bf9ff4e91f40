// SPDX-License-Identifier: Apache-2.0
//
// Weights of maps as elements of every type that the profiler reads.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "support/files.hpp"
#include "support/recorded_maps.hpp"

namespace headwise_tests {

using headwise::weight_type;

inline constexpr std::array all_weight_types{weight_type::f32, weight_type::f16, weight_type::bf16};

[[nodiscard]] inline std::size_t weight_bytes(weight_type type) {
  return type == weight_type::f32 ? 4 : 2;
}

inline void append_weights(weight_type type, std::span<const float> values,
                           std::vector<std::byte>& bytes) {
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size() * weight_bytes(type));
  if (type == weight_type::f32) headwise::f32::encode(values, bytes.data() + at);
  if (type == weight_type::f16) headwise::f16::encode(values, bytes.data() + at);
  if (type == weight_type::bf16) headwise::bf16::encode(values, bytes.data() + at);
}

[[nodiscard]] inline float rounded_to(weight_type type, float value) {
  if (type == weight_type::f16)
    return headwise::detail::float_from_f16(headwise::detail::f16_from_float(value));
  if (type == weight_type::bf16)
    return headwise::detail::float_from_bf16(headwise::detail::bf16_from_float(value));
  return value;
}

// A recorded map whose weights lie as elements of a type, `shift` bytes behind an aligned address.
class typed_map {
 public:
  typed_map(weight_type type, recorded_map map, std::size_t shift)
      : type_(type), shift_(shift), map_(std::move(map)), bytes_(shift) {
    append_weights(type, map_.weights, bytes_);
  }
  [[nodiscard]] attention_map_view view() const {
    attention_map_view view = map_.view();
    view.weights = {type_, bytes_.data() + shift_, map_.queries, map_.keys.size()};
    return view;
  }
  // The same weights, rounded to the type.
  [[nodiscard]] recorded_map as_float() const {
    recorded_map map = map_;
    for (float& weight : map.weights) weight = rounded_to(type_, weight);
    return map;
  }

 private:
  weight_type type_;
  std::size_t shift_;
  recorded_map map_;
  std::vector<std::byte> bytes_;
};

}  // namespace headwise_tests
