// SPDX-License-Identifier: Apache-2.0
// A policy must give a lifetime.
// refused: policy\.lifetime\(t\).*invalid
#include "headwise/policy/policy_list.hpp"

struct silent {
#ifdef CORRECTED
  headwise::token_count lifetime(const headwise::token&) const noexcept {
    return 1;
  }
#endif
  headwise::lifetime_set lifetimes() const noexcept {
    return {1};
  }
  friend bool operator==(const silent&, const silent&) = default;
};

static_assert(headwise::retention_policy<silent>);
using chosen = headwise::policy_list<headwise::global, silent>::variant;
