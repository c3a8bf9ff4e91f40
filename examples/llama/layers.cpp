// SPDX-License-Identifier: Apache-2.0

#include "layers.hpp"

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

}  // namespace

void linear(rows<const float> in, const matrix& weights, rows<float> out) {
  if (in.count == 1) {  // a product with a vector reads the weights once and packs nothing
    view(out[0]).matrix().noalias() = view(weights) * view(in[0]).matrix();
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
