// SPDX-License-Identifier: Apache-2.0
//
// A fuzz target without libFuzzer, for any compiler: runs the files that it is given.
#include "fuzz/target.hpp"

#include "support/files.hpp"

int main(int count, char** names) {
  headwise_tests::require(count > 1, "usage: headwise_fuzz_<target> <file>...");
  for (int i = 1; i < count; ++i) {
    const std::string bytes = headwise_tests::read_file(names[i]);
    // Without spare room behind the bytes, so that a sanitizer sees a read past them.
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    std::printf("%s: %zu bytes\n", names[i], exact.size());
  }
}
