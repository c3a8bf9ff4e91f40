// SPDX-License-Identifier: Apache-2.0
//
// The limit of every benchmark that reads what it cannot keep in a processor cache: to read the
// same bytes once, as fast as one thread can. The words are added up, which is next to nothing
// beside the reading, at any width of vector.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace headwise_bench {

using words = std::span<const std::uint64_t>;

// Reads at four places at once, 64 KiB apart: a processor looks ahead at each of them, and more
// lines are on their way than for one place. Out of line, so that each caller times the same code.
[[gnu::noinline]] inline std::uint64_t sum_of(words data) {
  constexpr std::size_t places = 4, distance = 8192, line = 8;
  std::uint64_t sums[line] = {};
  for (; data.size() >= places * distance; data = data.subspan(places * distance))
    for (std::size_t i = 0; i < distance; i += line)
      for (std::size_t place = 0; place < places; ++place)
        for (std::size_t w = 0; w < line; ++w) sums[w] += data[place * distance + i + w];
  std::uint64_t sum = std::accumulate(data.begin(), data.end(), std::uint64_t{0});
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}
// From the first byte to the last, as plain loops read.
[[gnu::noinline]] inline std::uint64_t sum_in_order(words data) {
  return std::accumulate(data.begin(), data.end(), std::uint64_t{0});
}

// Layers of words that count up.
class word_layers {
 public:
  word_layers(std::size_t layers, std::size_t layer_bytes)
      : layers_(layers), words_(layer_bytes / sizeof(std::uint64_t)), data_(layers * words_) {
    std::iota(data_.begin(), data_.end(), std::uint64_t{0});
  }
  [[nodiscard]] std::size_t layers() const { return layers_; }
  [[nodiscard]] std::size_t layer_bytes() const { return words_ * sizeof(std::uint64_t); }
  [[nodiscard]] words layer(std::size_t index) const {
    return words(data_).subspan(index * words_, words_);
  }
  [[nodiscard]] double expected_sum(std::size_t index) const {
    const double first = static_cast<double>(index * words_), count = static_cast<double>(words_);
    return count * (first + (count - 1) / 2);
  }

 private:
  std::size_t layers_, words_;
  std::vector<std::uint64_t> data_;  // [layers, words]
};

}  // namespace headwise_bench
