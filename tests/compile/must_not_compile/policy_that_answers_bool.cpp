// SPDX-License-Identifier: Apache-2.0
// "Keep it?" is not a lifetime: a bool would silently mean one query or none.
// refused: (return-type-requirement|same_as<_?[bB]ool)
#include "headwise/policy/policy_list.hpp"

struct keep_or_not {
#ifdef CORRECTED
  using answer = headwise::token_count;
#else
  using answer = bool;
#endif
  answer lifetime(const headwise::token&) const noexcept {
    return 1;
  }
  headwise::lifetime_set lifetimes() const noexcept {
    return {1};
  }
  friend bool operator==(const keep_or_not&, const keep_or_not&) = default;
};

static_assert(headwise::retention_policy<keep_or_not>);
using chosen = headwise::policy_list<headwise::global, keep_or_not>::variant;
