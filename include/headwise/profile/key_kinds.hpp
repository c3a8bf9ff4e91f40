// SPDX-License-Identifier: Apache-2.0
//
// key_kinds: the keys of a prompt, sorted by what the candidates do with them: two keys are of one
// kind where every candidate gives both the same lifetime. A ladder knows a handful of kinds (a
// sink, punctuation, ...), so that what N candidates lose on a map is added up by kind and age, not
// N times over all keys.
//
// Making: O(keys * candidates); the rest O(1). Memory O(keys + kinds * candidates). A value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headwise/core/config.hpp"

HEADWISE_NAMESPACE_BEGIN

class key_kinds {
 public:
  key_kinds() = default;
  // ages: [keys, candidates], indices in mass_by_age. Kinds are numbered as they first occur.
  key_kinds(std::span<const std::uint32_t> ages, std::size_t candidates)
      : candidates_(candidates), of_(ages.size() / candidates) {
    std::unordered_map<std::string_view, std::uint32_t> known;
    for (std::size_t key = 0; key < of_.size(); ++key) {
      const auto mine = ages.subspan(key * candidates, candidates);
      const auto bytes = std::as_bytes(mine);
      const auto [kind, is_new] = known.try_emplace(
          std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
          static_cast<std::uint32_t>(members_.size()));
      if (is_new) {
        members_.emplace_back();
        ages_.insert(ages_.end(), mine.begin(), mine.end());
      }
      of_[key] = kind->second;
      members_[kind->second].push_back(static_cast<std::uint32_t>(key));
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::uint32_t of(std::size_t key) const noexcept { return of_[key]; }
  // Ascending.
  [[nodiscard]] std::span<const std::uint32_t> members(std::size_t kind) const noexcept {
    return members_[kind];
  }
  // [candidates]
  [[nodiscard]] std::span<const std::uint32_t> ages(std::size_t kind) const noexcept {
    return {ages_.data() + kind * candidates_, candidates_};
  }

 private:
  std::size_t candidates_ = 0;
  std::vector<std::uint32_t> of_;                    // [keys]
  std::vector<std::vector<std::uint32_t>> members_;  // [kinds][members]
  std::vector<std::uint32_t> ages_;                  // [kinds, candidates]
};

HEADWISE_NAMESPACE_END
