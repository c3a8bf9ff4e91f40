// SPDX-License-Identifier: Apache-2.0

#include "attention_pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "png.hpp"
#include "progress.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/profile/map_check.hpp"

namespace headwise_tool {
namespace {

constexpr std::size_t most_pixels = 64;   // of a side
constexpr std::size_t levels = 8;         // of brightness
constexpr double dimmest = 1.0 / 1024.0;  // share of a row's attention that is level 1

// Levels 0 to 7 of what is kept, then 1 to 7 of what is lost.
constexpr std::array<rgb, 2 * levels - 1> palette{{{13, 20, 36},
                                                   {24, 42, 74},
                                                   {33, 66, 115},
                                                   {44, 96, 158},
                                                   {66, 133, 196},
                                                   {110, 172, 220},
                                                   {170, 210, 238},
                                                   {240, 248, 255},
                                                   {48, 32, 30},
                                                   {84, 46, 26},
                                                   {128, 62, 20},
                                                   {172, 82, 14},
                                                   {214, 106, 12},
                                                   {242, 140, 40},
                                                   {255, 190, 110}}};

std::size_t level(double mass) {
  if (mass < dimmest) return 0;
  const double share = 1.0 - std::log(std::min(mass, 1.0)) / std::log(dimmest);
  return 1 + static_cast<std::size_t>(std::lround(share * (levels - 2)));
}

// One map, squeezed: each pixel is the attention of a block of queries on a block of keys, as a
// share of those queries' attention.
class squeezed_map {
 public:
  squeezed_map(const headwise::attention_map_view& map,
               std::span<const headwise::token_count> lifetimes)
      : map_(map),
        side_(std::min({most_pixels, map.weights.count, map.weights.width})),
        kept_(side_ * side_),
        lost_(side_ * side_),
        queries_(side_) {
    for (std::size_t row = 0; row < map.weights.count; ++row) add_row(row, lifetimes);
  }

  [[nodiscard]] attention_picture picture() const {
    std::vector<std::uint8_t> pixels(side_ * side_);
    double kept = 0.0, total = 0.0;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t bright = level((kept_[i] + lost_[i]) / queries_[i / side_]);
      const bool given_up = lost_[i] > kept_[i] && bright > 0;
      pixels[i] = static_cast<std::uint8_t>(given_up ? levels - 1 + bright : bright);
      kept += kept_[i];
      total += kept_[i] + lost_[i];
    }
    return {png_of(pixels, side_, palette), kept / total};
  }

 private:
  void add_row(std::size_t row, std::span<const headwise::token_count> lifetimes) {
    const auto query = static_cast<headwise::position>(map_.first_query + row);
    const double sum = headwise::checked_row_sum(map_, row, headwise::default_row_sum_tolerance);
    const std::size_t y = row * side_ / map_.weights.count;
    queries_[y] += 1.0;
    for (headwise::position key = 0; key <= query; ++key) {
      const std::size_t at = y * side_ + std::size_t{key} * side_ / map_.weights.width;
      const bool seen = headwise::sees(query, key, lifetimes[key]);
      (seen ? kept_ : lost_)[at] += static_cast<double>(map_.weights.at(row, key)) / sum;
    }
  }

  const headwise::attention_map_view& map_;
  std::size_t side_;
  std::vector<double> kept_, lost_;  // [side, side]
  std::vector<double> queries_;      // [side], in each row of pixels
};

}  // namespace

std::vector<attention_picture> draw_attention(std::span<const std::filesystem::path> maps,
                                              const headwise::blueprint& plan) {
  headwise::map_archive archive(maps);
  headwise::require_match(plan, archive.shape(), archive.fingerprint());
  std::vector<attention_picture> pictures(std::size_t{plan.shape.layers} * plan.shape.query_heads);
  progress bar("drawing", pictures.size(), "maps");
  std::uint64_t drawn = 0;
  std::vector<headwise::token_count> lifetimes;
  while (const auto map = archive.next()) {
    if (map->prompt != 0) break;
    headwise::check_map_shape(*map, plan.shape);
    const headwise::head_id head{map->layer, map->query_head / plan.shape.group_size()};
    const auto policy = headwise::make_policy(plan.head(head).policy);
    lifetimes.clear();
    for (const headwise::token& key : map->keys)
      lifetimes.push_back(headwise::lifetime_of(policy, key));
    pictures[std::size_t{map->layer} * plan.shape.query_heads + map->query_head] =
        squeezed_map(*map, lifetimes).picture();
    bar.reach(++drawn);
  }
  return pictures;
}

}  // namespace headwise_tool
