// SPDX-License-Identifier: Apache-2.0
//
// special_tokens: tokens of given classes, or of an explicit set of ids (which the profiler can
// learn for each head), or both; forever. Any other token is seen by its own query alone.
// O(log ids) a token. A value; copies share the set of ids, which never changes, across threads
// too.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headwise/policy/concepts.hpp"

HEADWISE_NAMESPACE_BEGIN

class special_tokens {
 public:
  static constexpr std::string_view kind = "special_tokens";

  special_tokens() = default;
  // ids: any order; kept sorted and unique. Throws error(out_of_range) on a negative id.
  explicit special_tokens(token_classes classes, std::vector<std::int32_t> ids = {})
      : classes_(classes), ids_(ids.empty() ? nullptr : sorted_set(std::move(ids))) {}

  [[nodiscard]] token_classes classes() const noexcept { return classes_; }
  [[nodiscard]] std::span<const std::int32_t> ids() const noexcept {
    return ids_ ? std::span<const std::int32_t>(*ids_) : std::span<const std::int32_t>();
  }
  [[nodiscard]] bool needs_token_ids() const noexcept { return ids_ != nullptr; }

  // O(log ids).
  [[nodiscard]] token_count lifetime(const token& t) const noexcept {
    return any(t.classes & classes_) ||
                   (ids_ && std::binary_search(ids_->begin(), ids_->end(), t.id))
               ? forever
               : 1;
  }
  [[nodiscard]] lifetime_set lifetimes() const noexcept { return {1, forever}; }

  friend bool operator==(const special_tokens& a, const special_tokens& b) noexcept {
    return a.classes_ == b.classes_ && std::ranges::equal(a.ids(), b.ids());
  }

 private:
  using id_set = std::vector<std::int32_t>;
  [[nodiscard]] static std::shared_ptr<const id_set> sorted_set(id_set ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    if (ids.front() < 0)
      raise(error_code::out_of_range, "special_tokens.ids", std::to_string(ids.front()),
            "ids from 0");
    return std::make_shared<const id_set>(std::move(ids));
  }

  token_classes classes_ = token_classes::none;
  std::shared_ptr<const id_set> ids_;  // shared, immutable: a copy of a policy cannot throw
};

HEADWISE_NAMESPACE_END
