// SPDX-License-Identifier: Apache-2.0
//
// profiler: attention maps in, a blueprint out. add() reads each map once; plan() then answers for
// any target, criterion, aggregation and granularity, as often as asked, without the maps.
//
//   profiler<> p(shape, rules, measure_options{});
//   while (auto map = source.next()) p.add(*map);
//   blueprint b = p.plan(classify_options{}, fingerprint);
//
// A head is one (layer, KV head); query head h reads KV head h / group_size. Rows are normalised by
// their own sums, so that no recovery is above 1. Bad maps throw headwise::error and leave a
// profiler that is only good for destruction.
//
// Memory O(heads * (candidates + learned ids)) and one prompt's tokens and one map's columns,
// whatever the number of prompts; where candidates rank, also the maps of the KV heads of one
// prompt that are not complete (ranked_measurement.hpp). What a pool of theirs holds is known of
// prompts of which every query was recorded; of others it counts as empty, so that a candidate is
// never taken for better than it is.
//
// One owner thread. Several threads share the heads among them, each with a source of its own, and
// the result is the same, bit for bit, for any number of them; each holds the sums of its share:
//
//   thread i of n:  profiler<> part(shape, rules, options, head_share{i, n});
//                   while (auto map = source.next()) if (part.takes(*map)) part.add(*map);
//   and then:       profiler<>::join(parts).plan(classify_options{}, fingerprint);
//
// Parts of a set, say one prompt each, may be measured apart as well, and merged in a fixed order:
// merge() rounds, join() does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headwise/profile/candidate.hpp"
#include "headwise/profile/learn_ids.hpp"
#include "headwise/profile/plan_writer.hpp"
#include "headwise/profile/prompt_ledger.hpp"
#include "headwise/profile/ranked_measurement.hpp"

HEADWISE_NAMESPACE_BEGIN

struct measure_options {
  // The stated length: that of the sequences whose resident rows are expected. Each prompt is cut
  // or continued to it (the tokens behind its sinks over and over). 0: that of the first prompt.
  token_count length = 0;
  position skip_queries = 0;  // queries at positions below this do not count
  bool use_ladder = true;
  ladder_options ladder;
  // Further candidates, after the ladder and before global, which is always one.
  std::vector<candidate> candidates;
  double row_sum_tolerance = default_row_sum_tolerance;
  std::size_t max_tracked_ids = 2048;  // see learned_mass.hpp
  friend bool operator==(const measure_options&, const measure_options&) = default;
};

template <class Policies = builtin_policies>
class profiler {
 public:
  // Throws error on a shape or candidates that cannot be.
  profiler(const model_shape& shape, token_rules rules, measure_options options = {},
           head_share share = {})
      : shape_(validated(shape, share)),
        share_(share),
        rules_(std::move(rules)),
        options_(std::move(options)),
        ledger_(shape, share) {
    // Before any map is read: at the stated length, or at one that leaves no window out.
    const token_count length = options_.length == 0 ? max_length : options_.length;
    for (const candidate& c : candidates_at(length)) static_cast<void>(made(c, length));
  }

  [[nodiscard]] head_share share() const noexcept { return share_; }
  // Whether the map is of its share.
  [[nodiscard]] bool takes(const attention_map_view& map) const noexcept {
    return share_.holds(shape_, map.layer, map.query_head);
  }
  // map: one that it takes (checked at level 1). Throws error naming place, prompt, layer, head and
  // row.
  void add(const attention_map_view& map) {
    check_map_shape(map, shape_);
    HEADWISE_EXPECTS(takes(map), "the map belongs to another share of the heads");
    if (ledger_.opens_prompt(map)) start_prompt(map);
    ledger_.enter(map);
    if (!std::equal(map.keys.begin(), map.keys.end(), prompt_.keys.begin(), prompt_.keys.end()))
      raise(error_code::shape_mismatch, detail::map_place(map),
            std::to_string(map.keys.size()) + " tokens, not those of the prompt's first map",
            "its " + std::to_string(prompt_.keys.size()) + " tokens");
    measure_map(map, prompt_, learners_, options_.skip_queries, options_.row_sum_tolerance, mass_,
                sums_);
    if (is_whole(map)) ranked_.add(map, options_.skip_queries, sums_.table);
  }

  // Adds what another profiler measured; one that measured nothing adds nothing. Throws
  // error(shape_mismatch) where shape, share, token rules, options or stated length differ,
  // error(missing) where one of the two is amid a prompt.
  void merge(const profiler& other) {
    require_alike("profiler.merge", other);
    require_same("profiler.merge", "share", other.share_, share_);
    if (other.length_ == 0) return;
    other.ledger_.require_complete();
    if (length_ == 0) {
      start_as(other);
      sums_ = other.sums_;
    } else {
      ledger_.require_complete();
      if (other.length_ != length_)  // where the options leave it to the first prompt
        raise(error_code::shape_mismatch, "profiler.merge",
              "stated length " + std::to_string(other.length_),
              "stated length " + std::to_string(length_));
      sums_.merge(other.sums_);
    }
    ledger_.add_maps(other.ledger_.maps());
  }

  // What one profiler of all heads would hold, bit for bit, of the parts {0, n} .. {n - 1, n}, in
  // this order, each of which measured its share on the same prompts. Throws error(shape_mismatch)
  // where they do not belong together, error(missing) where one is amid a prompt.
  [[nodiscard]] static profiler join(std::span<const profiler> parts) {
    constexpr const char* place = "profiler.join";
    if (parts.empty()) raise(error_code::invalid_argument, place, "no parts", "at least one");
    const profiler& first = parts.front();
    profiler whole(first.shape_, first.rules_, first.options_);
    std::vector<const measurement*> sums;
    for (const profiler& part : parts) {
      whole.require_alike(place, part);
      const head_share expected{static_cast<std::uint32_t>(&part - parts.data()),
                                static_cast<std::uint32_t>(parts.size())};
      require_same(place, "share in its place", part.share_, expected);
      if (held_heads(part.shape_, part.share_).size() == 0) continue;
      part.ledger_.require_complete();
      require_same(place, "stated length", part.length_, first.length_);
      const bool same_prompts = part.sums_.table.has_prompts_of(first.sums_.table) &&
                                part.sums_.learned.has_ids_of(first.sums_.learned);
      require_same(place, "set of prompts", same_prompts, true);
      sums.push_back(&part.sums_);
      whole.ledger_.add_maps(part.ledger_.maps());
    }
    whole.start_as(first);
    whole.sums_ = measurement::join(first.shape_, sums);
    return whole;
  }

  // Throws error(missing) where maps of the last prompt are missing, a head has no calibration
  // query, or a candidate ranks and there is no prompt of which every query was recorded;
  // error(invalid_argument) on options out of range.
  [[nodiscard]] blueprint plan(const classify_options& options,
                               const model_fingerprint& model = {}) const {
    ledger_.require_complete();
    require_whole_prompt();
    blueprint result = write_plan(sums_, candidates_, shape_, length_, options);
    result.model = model;
    result.tokens = rules_;
    detail::declare_named_classes(result);
    return result;
  }

  // The stated length and the candidates, in order; 0 and none before the first map.
  [[nodiscard]] token_count length() const noexcept { return length_; }
  [[nodiscard]] const std::vector<candidate>& candidates() const noexcept { return candidates_; }
  [[nodiscard]] const measurement& sums() const noexcept { return sums_; }
  [[nodiscard]] std::uint64_t maps() const noexcept { return ledger_.maps(); }

 private:
  using policy = typename Policies::variant;

  [[nodiscard]] static const model_shape& validated(const model_shape& shape, head_share share) {
    validate(shape);
    if (share.index >= share.count)
      raise(error_code::out_of_range, "share of the heads", std::to_string(share.index),
            "a number below that of shares, " + std::to_string(share.count));
    return shape;
  }
  template <class T>
  static void require_same(const char* place, const char* what, const T& got, const T& expected) {
    if (got != expected)
      raise(error_code::shape_mismatch, place, std::string("another ") + what,
            std::string("the same ") + what);
  }
  void require_alike(const char* place, const profiler& other) const {
    require_same(place, "shape", other.shape_, shape_);
    require_same(place, "set of token rules", other.rules_, rules_);
    require_same(place, "set of options", other.options_, options_);
  }
  // Every query that comes before one of its own is known: so is what a pool holds.
  [[nodiscard]] static bool is_whole(const attention_map_view& map) noexcept {
    return map.first_query == 0;
  }
  void require_whole_prompt() const {
    if (sums_.whole_prompts > 0) return;
    for (std::size_t c = 0; c < policies_.size(); ++c)
      if (pool_rows(c) > 0)
        raise(error_code::missing, "candidate '" + candidates_[c].name + "'",
              "no prompt of which every query was recorded",
              "one at least, as it ranks tokens by the attention of all of them");
  }
  // How it measures, not the prompt in hand: prompts that are added here number from 0.
  void start_as(const profiler& other) {
    length_ = other.length_;
    candidates_ = other.candidates_;
    policies_ = other.policies_;
    learners_ = other.learners_;
    ranked_ = other.ranked_;
    mass_ = other.mass_;
  }

  void start_prompt(const attention_map_view& map) {
    if (length_ == 0) choose_candidates(static_cast<token_count>(map.keys.size()));
    prompt_.keys.assign(map.keys.begin(), map.keys.end());
    prompt_.slots = sums_.learned.slots(prompt_.keys);
    if (is_whole(map) && map.weights.count > options_.skip_queries) ++sums_.whole_prompts;
    prompt_.kinds = kinds_of(prompt_.keys, is_whole(map));
    start_ranked();
    std::vector<resident_count> counts;
    std::size_t learner = 0;
    for (std::size_t c = 0; c < policies_.size(); ++c) {
      const auto ignore = [](std::size_t, std::uint64_t, std::uint64_t) {};
      const auto count_id = [&](std::size_t source, std::uint64_t rows, std::uint64_t behind) {
        if (prompt_.slots[source] != learned_mass::no_slot)
          sums_.learned.add_cost(prompt_.slots[source], learner, {rows, behind});
      };
      const bool learns = candidates_[c].learns_ids;
      counts.push_back(learns ? count(c, count_id) : count(c, ignore));
      learner += learns ? 1 : 0;
    }
    sums_.table.add_prompt(counts);
  }

  [[nodiscard]] key_kinds kinds_of(std::span<const token> keys, bool in_whole_prompt) const {
    std::vector<std::uint32_t> ages;
    ages.reserve(keys.size() * policies_.size());
    for (const token& key : keys)
      for (std::size_t c = 0; c < policies_.size(); ++c)
        ages.push_back(static_cast<std::uint32_t>(mass_.index(
            in_whole_prompt && pool_rows(c) > 0 ? forever : lifetime_of(policies_[c], key))));
    return {ages, policies_.size()};
  }

  void start_ranked() {
    for (ranked_candidate& ranked : ranked_.candidates()) {
      ranked.lifetimes.clear();
      for (const token& key : prompt_.keys)
        ranked.lifetimes.push_back(lifetime_of(policies_[ranked.candidate], key));
    }
  }

  // Rows of the pool in a sequence of the stated length; 0 where the candidate does not rank.
  [[nodiscard]] token_count pool_rows(std::size_t c) const noexcept {
    return pool_rows_of(policies_[c], length_);
  }
  template <class OnLost>
  [[nodiscard]] resident_count count(std::size_t c, const OnLost& on_lost) const {
    resident_count result = count_resident(
        prompt_.keys, length_, rules_.sink_count,
        [&](const token& t) { return lifetime_of(policies_[c], t); }, on_lost);
    result.rows += std::min<std::uint64_t>(pool_rows(c), length_ - result.rows);
    return result;
  }

  // The ladder, the further candidates, and global at the end unless it is among them.
  [[nodiscard]] std::vector<candidate> candidates_at(token_count length) const {
    const auto is_global = [](const candidate& c) { return c.policy == make_spec(global{}); };
    std::vector<candidate> chosen;
    if (options_.use_ladder) {
      chosen = make_ladder(options_.ladder, length);
      chosen.pop_back();
    }
    chosen.insert(chosen.end(), options_.candidates.begin(), options_.candidates.end());
    if (std::none_of(chosen.begin(), chosen.end(), is_global))
      chosen.push_back({"global", make_spec(global{})});
    for (auto c = chosen.begin(); c != chosen.end(); ++c)
      if (std::any_of(chosen.begin(), c, [&](const auto& other) { return other.name == c->name; }))
        raise(error_code::duplicate, "candidates", "'" + c->name + "' twice", "unique names");
    return chosen;
  }

  // Throws error where the policy, or what becomes of it with ids of its own, is not of Policies,
  // and where it learns ids and ranks: whom an id drives out of the pool is not additive.
  [[nodiscard]] static policy made(const candidate& c, token_count length) {
    const std::string place = "candidate '" + c.name + "'";
    policy result = make_policy<Policies>(c.policy, place);
    if (!c.learns_ids) return result;
    if (pool_rows_of(result, length) > 0)
      raise(error_code::invalid_argument, place, "a policy that ranks and learns ids",
            "one of the two");
    static_cast<void>(
        make_policy<Policies>(detail::with_ids(c.policy, {0}), place + " with ids of its own"));
    return result;
  }

  void choose_candidates(token_count first_prompt) {
    const token_count length = options_.length == 0 ? first_prompt : options_.length;
    length_ = length;
    candidates_ = candidates_at(length);
    ranked_ = ranked_measurement(shape_);
    std::vector<token_count> lifetimes;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      policies_.push_back(made(candidates_[c], length));
      if (candidates_[c].learns_ids) learners_.push_back(c);
      if (pool_rows(c) > 0) ranked_.candidates().push_back({c, pool_rows(c)});
      for (const token_count lifetime : lifetimes_of(policies_[c])) lifetimes.push_back(lifetime);
    }
    mass_ = mass_by_age(std::move(lifetimes));
    sums_.table = recovery_table(shape_, candidates_.size(), share_);
    sums_.learned = learned_mass(shape_, learners_.size(), options_.max_tracked_ids, share_);
  }

  model_shape shape_;
  head_share share_;
  token_rules rules_;
  measure_options options_;
  token_count length_ = 0;  // stated; 0 before the first map
  std::vector<candidate> candidates_;
  std::vector<policy> policies_;       // [candidates]
  std::vector<std::size_t> learners_;  // the candidates that learn ids
  mass_by_age mass_;                   // of the map in hand
  ranked_measurement ranked_;          // the candidates that rank
  prompt_lifetimes prompt_;            // in hand
  prompt_ledger ledger_;
  measurement sums_;
};

struct profile_options {
  measure_options measure;
  classify_options classify;
};
// Called after each map with the number of maps so far.
using profile_progress = std::function<void(std::uint64_t maps, const attention_map_view& last)>;

// All of a source's maps to a blueprint. `rules` say what classed the tokens of the maps and how
// many are sinks; `model` is what the blueprint is for. Throws error on the first bad map.
template <class Policies = builtin_policies, map_source Source>
[[nodiscard]] blueprint profile(Source& source, const token_rules& rules,
                                const model_fingerprint& model = {},
                                const profile_options& options = {},
                                const profile_progress& progress = {}) {
  profiler<Policies> work(source.shape(), rules, options.measure);
  while (const std::optional<attention_map_view> map = source.next()) {
    work.add(*map);
    if (progress) progress(work.maps(), *map);
  }
  return work.plan(options.classify, model);
}

HEADWISE_NAMESPACE_END
