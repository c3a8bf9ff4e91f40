// SPDX-License-Identifier: Apache-2.0
//
// learned_mass: how much attention each token id would bring back to a candidate that learns ids,
// for every query head, [ids, query heads, learners], and what it would cost in rows [ids,
// learners]. Filled in the same pass as the recovery_table.
//
// Memory O(ids * layers * query_heads * learners), ids being those that occurred, at most max_ids
// in all: the first to occur, so that what is known of an id is known from its first occurrence on.
// A frequent id that comes late is not among them. Memory does not grow with the number of prompts.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headwise/profile/held_heads.hpp"

HEADWISE_NAMESPACE_BEGIN

// What a cache would hold more, summed over prompts, if the tokens of an id stayed forever.
struct id_cost {
  std::uint64_t rows = 0;
  std::uint64_t forever = 0;  // see resident_count
};

class learned_mass {
 public:
  static constexpr std::uint32_t no_slot = ~std::uint32_t{0};

  learned_mass() = default;
  learned_mass(const model_shape& shape, std::size_t learners, std::size_t max_ids,
               head_share share = {})
      : heads_(shape, share), learners_(learners), max_ids_(learners == 0 ? 0 : max_ids) {}

  // Ids by slot, in the order of their first occurrence.
  [[nodiscard]] std::span<const std::int32_t> ids() const noexcept { return ids_; }

  // [keys]: where the id of each key is kept; no_slot for tokens without an id and ids that came
  // when all slots were taken.
  [[nodiscard]] std::vector<std::uint32_t> slots(std::span<const token> keys) {
    std::vector<std::uint32_t> result;
    result.reserve(keys.size());
    for (const token& key : keys) result.push_back(slot(key.id));
    return result;
  }

  [[nodiscard]] bool has_ids_of(const learned_mass& other) const noexcept {
    return ids_ == other.ids_ && overflowed_ == other.overflowed_;
  }

  void add_cost(std::uint32_t slot, std::size_t learner, id_cost cost) noexcept {
    id_cost& sum = entries_[slot].costs[learner];
    sum.rows += cost.rows;
    sum.forever += cost.forever;
  }
  // [learners], to be added to: the mass that each lost on the id.
  [[nodiscard]] std::span<double> gains(std::uint32_t slot, std::uint32_t layer,
                                        std::uint32_t query_head) noexcept {
    return {entries_[slot].gains.data() + index(layer, query_head, 0), learners_};
  }
  // Where a part had no slot for some ids, only ids that it knows remain: what it dropped of the
  // others, mass and rows, is not known, and half of an id's rows would make it look cheap.
  void merge(const learned_mass& other) {
    if (heads_.size() == 0) {
      *this = other;
      return;
    }
    if (other.overflowed_) drop_unknown_to(other);
    for (std::size_t from = 0; from < other.ids_.size(); ++from) {
      const std::uint32_t to = slot(other.ids_[from]);
      if (to == no_slot) continue;
      const entry& more = other.entries_[from];
      for (std::size_t i = 0; i < more.gains.size(); ++i) entries_[to].gains[i] += more.gains[i];
      for (std::size_t l = 0; l < learners_; ++l) add_cost(to, l, more.costs[l]);
    }
    overflowed_ = overflowed_ || other.overflowed_;
  }

  // Of all heads, of parts that each measured its share of them on the same prompts.
  [[nodiscard]] static learned_mass join(const model_shape& shape,
                                         std::span<const learned_mass* const> parts) {
    learned_mass whole = *parts.front();  // ids and what they cost
    whole.heads_ = held_heads(shape);
    for (std::size_t slot = 0; slot < whole.ids_.size(); ++slot) {
      std::vector<double>& gains = whole.entries_[slot].gains;
      gains.assign(whole.heads_.size() * whole.learners_, 0.0);
      for (const learned_mass* const part : parts)
        part->heads_.for_each([&](std::uint32_t layer, std::uint32_t query_head) {
          std::copy_n(part->entries_[slot].gains.data() + part->index(layer, query_head, 0),
                      whole.learners_, gains.data() + whole.index(layer, query_head, 0));
        });
    }
    return whole;
  }

  // Lost mass, summed over queries, that the learner keeps once it knows the id of this slot.
  [[nodiscard]] double gain(std::uint32_t slot, std::uint32_t layer, std::uint32_t query_head,
                            std::size_t learner) const noexcept {
    return entries_[slot].gains[index(layer, query_head, learner)];
  }
  [[nodiscard]] id_cost cost(std::uint32_t slot, std::size_t learner) const noexcept {
    return entries_[slot].costs[learner];
  }

 private:
  struct entry {
    std::vector<double> gains;   // [heads, learners]
    std::vector<id_cost> costs;  // [learners]
  };

  [[nodiscard]] std::size_t index(std::uint32_t layer, std::uint32_t query_head,
                                  std::size_t learner) const noexcept {
    return heads_.index(layer, query_head) * learners_ + learner;
  }
  [[nodiscard]] std::uint32_t slot(std::int32_t id) {
    if (id < 0) return no_slot;
    const auto found = slot_of_.find(id);
    if (found != slot_of_.end()) return found->second;
    overflowed_ = overflowed_ || ids_.size() >= max_ids_;
    if (overflowed_) return no_slot;
    const std::uint32_t added = static_cast<std::uint32_t>(ids_.size());
    entries_.push_back(
        {std::vector<double>(heads_.size() * learners_, 0.0), std::vector<id_cost>(learners_)});
    ids_.push_back(id);
    slot_of_.emplace(id, added);
    return added;
  }
  void drop_unknown_to(const learned_mass& other) {
    std::size_t kept = 0;
    for (std::size_t from = 0; from < ids_.size(); ++from) {
      const std::int32_t id = ids_[from];
      if (!other.slot_of_.contains(id)) {
        slot_of_.erase(id);
        continue;
      }
      slot_of_[id] = static_cast<std::uint32_t>(kept);
      ids_[kept] = id;
      if (kept != from) entries_[kept] = std::move(entries_[from]);
      ++kept;
    }
    ids_.resize(kept);
    entries_.resize(kept);
  }

  held_heads heads_;
  std::size_t learners_ = 0;
  std::size_t max_ids_ = 0;
  bool overflowed_ = false;  // an id found no slot; no new one may have one after that
  std::vector<std::int32_t> ids_;
  std::vector<entry> entries_;
  std::unordered_map<std::int32_t, std::uint32_t> slot_of_;
};

HEADWISE_NAMESPACE_END
