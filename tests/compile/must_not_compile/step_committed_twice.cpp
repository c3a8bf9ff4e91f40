// SPDX-License-Identifier: Apache-2.0
// commit ends a step, so it takes one that is given up.
// refused: (discards qualifiers|as 'this' argument|is an lvalue|function has rvalue ref-qualifier)
#include "headwise/manager/cache_manager.hpp"

using cache = headwise::cache_manager<>;

void finish(cache::step_type step) {
#ifdef CORRECTED
  std::move(step).commit();
#else
  step.commit();
#endif
}
