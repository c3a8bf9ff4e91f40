// SPDX-License-Identifier: Apache-2.0
//
// Recorded maps as a stranger's recorder would write them: safetensors and .npy, byte by byte.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "support/files.hpp"

namespace headwise_tests {

// A causal 4x4 map whose values every float type holds exactly, rows summing to 1.
inline const std::vector<double> small_map{1,    0,    0,     0,  //
                                           0.5,  0.5,  0,     0,  //
                                           0.25, 0.25, 0.5,   0,  //
                                           0.5,  0.25, 0.125, 0.125};

// values as elements of the dtype F64, F32, F16 or BF16.
[[nodiscard]] inline std::string elements(const std::string& dtype,
                                          const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const auto single = static_cast<float>(value);
    if (dtype == "F64") bytes += little_endian(std::bit_cast<std::uint64_t>(value));
    if (dtype == "F32") bytes += little_endian(std::bit_cast<std::uint32_t>(single));
    if (dtype == "F16") bytes += little_endian(headwise::detail::f16_from_float(single));
    if (dtype == "BF16") bytes += little_endian(headwise::detail::bf16_from_float(single));
  }
  return bytes;
}

[[nodiscard]] inline std::string swapped(std::string bytes, std::size_t element) {
  for (std::size_t i = 0; i < bytes.size(); i += element)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + element));
  return bytes;
}

struct made_tensor {
  std::string name;
  std::string dtype;
  std::string shape;  // "[1, 4, 4]"
  std::string bytes;
};

// Metadata of maps with so many layers, two query heads on one KV head, head_dim 8, as JSON; more:
// further members, each with a comma in front.
[[nodiscard]] inline std::string map_metadata(int layers, const std::string& more = "") {
  return "{\"format\": \"headwise-maps\", \"version\": \"1\", \"layers\": \"" +
         std::to_string(layers) +
         "\", \"query_heads\": \"2\", \"kv_heads\": \"1\", \"head_dim\": \"8\"" + more + "}";
}

[[nodiscard]] inline std::string safetensors_of(const std::string& metadata,
                                                const std::vector<made_tensor>& tensors) {
  std::string header = "{\"__metadata__\": " + metadata;
  std::string data;
  for (const made_tensor& tensor : tensors) {
    header += ", \"" + tensor.name + "\": {\"dtype\": \"" + tensor.dtype +
              "\", \"shape\": " + tensor.shape + ", \"data_offsets\": [" +
              std::to_string(data.size()) + ", ";
    data += tensor.bytes;
    header += std::to_string(data.size()) + "]}";
  }
  return safetensors_bytes(header + "}", data);
}

[[nodiscard]] inline made_tensor tokens_tensor(const std::string& prompt,
                                               const std::vector<std::int64_t>& ids) {
  return {prompt + ".tokens", "I64", "[" + std::to_string(ids.size()) + "]", bytes_of(ids)};
}

// small_map for both query heads.
[[nodiscard]] inline made_tensor map_tensor(const std::string& prompt, int layer,
                                            const std::string& dtype = "F32") {
  const std::string one = elements(dtype, small_map);
  return {prompt + "." + std::to_string(layer) + ".attention", dtype, "[2, 4, 4]", one + one};
}

// One prompt of 4 tokens.
[[nodiscard]] inline std::string small_maps(int layers, const std::string& dtype = "F32",
                                            const std::string& more_metadata = "") {
  std::vector<made_tensor> tensors;
  for (int layer = 0; layer < layers; ++layer) tensors.push_back(map_tensor("0", layer, dtype));
  tensors.push_back(tokens_tensor("0", {5, 6, 7, 8}));
  return safetensors_of(map_metadata(layers, more_metadata), tensors);
}

}  // namespace headwise_tests
