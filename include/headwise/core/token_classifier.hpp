// SPDX-License-Identifier: Apache-2.0
//
// From token ids to tokens: the first sink_count positions are sinks, and every id has the classes
// that the vocabulary gives it. One lookup a token; immutable after construction, so any number of
// threads may use one.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headwise/core/types.hpp"

HEADWISE_NAMESPACE_BEGIN

class token_classifier {
 public:
  // by_id: [vocab_size], the classes of each id; empty where no vocabulary is known, and then every
  // id is accepted and only the sinks are classed.
  explicit token_classifier(token_count sink_count, std::vector<token_classes> by_id = {})
      : sink_count_(sink_count), by_id_(std::move(by_id)) {}

  // ids: [n], a vector, array or span of any integers, so that none wraps before it is checked: the
  // tokens at positions first .. first + n - 1. Throws error(out_of_range) naming place where
  // first + n is more than max_length, and the index and value of an id outside the vocabulary.
  template <class Ids>
  requires std::integral<typename Ids::value_type>
  [[nodiscard]] std::vector<token> tokens(const Ids& ids, position first = 0,
                                          const std::string& place = "token ids") const {
    if (first > max_length || ids.size() > max_length - first)
      raise(error_code::out_of_range, place,
            std::to_string(ids.size()) + " ids from position " + std::to_string(first),
            "a sequence of at most " + std::to_string(max_length) + " tokens");
    std::vector<token> result;
    result.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!std::in_range<std::int32_t>(ids[i]) || ids[i] < 0 || !known(ids[i]))
        raise(error_code::out_of_range, place + "[" + std::to_string(i) + "]",
              std::to_string(ids[i]), "an id from 0 to " + std::to_string(last_id()));
      result.push_back(
          classify(static_cast<std::int32_t>(ids[i]), static_cast<position>(first + i)));
    }
    return result;
  }

  // id: from 0 to vocab_size - 1 (checked at level 1).
  [[nodiscard]] token classify(std::int32_t id, position pos) const noexcept {
    HEADWISE_EXPECTS(id >= 0 && known(id), "a token id lies outside of the vocabulary");
    token result{pos, id, by_id_.empty() ? token_classes::none : by_id_[to_index(id)]};
    if (pos < sink_count_) result.classes |= token_classes::sink;
    return result;
  }

  [[nodiscard]] token_count sink_count() const noexcept { return sink_count_; }

 private:
  template <std::integral Id>
  [[nodiscard]] static std::size_t to_index(Id id) noexcept {
    return static_cast<std::size_t>(id);
  }
  template <std::integral Id>
  [[nodiscard]] bool known(Id id) const noexcept {
    return by_id_.empty() || to_index(id) < by_id_.size();
  }
  [[nodiscard]] std::size_t last_id() const noexcept {
    return by_id_.empty() ? std::size_t{std::numeric_limits<std::int32_t>::max()}
                          : by_id_.size() - 1;
  }

  token_count sink_count_;
  std::vector<token_classes> by_id_;
};

HEADWISE_NAMESPACE_END
