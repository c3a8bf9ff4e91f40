// SPDX-License-Identifier: Apache-2.0
// A fraction of the length needs a cap; as a count of rows 0.3 would silently be none.
// refused: deleted
#include "headwise/policy/heavy_hitters.hpp"

#ifdef CORRECTED
headwise::heavy_hitters frequent(0.3, 512);
#else
headwise::heavy_hitters frequent(0.3);
#endif
