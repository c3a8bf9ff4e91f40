// SPDX-License-Identifier: Apache-2.0

#include "llama_cpp_engine.hpp"

#include "headwise/core/error.hpp"

namespace headwise_tool {

std::unique_ptr<engine> load_llama_cpp_engine(const std::filesystem::path&, std::uint32_t) {
  headwise::raise(headwise::error_code::unsupported, "--engine llama.cpp",
                  "a headwise tool that was built without llama.cpp",
                  "one built with it: configure with -DHEADWISE_LLAMA_CPP=PREFIX, the prefix in "
                  "which llama.cpp was installed with its headers");
}

}  // namespace headwise_tool
