// SPDX-License-Identifier: Apache-2.0
//
// The candidates that a profile chooses from: named policies in a fixed order. The ladder is that
// of FastGen (arXiv:2310.01801) with a grid of windows, and of pools of heavy hitters behind them
// where asked for; the rungs without punctuation may learn token ids instead, for each head its
// own.
//
// A ladder: O(windows * (log windows + pools)); budget_windows(): O(log length). Pure: any number
// of threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headwise/policy/spec.hpp"

HEADWISE_NAMESPACE_BEGIN

struct candidate {
  std::string name;
  policy_spec policy;
  // The profiler may add token ids to `policy`, for each head its own, until it passes.
  bool learns_ids = false;
  friend bool operator==(const candidate&, const candidate&) = default;
};

struct ladder_options {
  token_classes special = token_classes::sink | token_classes::special;  // in every rung
  token_classes punctuation = token_classes::punctuation;
  std::vector<token_count> windows = {16, 32, 64, 96, 128, 192, 256, 384, 512};
  std::vector<double> window_fractions;  // of the stated length (FastGen's r_l); added to windows
  // Fractions of the length (FastGen's r_f, 0.3 there), at most what they are at the stated length.
  // None unless asked for: to simulate them is most of the work of a profile that has them.
  std::vector<double> heavy_hitters;
  // Windows with a pool of as many rows behind each, as in H2O (arXiv:2306.14048). They cost a
  // profile as much, and serve budgets of few rows (bench/quality).
  std::vector<token_count> even_pools;
  bool learn_ids = true;
  friend bool operator==(const ladder_options&, const ladder_options&) = default;
};

// The windows below a length for a plan within a budget (budget.hpp), which puts each row where it
// brings most and finds few places for it where the next larger window takes many more: 8 apart up
// to 64, a quarter of an octave apart from there on.
[[nodiscard]] inline std::vector<token_count> budget_windows(token_count length) {
  constexpr std::uint64_t first = 8;
  std::vector<token_count> windows;
  for (std::uint64_t window = first; window < length;
       window += std::max(first, std::bit_floor(window) / 4))
    windows.push_back(static_cast<token_count>(window));
  return windows;
}

// A fraction of a length as a count: rounded to the nearest, halves up, at least 1. Throws
// error(invalid_argument) on a fraction outside (0, 1].
[[nodiscard]] inline token_count window_from_fraction(double fraction, token_count length) {
  if (!(fraction > 0.0 && fraction <= 1.0))
    raise(error_code::invalid_argument, "window fraction", std::to_string(fraction),
          "more than 0 and at most 1");
  return std::max<token_count>(1, static_cast<token_count>(std::floor(fraction * length + 0.5)));
}

namespace detail {

// Sorted, unique. Those that reach the stated length are left out: they would cost what global
// costs there and lose tokens beyond it.
[[nodiscard]] inline std::vector<token_count> below(std::vector<token_count> grid,
                                                    token_count length, const char* what) {
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  if (!grid.empty() && grid.front() == 0)
    raise(error_code::invalid_argument, what, "0", "at least 1 token");
  grid.erase(std::lower_bound(grid.begin(), grid.end(), length), grid.end());
  return grid;
}
[[nodiscard]] inline std::vector<token_count> window_grid(const ladder_options& options,
                                                          token_count length) {
  std::vector<token_count> grid = options.windows;
  for (const double fraction : options.window_fractions)
    grid.push_back(window_from_fraction(fraction, length));
  return below(std::move(grid), length, "windows");
}

// Sorted, unique, each capped by its rows at the stated length.
[[nodiscard]] inline std::vector<heavy_hitters> pool_grid(const ladder_options& options,
                                                          token_count length) {
  std::vector<std::uint32_t> grid;
  for (const double fraction : options.heavy_hitters)
    grid.push_back(heavy_hitters(fraction, forever).fraction_in_millionths());
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  std::vector<heavy_hitters> pools;
  for (const std::uint32_t fraction : grid) {
    const auto uncapped = heavy_hitters::of_millionths(fraction, forever);
    pools.push_back(heavy_hitters::of_millionths(fraction, uncapped.pool_rows(length)));
  }
  return pools;
}

// "+frequent(0.3)" of 300,000 millionths.
[[nodiscard]] inline std::string pool_name(const heavy_hitters& pool) {
  constexpr std::uint32_t one = heavy_hitters::one;
  const std::uint32_t fraction = pool.fraction_in_millionths();
  std::string digits =
      std::to_string(fraction / one) + "." + std::to_string(one + fraction % one).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return "+frequent(" + digits + ")";
}

}  // namespace detail

// special; special+punctuation; both with each window of the grid, and then with each pool behind
// the window; special with each even pool; global. The rungs without punctuation learn ids if asked
// to, but for those with pools. A pool that reaches the stated length together with its window is
// left out, like a window that does.
[[nodiscard]] inline std::vector<candidate> make_ladder(const ladder_options& options,
                                                        token_count length) {
  const special_tokens special(options.special);
  const special_tokens punctuation(options.special | options.punctuation);
  std::vector<candidate> ladder{{"special", make_spec(special), options.learn_ids},
                                {"special+punctuation", make_spec(punctuation)}};
  const std::vector<heavy_hitters> pools = detail::pool_grid(options, length);
  for (const token_count window : detail::window_grid(options, length)) {
    const std::string local = "+local(" + std::to_string(window) + ")";
    const auto with_window = [&](const special_tokens& kept) {
      return make_spec(union_of(kept, local_window(window)));
    };
    ladder.push_back({"special" + local, with_window(special), options.learn_ids});
    ladder.push_back({"special+punctuation" + local, with_window(punctuation)});
    for (const heavy_hitters& pool : pools)
      if (pool.cap() < length - window)
        ladder.push_back({"special+punctuation" + local + detail::pool_name(pool),
                          make_spec(union_of(punctuation, local_window(window), pool))});
  }
  for (const token_count rows : detail::below(options.even_pools, (length + 1) / 2, "even pools")) {
    const std::string size = "(" + std::to_string(rows) + ")";
    ladder.push_back({"special+local" + size + "+frequent" + size,
                      make_spec(union_of(special, local_window(rows), heavy_hitters(rows)))});
  }
  ladder.push_back({"global", make_spec(global{})});
  return ladder;
}

HEADWISE_NAMESPACE_END
