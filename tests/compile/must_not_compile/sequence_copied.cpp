// SPDX-License-Identifier: Apache-2.0
// A copy of a cache must not happen in passing; fork() says so.
// refused: (use of deleted function|implicitly-deleted copy constructor|deleted copy constructor)
#include "headwise/manager/cache_manager.hpp"

using sequence = headwise::cache_manager<>::sequence_type;

sequence second(sequence& first) {
#ifdef CORRECTED
  return first.fork();
#else
  return first;
#endif
}
