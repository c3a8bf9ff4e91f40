// SPDX-License-Identifier: Apache-2.0
//
// The problem that benchmarks of attention solve: one token attends in one layer of 8 KV heads, and
// caches are larger than any processor cache, since each iteration takes the next of many layers.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "headwise/codec/concepts.hpp"
#include "support/kept.hpp"
#include "support/plans.hpp"
#include "support/row_table.hpp"

namespace headwise_bench {

inline constexpr std::uint32_t kv_heads = 8;

// Four times the largest processor cache, within bounds that suit a desk and a server.
[[nodiscard]] inline std::size_t cold_bytes() {
  std::size_t largest = 0;
  for (const auto& cache : benchmark::CPUInfo::Get().caches)
    largest = std::max(largest, static_cast<std::size_t>(cache.size));
  return std::clamp(4 * largest, std::size_t{128} << 20, std::size_t{1} << 30);
}

struct problem {
  std::uint32_t head_dim, group_size;
  headwise::token_count length;

  [[nodiscard]] headwise::model_shape shape(std::size_t layers) const {
    return {static_cast<std::uint32_t>(layers), kv_heads * group_size, kv_heads, head_dim};
  }
  // Layers that together hold cold_bytes, when one holds so many.
  [[nodiscard]] static std::size_t cold_layers(std::size_t layer_bytes) {
    return cold_bytes() / layer_bytes + 1;
  }
  template <headwise::row_codec Key, headwise::row_codec Value = Key>
  [[nodiscard]] std::size_t row_bytes() const {
    return Key::row_bytes(head_dim) + Value::row_bytes(head_dim);
  }
  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim)); }
  [[nodiscard]] std::string name() const {
    return "head_dim " + std::to_string(head_dim) + ", group " + std::to_string(group_size) + ", " +
           std::to_string(length) + " tokens";
  }
};

// The same rows in each layer, in memory of its own.
struct inputs {
  explicit inputs(const problem& p)
      : keys(1, kv_heads, p.length, p.head_dim),
        values(2, kv_heads, p.length, p.head_dim),
        queries(3, kv_heads, p.group_size, p.head_dim) {}
  row_table keys, values, queries;
};
[[nodiscard]] inline const inputs& inputs_of(const problem& p) {
  return kept<inputs>(p.name(), "inputs", p);
}

// What a codec makes of a row.
template <headwise::row_codec Codec>
[[nodiscard]] std::vector<float> as_stored(std::span<const float> row) {
  std::vector<std::byte> encoded(Codec::row_bytes(row.size()));
  std::vector<float> decoded(row.size());
  Codec::encode(row, encoded.data());
  Codec::decode(encoded.data(), decoded);
  return decoded;
}

// Attention of one query head in double precision, a row at a time.
class reference_attention {
 public:
  reference_attention(std::span<const float> query, float scale)
      : query_(query), scale_(scale), sums_(query.size()) {}
  void see(std::span<const float> key, std::span<const float> value) {
    const double logit = std::inner_product(query_.begin(), query_.end(), key.begin(), 0.0);
    const double weight = std::exp(logit * double{scale_});
    total_ += weight;
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += weight * double{value[i]};
  }
  // The sum of the magnitudes of the output.
  [[nodiscard]] double checksum() const {
    double sum = 0.0;
    for (const double element : sums_) sum += std::abs(element / total_);
    return sum;
  }

 private:
  std::span<const float> query_;
  float scale_;
  double total_ = 0.0;
  std::vector<double> sums_;
};

// A layer's attention over the tokens that the plan keeps, of rows that the codecs have stored: the
// sum of the magnitudes of all outputs. layer_plan: [kv_heads].
template <headwise::row_codec Key, headwise::row_codec Value = Key>
[[nodiscard]] double reference_checksum(const problem& p, const std::vector<policy>& layer_plan) {
  const inputs& in = inputs_of(p);
  double checksum = 0.0;
  for (std::size_t head = 0; head < kv_heads; ++head) {
    std::vector<reference_attention> group;
    for (std::size_t g = 0; g < p.group_size; ++g)
      group.emplace_back(in.queries.view(head, g, 1)[0], p.scale());
    for (headwise::position pos = 0; pos < p.length; ++pos) {
      if (!newest_sees(layer_plan[head], p.length, pos)) continue;
      const auto key = as_stored<Key>(in.keys.view(head, pos, 1)[0]);
      const auto value = as_stored<Value>(in.values.view(head, pos, 1)[0]);
      for (reference_attention& query : group) query.see(key, value);
    }
    for (const reference_attention& query : group) checksum += query.checksum();
  }
  return checksum;
}
[[nodiscard]] inline double magnitude(std::span<const float> elements) {
  double sum = 0.0;
  for (const float element : elements) sum += std::abs(double{element});
  return sum;
}

}  // namespace headwise_bench
