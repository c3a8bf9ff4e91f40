// SPDX-License-Identifier: Apache-2.0
//
// Greedy pair merging, which both kinds of tokenizer are made of: of all neighbouring pairs that
// may merge, the one with the lowest rank merges first, the leftmost of equals.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <vector>

namespace llama_example {

inline constexpr std::size_t no_symbol = std::numeric_limits<std::size_t>::max();
inline constexpr std::int32_t no_token = -1;

// A stretch of the text; neighbours touch. A symbol of length 0 was merged into its left neighbour.
struct symbol {
  std::size_t begin;
  std::size_t length;
  std::int32_t id;  // no_token where the stretch is none
  std::size_t previous = no_symbol;
  std::size_t next = no_symbol;
};

struct merge_proposal {
  double rank;
  std::int32_t id;
};

inline void link_neighbours(std::vector<symbol>& symbols) noexcept {
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = i == 0 ? no_symbol : i - 1;
    symbols[i].next = i + 1 == symbols.size() ? no_symbol : i + 1;
  }
}

// propose(left, right) -> std::optional<merge_proposal>. O(n log n) in the number of symbols; what
// is left is reached from symbols[0] by `next`.
template <class Propose>
void merge_symbols(std::vector<symbol>& symbols, Propose propose) {
  struct candidate {
    merge_proposal merge;
    std::size_t left, right, length;
    bool operator<(const candidate& other) const noexcept {  // the queue's top is its greatest
      return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
    }
  };
  std::priority_queue<candidate> queue;
  const auto consider = [&](std::size_t left, std::size_t right) {
    if (left == no_symbol || right == no_symbol) return;
    if (const auto merge = propose(symbols[left], symbols[right])) {
      queue.push({*merge, left, right, symbols[left].length + symbols[right].length});
    }
  };

  link_neighbours(symbols);
  for (std::size_t i = 1; i < symbols.size(); ++i) consider(i - 1, i);
  while (!queue.empty()) {
    const candidate best = queue.top();
    queue.pop();
    symbol& left = symbols[best.left];
    symbol& right = symbols[best.right];
    const bool stale =
        left.length == 0 || right.length == 0 || left.length + right.length != best.length;
    if (stale) continue;
    left.length = best.length;
    left.id = best.merge.id;
    left.next = right.next;
    right.length = 0;
    if (left.next != no_symbol) symbols[left.next].previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
}

}  // namespace llama_example
