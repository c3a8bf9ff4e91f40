// SPDX-License-Identifier: Apache-2.0
//
// measurement: everything that one pass over maps leaves behind, and the steps of that pass. It
// knows candidates as lifetimes of tokens, not as policies, so that any policy can be measured.
//
// One map [queries, keys]: O(queries * keys + ages * keys + candidates * kinds), and for candidates
// that learn O(learners * keys). Not thread-safe; measure parts of a set apart and merge them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headwise/profile/key_kinds.hpp"
#include "headwise/profile/learned_mass.hpp"
#include "headwise/profile/map_check.hpp"
#include "headwise/profile/mass_by_age.hpp"
#include "headwise/profile/recovery_table.hpp"

HEADWISE_NAMESPACE_BEGIN

struct measurement {
  recovery_table table;
  learned_mass learned;
  std::uint64_t whole_prompts = 0;  // recorded from the first query on, with one that counts

  // Associative but for the rounding of sums; merge in a fixed order where bytes must be the same.
  void merge(const measurement& other) {
    table.merge(other.table);
    learned.merge(other.learned);
    whole_prompts += other.whole_prompts;
  }
  // Of all heads, of parts that each measured its share of them on the same prompts.
  [[nodiscard]] static measurement join(const model_shape& shape,
                                        std::span<const measurement* const> parts) {
    std::vector<const recovery_table*> tables;
    std::vector<const learned_mass*> learned;
    for (const measurement* const part : parts) {
      tables.push_back(&part->table);
      learned.push_back(&part->learned);
    }
    return {recovery_table::join(shape, tables), learned_mass::join(shape, learned),
            parts.empty() ? 0 : parts.front()->whole_prompts};
  }
};

namespace detail {

// Up to here, and within the prompt, a policy is asked at every position.
inline constexpr std::uint64_t positions_asked = std::uint64_t{1} << 16;

// The positions first, first + step, ...
struct position_series {
  std::uint64_t first, step;
  [[nodiscard]] std::uint64_t below(std::uint64_t end) const noexcept {
    return end <= first ? 0 : (end - 1 - first) / step + 1;
  }
};

}  // namespace detail

// What the policy `lifetime_of` holds of the prompt when it is cut or continued to `length` tokens:
// beyond the prompt come the tokens behind its sinks over and over, as no sinks.
// on_lost(source, rows, behind): for tokens whose lifetime ends: the index of the prompt's token
// that they are copies of, how many are not held, and how many lie behind the sinks.
//
// O(keys + 65,536) for any length. Beyond the 65,536th position the policy is asked once for all
// further copies of a token: exact where lifetimes do not depend on positions, as with every
// built-in policy. Throws error(out_of_range) on a length that no sequence has.
template <class LifetimeOf, class OnLost>
[[nodiscard]] resident_count count_resident(std::span<const token> prompt, token_count length,
                                            token_count sink_count, const LifetimeOf& lifetime_of,
                                            OnLost&& on_lost) {
  if (length > max_length)
    raise(error_code::out_of_range, "stated length", std::to_string(length),
          "at most " + std::to_string(max_length) + " tokens");
  constexpr token_classes not_sink{~static_cast<std::uint32_t>(token_classes::sink)};
  const std::size_t repeated = std::min<std::size_t>(sink_count, prompt.size() - 1);
  const std::size_t period = prompt.size() - repeated;
  const std::uint64_t asked = std::max<std::uint64_t>(prompt.size(), detail::positions_asked);
  const std::uint64_t end = std::min<std::uint64_t>(length, asked + period);
  resident_count count;
  for (std::uint64_t pos = 0; pos < end; ++pos) {
    const bool in_prompt = pos < prompt.size();
    const std::size_t source = in_prompt ? pos : repeated + (pos - repeated) % period;
    token t = prompt[source];
    t.pos = static_cast<position>(pos);
    if (!in_prompt) t.classes = t.classes & not_sink;
    const token_count lifetime = lifetime_of(t);
    const detail::position_series copies{pos, pos < asked ? length : period};
    const std::uint64_t all = copies.below(length);
    // sees(length - 1, pos, lifetime) from here on.
    const std::uint64_t oldest = lifetime < length ? length - lifetime : 0;
    const std::uint64_t held = all - copies.below(oldest);
    const std::uint64_t behind = all - copies.below(std::min(sink_count, length));
    count.rows += held;
    count.behind += behind;
    if (lifetime == forever)
      count.forever += behind;
    else
      on_lost(source, all - held, behind);
  }
  return count;
}

// The tokens of the prompt in hand, as the candidates see them.
struct prompt_lifetimes {
  std::vector<token> keys;
  std::vector<std::uint32_t> slots;  // [keys], in learned_mass; empty where nothing is learned
  // By ages in mass_by_age; its ages() for forever, and in a whole prompt for all of a candidate
  // that ranks: what that loses does not follow from lifetimes (ranked_measurement.hpp).
  key_kinds kinds;
};

namespace detail {

// The sum of the tail over the keys, in four fixed lanes.
[[nodiscard]] inline double sum_over(std::span<const std::uint32_t> keys,
                                     std::span<const double> tail) noexcept {
  std::array<double, 4> sums{};
  for (std::size_t i = 0; i < keys.size(); ++i) sums[i % 4] += tail[keys[i]];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// [candidates]
[[nodiscard]] inline std::vector<double> lost_masses(const key_kinds& kinds,
                                                     const mass_by_age& mass,
                                                     std::size_t candidates) {
  std::vector<double> lost(candidates, 0.0), by_age(mass.ages() + 1, 0.0);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (std::size_t age = 0; age < mass.ages(); ++age)
      by_age[age] = sum_over(kinds.members(kind), mass.tail(age));
    const std::span<const std::uint32_t> ages = kinds.ages(kind);
    for (std::size_t c = 0; c < candidates; ++c) lost[c] += by_age[ages[c]];
  }
  return lost;
}

}  // namespace detail

// Adds one checked map of the prompt to `sums`. learners: [learners], indices of the candidates
// that learn ids. Queries at positions before skip_queries are checked but do not count.
inline void measure_map(const attention_map_view& map, const prompt_lifetimes& prompt,
                        std::span<const std::size_t> learners, position skip_queries,
                        double tolerance, mass_by_age& mass, measurement& sums) {
  const std::size_t keys = prompt.keys.size();
  std::uint64_t counted = 0;
  mass.start(keys);
  for (std::size_t row = 0; row < map.weights.count; ++row) {
    const position query = static_cast<position>(map.first_query + row);
    const double sum = checked_row_sum(map, row, tolerance, mass.width());
    if (query < skip_queries) continue;
    mass.add_row(query, map.weights, row, sum);
    ++counted;
  }
  mass.finish();
  sums.table.add_map(map.layer, map.query_head,
                     detail::lost_masses(prompt.kinds, mass, sums.table.candidates()), counted);
  if (learners.empty()) return;
  for (std::size_t key = 0; key < keys; ++key) {
    if (prompt.slots[key] == learned_mass::no_slot) continue;
    const std::span<const std::uint32_t> ages = prompt.kinds.ages(prompt.kinds.of(key));
    const std::span<double> gains =
        sums.learned.gains(prompt.slots[key], map.layer, map.query_head);
    for (std::size_t learner = 0; learner < learners.size(); ++learner)
      if (const std::uint32_t age = ages[learners[learner]]; age < mass.ages())
        gains[learner] += mass.tail(age)[key];
  }
}

HEADWISE_NAMESPACE_END
