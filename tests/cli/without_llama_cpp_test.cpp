// SPDX-License-Identifier: Apache-2.0
//
// A tool that was built without llama.cpp says so, and how to build one with it.
#include <gtest/gtest.h>

#include "tool_run.hpp"

namespace headwise_tests {
namespace {

TEST(WithoutLlamaCpp, TheEngineIsRefusedWithWhatToDo) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"generate", "--prompt", "a"},
        {"eval", "--text", "t.txt", "--blueprint", "b.json"},
        {"record", "--text", "t.txt", "--out", "maps"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--model", "m.gguf", "--engine", "llama.cpp"});
    const tool_result result = run_headwise(arguments);
    EXPECT_EQ(result.code, 1);
    for (const char* part : {"--engine llama.cpp", "built without llama.cpp", "HEADWISE_LLAMA_CPP"})
      EXPECT_TRUE(contains(result.err, part)) << result.err;
  }
}

}  // namespace
}  // namespace headwise_tests
