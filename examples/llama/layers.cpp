// SPDX-License-Identifier: Apache-2.0

#include "layers.hpp"

#include <array>
#include <cmath>

#include <Eigen/Core>

namespace llama_example {
namespace {

using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using outer_stride = Eigen::OuterStride<Eigen::Dynamic>;

Eigen::Index index(std::size_t n) noexcept {
  return static_cast<Eigen::Index>(n);
}

Eigen::Map<const row_major, 0, outer_stride> view(rows<const float> x) {
  return {x.data, index(x.count), index(x.width), outer_stride(index(x.stride))};
}

Eigen::Map<row_major, 0, outer_stride> view(rows<float> x) {
  return {x.data, index(x.count), index(x.width), outer_stride(index(x.stride))};
}

Eigen::Map<const row_major> view(const matrix& m) {
  return {m.values.data(), index(m.outputs), index(m.inputs)};
}

Eigen::Map<const Eigen::ArrayXf> view(std::span<const float> x) {
  return {x.data(), index(x.size())};
}

Eigen::Map<Eigen::ArrayXf> view(std::span<float> x) {
  return {x.data(), index(x.size())};
}

// Eigen's product packs the weights each time, which for a few dozen tokens takes as long as the
// product. A tile of dot products needs no packing: what it loads is used 3 or 4 times, and its
// sums stay in registers.
constexpr std::size_t lane_count = 8, tile_outputs = 4, tile_tokens = 3;
using lanes = Eigen::Array<float, lane_count, 1>;

template <std::size_t Tokens>
void multiply_tile(rows<const float> in, std::size_t token, const matrix& weights,
                   std::size_t output, rows<float> out) {
  std::array<lanes, tile_outputs * Tokens> sums;
  for (lanes& sum : sums) sum.setZero();
  for (std::size_t k = 0; k < weights.inputs; k += lane_count) {
    std::array<lanes, Tokens> x;
    for (std::size_t t = 0; t < Tokens; ++t)
      x[t] = Eigen::Map<const lanes>(in[token + t].data() + k);
    for (std::size_t o = 0; o < tile_outputs; ++o) {
      const lanes w = Eigen::Map<const lanes>(weights.row(output + o).data() + k);
      for (std::size_t t = 0; t < Tokens; ++t) sums[o * Tokens + t] += w * x[t];
    }
  }
  for (std::size_t o = 0; o < tile_outputs; ++o)
    for (std::size_t t = 0; t < Tokens; ++t)
      out[token + t][output + o] = sums[o * Tokens + t].sum();
}

// Asks for the `part`-th of `parts` of the weights that the outputs from `output` on have.
void prefetch(const matrix& weights, std::size_t output, std::size_t part, std::size_t parts) {
  if (output >= weights.outputs) return;
  constexpr std::size_t line = 64 / sizeof(float);
  const std::size_t size = (tile_outputs * weights.inputs + parts - 1) / parts;
  const float* const from = weights.row(output).data() + part * size;
  for (std::size_t i = 0; i < size; i += line) __builtin_prefetch(from + i);
}

void multiply_tiles(rows<const float> in, const matrix& weights, rows<float> out) {
  const std::size_t tiles = (in.count + tile_tokens - 1) / tile_tokens;
  for (std::size_t output = 0; output < weights.outputs; output += tile_outputs) {
    std::size_t token = 0;
    for (; token + tile_tokens <= in.count; token += tile_tokens) {
      prefetch(weights, output + tile_outputs, token / tile_tokens, tiles);
      multiply_tile<tile_tokens>(in, token, weights, output, out);
    }
    for (; token < in.count; ++token) multiply_tile<1>(in, token, weights, output, out);
  }
}

}  // namespace

void linear(rows<const float> in, const matrix& weights, rows<float> out) {
  constexpr std::size_t few_tokens = 64;
  const bool tiles = weights.inputs % lane_count == 0 && weights.outputs % tile_outputs == 0;
  if (in.count == 1) {  // a product with a vector reads the weights once and packs nothing
    view(out[0]).matrix().noalias() = view(weights) * view(in[0]).matrix();
  } else if (tiles && in.count <= few_tokens) {
    multiply_tiles(in, weights, out);
  } else {
    view(out).noalias() = view(in) * view(weights).transpose();
  }
}

void add_bias(std::span<const float> bias, rows<float> x) {
  if (bias.empty()) return;
  for (std::size_t t = 0; t < x.count; ++t) view(x[t]) += view(bias);
}

void add(rows<const float> y, rows<float> x) {
  view(x) += view(y);
}

void rms_norm(rows<const float> in, std::span<const float> weight, float epsilon, rows<float> out) {
  for (std::size_t t = 0; t < in.count; ++t) {
    const auto x = view(in[t]);
    const float mean_square = x.square().mean();
    view(out[t]) = x * (1.0F / std::sqrt(mean_square + epsilon)) * view(weight);
  }
}

void swiglu(rows<const float> up, rows<float> gate) {
  for (std::size_t t = 0; t < gate.count; ++t) {
    auto g = view(gate[t]);
    g = g / (1.0F + (-g).exp()) * view(up[t]);
  }
}

rope::rope(const rope_parameters& parameters) : layout_(parameters.layout) {
  const std::size_t pairs = parameters.dimensions / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double exponent = -static_cast<double>(i) / static_cast<double>(pairs);
    const double factor = parameters.factors.empty() ? 1.0 : double{parameters.factors[i]};
    frequencies_.push_back(std::pow(parameters.base, exponent) / (parameters.stretch * factor));
  }
}

void rope::place(headwise::position first, std::size_t tokens) {
  cosine_.resize(tokens * frequencies_.size());
  sine_.resize(cosine_.size());
  for (std::size_t t = 0, k = 0; t < tokens; ++t) {
    for (const double frequency : frequencies_) {
      const double angle = static_cast<double>(first + t) * frequency;
      cosine_[k] = static_cast<float>(std::cos(angle));
      sine_[k] = static_cast<float>(std::sin(angle));
      ++k;
    }
  }
}

void rope::rotate(rows<float> x, std::size_t head_dim) const {
  const std::size_t pairs = frequencies_.size();
  const bool neighbours = layout_ == rope_layout::neighbours;
  const std::size_t step = neighbours ? 2 : 1;
  const std::size_t reach = neighbours ? 1 : pairs;
  for (std::size_t t = 0; t < x.count; ++t) {
    for (std::size_t head = 0; head < x.width; head += head_dim) {
      float* row = x[t].data() + head;
      for (std::size_t i = 0; i < pairs; ++i) {
        const float c = cosine_[t * pairs + i];
        const float s = sine_[t * pairs + i];
        float& a = row[i * step];
        float& b = row[i * step + reach];
        const float turned = a * c - b * s;
        b = a * s + b * c;
        a = turned;
      }
    }
  }
}

}  // namespace llama_example
