// SPDX-License-Identifier: Apache-2.0
//
// A policy that headwise does not know, as a stranger would write it: by position, with three
// lifetimes. The tests use it wherever they use a built-in one.
#pragma once

#include <string>
#include <string_view>

#include "headwise/policy/spec.hpp"

namespace stranger {

// Every n-th token forever, the one half-way between for `far` queries, the others for `near`.
class every_nth {
 public:
  static constexpr std::string_view kind = "every_nth";

  every_nth() = default;
  every_nth(headwise::token_count n, headwise::token_count near, headwise::token_count far) noexcept
      : n_(n), near_(near), far_(far) {}

  [[nodiscard]] headwise::token_count lifetime(const headwise::token& t) const noexcept {
    const headwise::position phase = t.pos % n_;
    if (phase == 0) return headwise::forever;
    return phase == n_ / 2 ? far_ : near_;
  }
  [[nodiscard]] headwise::lifetime_set lifetimes() const noexcept {
    return {near_, far_, headwise::forever};
  }

  [[nodiscard]] static every_nth from_spec(const headwise::policy_spec& spec,
                                           const std::string& place) {
    const auto number = [&](const char* name) {
      return static_cast<headwise::token_count>(
          headwise::spec_param(spec, name, 1, headwise::forever, place));
    };
    return {number("n"), number("near"), number("far")};
  }
  [[nodiscard]] headwise::policy_spec to_spec() const {
    return {std::string(kind), {{"n", n_}, {"near", near_}, {"far", far_}}, {}, {}};
  }
  friend bool operator==(const every_nth&, const every_nth&) = default;

 private:
  headwise::token_count n_ = 1;
  headwise::token_count near_ = 1;
  headwise::token_count far_ = 1;
};

}  // namespace stranger

namespace headwise_tests {

using test_policies = headwise::policy_list<
    headwise::global, headwise::local_window, headwise::special_tokens, headwise::heavy_hitters,
    headwise::union_of<headwise::special_tokens, headwise::local_window>, stranger::every_nth,
    headwise::union_of<stranger::every_nth, headwise::local_window>,
    headwise::union_of<headwise::local_window, headwise::heavy_hitters>,
    headwise::union_of<headwise::special_tokens, headwise::local_window, headwise::heavy_hitters>,
    headwise::union_of<stranger::every_nth, headwise::heavy_hitters>>;
using test_policy = test_policies::variant;

}  // namespace headwise_tests
