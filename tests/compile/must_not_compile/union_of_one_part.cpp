// SPDX-License-Identifier: Apache-2.0
// A union of one part is that part; the type says so instead of costing something.
// refused: sizeof\.\.\. ?\(Ps\) ?>= 2
#include "headwise/policy/policy_list.hpp"

#ifdef CORRECTED
headwise::union_of<headwise::local_window, headwise::global> both;
#else
headwise::union_of<headwise::local_window> alone;
#endif
