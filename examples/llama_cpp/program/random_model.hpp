// SPDX-License-Identifier: Apache-2.0
//
// Models of any architecture that llama.cpp knows, of any size, with random weights: to measure
// with, where only the sizes matter, and to test with. O(weights). Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "llama_cpp/handles.hpp"

namespace headwise_llama_cpp {

// Entries of the file's metadata, without the architecture's name before the keys; a list: one for
// each layer.
using metadata_value =
    std::variant<std::uint32_t, float, bool, std::string, std::vector<std::uint32_t>>;
using metadata_map = std::map<std::string, metadata_value>;

// matrices: the type of the weights of two dimensions; F32 or F16. The model has no vocabulary but
// its size ("vocab_size"). Throws headwise::error where llama.cpp refuses. The same weights on each
// call with the same arguments, other ones in every tensor.
[[nodiscard]] model_handle make_random_model(const std::string& architecture,
                                             const metadata_map& metadata,
                                             ggml_type matrices = GGML_TYPE_F32);

// Of a model that llama.cpp has room for; it stops the process where there are more.
inline constexpr std::uint32_t most_layers = 512;

// The layers of an 8B model of the Llama architecture: 32 query heads, 8 KV heads, head_dim 128,
// 4,096 wide, 14,336 hidden, weights of 16 bits.
[[nodiscard]] model_handle make_8b_like_model(std::uint32_t layers);

}  // namespace headwise_llama_cpp
