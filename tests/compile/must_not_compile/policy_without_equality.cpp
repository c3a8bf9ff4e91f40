// SPDX-License-Identifier: Apache-2.0
// Policies are values: a cache compares the plans of a fork and of a file.
// refused: (regular|equality_comparable)
#include "headwise/policy/policy_list.hpp"

struct incomparable {
  headwise::token_count lifetime(const headwise::token&) const noexcept { return 1; }
  headwise::lifetime_set lifetimes() const noexcept { return {1}; }
#ifdef CORRECTED
  friend bool operator==(const incomparable&, const incomparable&) = default;
#endif
};

static_assert(headwise::retention_policy<incomparable>);
using chosen = headwise::policy_list<headwise::global, incomparable>::variant;
