// SPDX-License-Identifier: Apache-2.0
//
// Heavy hitters for a script that states their rule anew (compare_h2o.py).
//
//   hitters_probe MAPS WINDOW ROWS
//
// MAPS: one prompt of recorded maps. For each layer and KV head, under local_window{WINDOW} and
// heavy_hitters{ROWS}, prints two matrices [queries, keys] of bytes, 1 where the key at that
// position is kept after that query: by the profiler's simulation, and by a cache that the
// recorded attention is shown to.

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "headwise/codec/f32.hpp"
#include "headwise/io/map_archive.hpp"
#include "headwise/manager/cache_manager.hpp"
#include "headwise/profile/ranked_simulation.hpp"

namespace {

using headwise::position;

struct group_maps {
  std::size_t heads = 0, length = 0;
  std::vector<float> weights;  // [heads, length, length]

  void add(const headwise::attention_map_view& map) {
    ++heads;
    length = map.weights.width;
    for (std::size_t query = 0; query < length; ++query) {
      weights.resize(weights.size() + length);
      map.weights.copy_row(query, std::span(weights).last(length));
    }
  }
  // [heads, keys]
  [[nodiscard]] headwise::rows<const float> of(std::size_t query) const {
    return {weights.data() + query * length, heads, length, length * length};
  }
};

using byte_matrix = std::string;  // [length, length]

byte_matrix by_simulation(const group_maps& maps, headwise::token_count window,
                          headwise::token_count rows) {
  byte_matrix kept(maps.length * maps.length, '\0');
  headwise::ranked_simulation head(std::vector<headwise::token_count>(maps.length, window), rows);
  std::vector<double> seen(maps.heads);
  for (std::size_t query = 0; query < maps.length; ++query) {
    head.attend(maps.of(query), seen);
    for (const position pos : head.kept()) kept[query * maps.length + pos] = 1;
  }
  return kept;
}

template <class View>
std::vector<position> visible(const View& view, position query) {
  std::vector<position> positions;
  view.for_each_slab(query, [&](const headwise::slab& s) {
    positions.insert(positions.end(), s.positions, s.positions + s.count);
  });
  return positions;
}

// What the query heads together give to the rows that are there.
std::vector<float> attention(const group_maps& maps, position query,
                             const std::vector<position>& seen) {
  std::vector<float> sums(seen.size(), 0.0F);
  for (std::size_t head = 0; head < maps.heads; ++head) {
    const std::span<const float> row = maps.of(query)[head];
    double all = 0.0;
    for (const position pos : seen) all += double{row[pos]};
    for (std::size_t i = 0; all > 0.0 && i < seen.size(); ++i)
      sums[i] += static_cast<float>(double{row[seen[i]]} / all);
  }
  return sums;
}

byte_matrix by_cache(const group_maps& maps, headwise::token_count window,
                     headwise::token_count rows) {
  byte_matrix kept(maps.length * maps.length, '\0');
  headwise::cache_manager<headwise::builtin_policies, headwise::f32> cache(
      {1, 1, 1, 1},
      {headwise::union_of(headwise::local_window(window), headwise::heavy_hitters(rows))}, {});
  auto text = cache.open();
  const float zero = 0.0F;
  for (position query = 0; query < maps.length; ++query) {
    auto step = text.try_append(headwise::token{query});
    if (!step) throw std::runtime_error("no pages");
    step->write({0, 0}, {&zero, 1, 1}, {&zero, 1, 1});
    const auto view = step->head({0, 0});
    const std::vector<float> weights = attention(maps, query, visible(view, query));
    view.observe(query, {weights.data(), 1, weights.size()});
    std::move(*step).commit();
    for (const position pos : visible(text.head({0, 0}), query + 1))
      kept[query * maps.length + pos] = 1;
  }
  return kept;
}

void compare(const std::string& path, headwise::token_count window, headwise::token_count rows) {
  const std::vector<std::filesystem::path> paths{path};
  headwise::map_archive archive(paths);
  const std::uint32_t group = archive.shape().group_size();
  group_maps maps;
  while (const auto map = archive.next()) {
    maps.add(*map);
    if (maps.heads < group) continue;
    std::cout << by_simulation(maps, window, rows) << by_cache(maps, window, rows);
    maps = {};
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) {
      std::cerr << "usage: hitters_probe MAPS WINDOW ROWS\n";
      return 2;
    }
    compare(argv[1], static_cast<headwise::token_count>(std::stoul(argv[2])),
            static_cast<headwise::token_count>(std::stoul(argv[3])));
  } catch (const std::exception& error) {
    std::cerr << "hitters_probe: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
