// SPDX-License-Identifier: Apache-2.0
//
// Rows and queries as functions of head and position. In every fixture V[t] = t in each element
// unless it says otherwise, so outputs can be read.
#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "headwise/core/types.hpp"

namespace headwise_tests {

struct fixture {
  using row_filler = std::function<void(headwise::head_id, headwise::position, std::span<float>)>;
  using query_filler = std::function<void(std::uint32_t layer, std::uint32_t query_head,
                                          headwise::position, std::span<float>)>;
  row_filler key;
  row_filler value;
  query_filler query;
  float scale = 1.0F;
};

inline void fill(std::span<float> row, float with) {
  for (float& x : row) x = with;
}
// In [-1, 1); a generator that costs nothing to set up, since each row has its own.
inline void fill_random(std::span<float> row, std::uint32_t seed) {
  std::minstd_rand generator(seed * 7919 + 17);
  generator.discard(1);
  for (float& x : row) x = static_cast<float>(generator() >> 7) * 0x1p-23F - 1.0F;
}

[[nodiscard]] inline fixture::row_filler value_is_position() {
  return [](headwise::head_id, headwise::position pos, std::span<float> row) {
    fill(row, static_cast<float>(pos));
  };
}
[[nodiscard]] inline fixture::row_filler random_rows(std::uint32_t seed) {
  return [seed](headwise::head_id head, headwise::position pos, std::span<float> row) {
    fill_random(row, seed + 4096 * pos + 64 * head.layer + head.kv_head);
  };
}
[[nodiscard]] inline fixture::query_filler random_queries(std::uint32_t seed) {
  return [seed](std::uint32_t layer, std::uint32_t query_head, headwise::position pos,
                std::span<float> row) {
    fill_random(row, seed + 4096 * pos + 64 * layer + query_head);
  };
}

// Fixture U: q = 0, so the output is the mean of the visible positions.
[[nodiscard]] inline fixture uniform_fixture() {
  return {random_rows(1), value_is_position(),
          [](std::uint32_t, std::uint32_t, headwise::position, std::span<float> row) {
            fill(row, 0.0F);
          }};
}

// Fixture P: K[t] = 30 e_(t mod D), q = 30 e_(picked mod D): of D consecutive rows the output is
// the one whose position is congruent to `picked`.
[[nodiscard]] inline fixture picking_fixture(std::function<headwise::position()> picked) {
  const auto one_hot = [](std::size_t at, std::span<float> row) {
    fill(row, 0.0F);
    row[at % row.size()] = 30.0F;
  };
  return {[one_hot](headwise::head_id, headwise::position pos, std::span<float> row) {
            one_hot(pos, row);
          },
          value_is_position(),
          [one_hot, picked = std::move(picked)](std::uint32_t, std::uint32_t, headwise::position,
                                                std::span<float> row) { one_hot(picked(), row); }};
}

[[nodiscard]] inline fixture random_fixture(std::uint32_t seed, float scale = 0.5F) {
  return {random_rows(seed), random_rows(seed + 1'000'003), random_queries(seed + 2'000'003),
          scale};
}

// Rotary position embedding in double, of the first `rotary` elements: neighbours (0,1), (2,3) or
// split halves (0, r/2), (1, r/2 + 1).
enum class pair_layout { neighbours, halves };
inline void rotate(std::span<float> row, double pos, std::size_t rotary,
                   pair_layout layout = pair_layout::neighbours, double base = 10000.0) {
  for (std::size_t i = 0; i < rotary / 2; ++i) {
    const double angle =
        pos * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary));
    float& x = row[layout == pair_layout::neighbours ? 2 * i : i];
    float& y = row[layout == pair_layout::neighbours ? 2 * i + 1 : i + rotary / 2];
    const double a = double{x}, b = double{y};
    x = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
    y = static_cast<float>(a * std::sin(angle) + b * std::cos(angle));
  }
}

}  // namespace headwise_tests
