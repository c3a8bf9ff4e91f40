// SPDX-License-Identifier: Apache-2.0
// The decode path asks for lifetimes, and nothing on it may throw.
// refused: lifetime.*(is not 'noexcept'|may throw)
#include "headwise/policy/policy_list.hpp"

#ifdef CORRECTED
#define MAY_THROW noexcept
#else
#define MAY_THROW
#endif

struct throwing {
  headwise::token_count lifetime(const headwise::token&) const MAY_THROW { return 1; }
  headwise::lifetime_set lifetimes() const noexcept { return {1}; }
  friend bool operator==(const throwing&, const throwing&) = default;
};

static_assert(headwise::retention_policy<throwing>);
using chosen = headwise::policy_list<headwise::global, throwing>::variant;
