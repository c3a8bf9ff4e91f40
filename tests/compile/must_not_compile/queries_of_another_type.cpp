// SPDX-License-Identifier: Apache-2.0
// Rows may be of any codec; queries are floats, and halves are not taken for them.
// refused: no matching function for call to .attend
#include <cstdint>

#include "headwise/attend/attend.hpp"
#include "headwise/codec/int8_row.hpp"

#ifdef CORRECTED
using element = float;
#else
using element = std::uint16_t;
#endif

void ask(const headwise::head_view<headwise::int8_row, headwise::f16>& view,
         headwise::rows<const element> queries, headwise::rows<float> out,
         headwise::attend_scratch& scratch) {
  headwise::attend(view, 0, queries, 1.0F, out, {}, scratch);
}
