// SPDX-License-Identifier: Apache-2.0
//
// Attention maps for tests of the profiler: recorded ones that own their memory, random ones, and
// the oracle: recovery and resident rows as loops over q - pos < lifetime, which is written out,
// and over heavy hitters (naive_hitters.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headwise/core/types.hpp"
#include "headwise/profile/attention_map.hpp"
#include "support/naive_hitters.hpp"
#include "support/random.hpp"

namespace headwise_tests {

using headwise::attention_map_view;
using headwise::model_shape;
using headwise::token;
using headwise::token_classes;

struct recorded_map {
  std::uint64_t prompt = 0;
  std::uint32_t layer = 0;
  std::uint32_t query_head = 0;
  position first_query = 0;
  std::size_t queries = 0;
  std::vector<token> keys;
  std::vector<float> weights;  // [queries, keys]
  std::string place = "maps.safetensors";

  [[nodiscard]] float& at(std::size_t query, std::size_t key) {
    return weights[query * keys.size() + key];
  }
  [[nodiscard]] float at(std::size_t query, std::size_t key) const {
    return weights[query * keys.size() + key];
  }
  [[nodiscard]] double row_sum(std::size_t query) const {
    double sum = 0.0;
    for (std::size_t key = 0; key < keys.size(); ++key) sum += double{at(query, key)};
    return sum;
  }
  [[nodiscard]] attention_map_view view() const {
    return {prompt, layer, query_head, first_query, {weights.data(), queries, keys.size()},
            keys,   place};
  }
};

// A map_source over maps in memory.
struct recorded_source {
  model_shape model;
  const std::vector<recorded_map>* maps;
  std::size_t next_map = 0;

  [[nodiscard]] model_shape shape() const { return model; }
  std::optional<attention_map_view> next() {
    if (next_map == maps->size()) return std::nullopt;
    return (*maps)[next_map++].view();
  }
};

[[nodiscard]] inline recorded_map make_map(std::vector<token> keys, std::vector<float> weights,
                                           std::uint32_t layer = 0, std::uint32_t query_head = 0) {
  recorded_map map;
  map.layer = layer;
  map.query_head = query_head;
  map.queries = weights.size() / keys.size();
  map.keys = std::move(keys);
  map.weights = std::move(weights);
  return map;
}

// n tokens: ids from 0 to 9, the first `sinks` in the sink class, ids 7 special, 8 and 9
// punctuation.
[[nodiscard]] inline std::vector<token> random_prompt(random_source& random, std::size_t n,
                                                      token_count sinks) {
  std::vector<token> tokens;
  for (position pos = 0; pos < n; ++pos) {
    token t{pos, static_cast<std::int32_t>(random.below(10)), token_classes::none};
    if (pos < sinks) t.classes |= token_classes::sink;
    if (t.id == 7) t.classes |= token_classes::special;
    if (t.id >= 8) t.classes |= token_classes::punctuation;
    tokens.push_back(t);
  }
  return tokens;
}

// A causal map with rows that sum to one; some heads look near, some far, some weights are 0.
inline void fill_random(random_source& random, recorded_map& map) {
  const auto unit = [&] { return (random.number() + 1.0F) / 2.0F; };
  const float fade = 0.5F + unit();  // of a weight, for each doubling of its age
  const std::size_t keys = map.keys.size();
  map.weights.assign(map.queries * keys, 0.0F);
  for (std::size_t row = 0; row < map.queries; ++row) {
    const std::size_t query = map.first_query + row;
    double sum = 0.0;
    for (std::size_t key = 0; key <= query; ++key) {
      float weight = random.one_in(5) ? 0.0F : unit();
      for (std::size_t age = query - key; age > 1; age /= 2) weight *= fade;
      if (key == query) weight += 0.01F;
      map.at(row, key) = weight;
      sum += static_cast<double>(weight);
    }
    for (std::size_t key = 0; key <= query; ++key)
      map.at(row, key) = static_cast<float>(static_cast<double>(map.at(row, key)) / sum);
  }
}

// Every layer and query head of `prompts` prompts of 1 to 40 tokens, heads in random order; with
// the last queries of each, or with all.
enum class recorded_queries { last, all };
[[nodiscard]] inline std::vector<recorded_map> random_maps(
    random_source& random, const model_shape& shape, std::size_t prompts, token_count sinks,
    recorded_queries which = recorded_queries::last) {
  std::vector<recorded_map> maps;
  for (std::uint64_t prompt = 0; prompt < prompts; ++prompt) {
    const std::uint32_t tokens = random.between(1, 40), last = random.between(1, tokens);
    const std::uint32_t queries = which == recorded_queries::all ? tokens : last;
    const std::vector<token> keys = random_prompt(random, tokens, sinks);
    const std::size_t first = maps.size();
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer)
      for (std::uint32_t head = 0; head < shape.query_heads; ++head) {
        recorded_map map;
        map.prompt = prompt;
        map.layer = layer;
        map.query_head = head;
        map.queries = queries;
        map.first_query = tokens - queries;
        map.keys = keys;
        fill_random(random, map);
        maps.push_back(std::move(map));
      }
    for (std::size_t i = maps.size() - 1; i > first; --i)
      std::swap(maps[i], maps[first + random.below(static_cast<std::uint32_t>(i + 1 - first))]);
  }
  return maps;
}

// The oracle. rule: of token to lifetime, and none of the library's (random_policy.hpp,
// spec_rule.hpp).
template <class Rule>
[[nodiscard]] double naive_recovery(const std::vector<recorded_map>& maps, std::uint32_t layer,
                                    std::uint32_t query_head, const Rule& rule,
                                    position skip_queries = 0) {
  double kept = 0.0, queries = 0.0;
  for (const recorded_map& map : maps) {
    if (map.layer != layer || map.query_head != query_head) continue;
    for (std::size_t row = 0; row < map.queries; ++row) {
      const position query = static_cast<position>(map.first_query + row);
      if (query < skip_queries) continue;
      double seen = 0.0;
      for (std::size_t key = 0; key < map.keys.size(); ++key)
        if (key <= query && query - key < rule(map.keys[key])) seen += double{map.at(row, key)};
      kept += seen / map.row_sum(row);
      queries += 1.0;
    }
  }
  return kept / queries;
}

// The heavy hitters of one prompt and KV head. group: its maps by query head, with all queries.
template <class Rule>
[[nodiscard]] naive_hitters follow(const std::vector<const recorded_map*>& group, const Rule& rule,
                                   token_count pool) {
  std::vector<std::vector<std::vector<double>>> weights;
  for (const recorded_map* map : group) {
    auto& rows = weights.emplace_back();
    for (std::size_t query = 0; query < map->queries; ++query) {
      auto& row = rows.emplace_back();
      for (std::size_t key = 0; key < map->keys.size(); ++key)
        row.push_back(double{map->at(query, key)});
    }
  }
  std::vector<token_count> lifetimes;
  for (const token& key : group.front()->keys) lifetimes.push_back(rule(key));
  return follow_hitters(weights, lifetimes, pool);
}

// naive_recovery() of a policy with a pool of heavy hitters.
template <class Rule>
[[nodiscard]] double naive_recovery(const std::vector<recorded_map>& maps, const model_shape& shape,
                                    std::uint32_t layer, std::uint32_t query_head, const Rule& rule,
                                    token_count pool, position skip_queries) {
  const std::uint32_t size = shape.query_heads / shape.kv_heads, index = query_head % size;
  double kept = 0.0, queries = 0.0;
  for (std::uint64_t prompt = 0; prompt <= maps.back().prompt; ++prompt) {
    std::vector<const recorded_map*> group(size);
    for (const recorded_map& map : maps)
      if (map.prompt == prompt && map.layer == layer && map.query_head / size == query_head / size)
        group[map.query_head % size] = &map;
    const naive_hitters followed = follow(group, rule, pool);
    for (std::size_t query = skip_queries; query < followed.mass.size(); ++query, queries += 1.0)
      kept += followed.mass[query][index] / group[index]->row_sum(query);
  }
  return kept / queries;
}

// `tokens` cut or continued to `length`: written out, not computed by index.
[[nodiscard]] inline std::vector<token> continued(const std::vector<token>& tokens,
                                                  token_count length, token_count sinks) {
  std::vector<token> all(
      tokens.begin(),
      tokens.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(tokens.size(), length)));
  const std::size_t first = sinks < tokens.size() ? sinks : tokens.size() - 1;
  for (std::size_t from = first; all.size() < length;
       from = from + 1 == tokens.size() ? first : from + 1) {
    token t = tokens[from];
    t.pos = static_cast<position>(all.size());
    t.classes = t.classes & (token_classes::special | token_classes::punctuation);
    all.push_back(t);
  }
  return all;
}

template <class Rule>
[[nodiscard]] double naive_rows(const std::vector<recorded_map>& maps, const Rule& rule,
                                token_count length, token_count sinks, token_count pool = 0) {
  double rows = 0.0, prompts = 0.0;
  std::uint64_t last = ~std::uint64_t{0};
  for (const recorded_map& map : maps) {
    if (map.prompt == last) continue;
    last = map.prompt;
    prompts += 1.0;
    token_count past = 0;
    for (const token& t : continued(map.keys, length, sinks))
      length - 1 - t.pos < rule(t) ? rows += 1.0 : ++past;
    rows += std::min(past, pool);
  }
  return rows / prompts;
}

}  // namespace headwise_tests
