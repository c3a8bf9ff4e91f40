// SPDX-License-Identifier: Apache-2.0
//
// The script of tests/property, its choices made by the input: every operation against the
// reference, what is seen after each checked row by row.
#include "fuzz/target.hpp"
#include "property/script.hpp"

#include "headwise/codec/f16.hpp"
#include "headwise/codec/f32.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headwise_tests;
  script_counts counts;
  script<headwise::f16, headwise::f32>(random_source(std::span(data, size)), counts).run(200);
  require(!testing::Test::HasFailure(), "the cache does what the reference does");
  return 0;
}
