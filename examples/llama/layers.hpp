// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of a Llama layer, attention apart. Every function works on a chunk of tokens:
// rows [tokens, width]; one token is a chunk of one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headwise/core/rows.hpp"
#include "headwise/core/types.hpp"

namespace llama_example {

using headwise::rows;

struct matrix {
  std::size_t outputs = 0;
  std::size_t inputs = 0;
  std::vector<float> values;  // [outputs, inputs]

  [[nodiscard]] std::span<const float> row(std::size_t output) const noexcept {
    return {values.data() + output * inputs, inputs};
  }
};

// out [n, outputs] = in [n, inputs] * weights^T.
void linear(rows<const float> in, const matrix& weights, rows<float> out);

// x [n, width] += bias [width]; nothing where there is no bias.
void add_bias(std::span<const float> bias, rows<float> x);

// x += y, both [n, width].
void add(rows<const float> y, rows<float> x);

// out = in / sqrt(mean(in^2) + epsilon) * weight, row by row.
void rms_norm(rows<const float> in, std::span<const float> weight, float epsilon, rows<float> out);

// gate = gate * sigmoid(gate) * up.
void swiglu(rows<const float> up, rows<float> gate);

// Which elements of a head row turn together: (2i, 2i + 1) or (i, i + dimensions / 2).
enum class rope_layout { neighbours, halves };

// Rotary positions: pair i of a head row turns by position * base^(-2i / dimensions), divided by
// `stretch` and by the pair's own factor.
struct rope_parameters {
  rope_layout layout = rope_layout::neighbours;
  std::size_t dimensions = 0;  // of each head row; the others stay as they are
  double base = 10000.0;
  double stretch = 1.0;
  std::vector<float> factors;  // [dimensions / 2], or empty for ones
};

class rope {
 public:
  explicit rope(const rope_parameters& parameters);

  // Makes the angles of the next chunk: token t stands at first + t.
  void place(headwise::position first, std::size_t tokens);

  // x [tokens, heads * head_dim]: every head row of token t is turned to its position.
  void rotate(rows<float> x, std::size_t head_dim) const;

 private:
  rope_layout layout_;
  std::vector<double> frequencies_;   // [pairs], radians per position
  std::vector<float> cosine_, sine_;  // [tokens, pairs]
};

}  // namespace llama_example
