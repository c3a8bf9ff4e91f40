// SPDX-License-Identifier: Apache-2.0
//
// Random scripts over rows of floats and halves (run_scripts.hpp).
#include "property/run_scripts.hpp"

#include "headwise/codec/bf16.hpp"
#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"

namespace headwise_tests {
namespace {

TEST(cache_against_reference, f32) {
  run_scripts<headwise::f32, headwise::f32>(1);
}
TEST(cache_against_reference, f16) {
  run_scripts<headwise::f16, headwise::f16>(100'001);
}
TEST(cache_against_reference, bf16_keys_f32_values) {
  run_scripts<headwise::bf16, headwise::f32>(200'001);
}

}  // namespace
}  // namespace headwise_tests
