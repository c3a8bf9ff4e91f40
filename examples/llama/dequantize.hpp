// SPDX-License-Identifier: Apache-2.0
//
// GGUF's element types and their way back to float. A row is a whole number of blocks; a block is
// a scale, for some types a minimum, and packed integers, laid out as the type fixes it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace llama_example {

// The numbers are the file format's.
enum class tensor_type : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30
};

struct block_format {
  std::size_t elements;  // of one block
  std::size_t bytes;     // of one block
};

// Empty for numbers that are no type of the list above.
[[nodiscard]] std::optional<block_format> block_format_of(tensor_type type) noexcept;
[[nodiscard]] std::string known_tensor_types();

// Decodes out.size() elements, a whole number of blocks, from as many blocks in `encoded`.
void dequantize(tensor_type type, std::span<const std::byte> encoded,
                std::span<float> out) noexcept;

}  // namespace llama_example
