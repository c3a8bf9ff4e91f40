// SPDX-License-Identifier: Apache-2.0
//
// The input as a blueprint. One that is read is written, read back the same, and opens a cache.
#include <sstream>

#include "fuzz/target.hpp"

#include "headwise/codec/f16.hpp"
#include "headwise/io/blueprint_json.hpp"
#include "headwise/manager/cache_manager.hpp"

namespace headwise_tests {
namespace {

headwise::blueprint read(const std::string& text) {
  std::istringstream in(text);
  return headwise::read_blueprint(in);
}

void open_cache(const headwise::blueprint& plan) {
  headwise::cache_manager<> cache(plan, {});
  const auto text = cache.open();
  require(text.length() == 0, "a new sequence is empty");
}

}  // namespace
}  // namespace headwise_tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headwise_tests;
  headwise::blueprint plan;
  if (!accepts([&] { plan = read(std::string(data, data + size)); })) return 0;
  std::ostringstream out;
  headwise::write_blueprint(out, plan);
  require(read(out.str()) == plan, "read(write(x)) == x");
  accepts([&] { open_cache(plan); });
  return 0;
}
