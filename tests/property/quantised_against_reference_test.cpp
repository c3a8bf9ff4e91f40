// SPDX-License-Identifier: Apache-2.0
//
// Random scripts over quantised rows (run_scripts.hpp). Rows are compared as bytes: whatever is
// done to them, none is ever quantised again.
#include "property/run_scripts.hpp"

#include "headwise/codec/int4_group.hpp"
#include "headwise/codec/int8_row.hpp"

namespace headwise_tests {
namespace {

TEST(cache_against_reference, int8_keys_int4_values) {
  run_scripts<headwise::int8_row, headwise::int4_group>(300'001);
}
TEST(cache_against_reference, int4) {
  run_scripts<headwise::int4_group, headwise::int4_group>(400'001);
}

}  // namespace
}  // namespace headwise_tests
