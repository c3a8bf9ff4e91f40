// SPDX-License-Identifier: Apache-2.0
//
// Stock llama.cpp for the commands, with the rows taken over by headwise. Where CMake found no
// llama.cpp, without_llama_cpp.cpp is built in its place.
#pragma once

#include "engine.hpp"

namespace headwise_tool {

// threads: 0 is one for each core. Throws headwise::error where llama.cpp cannot read the file, and
// always where the tool was built without it.
[[nodiscard]] std::unique_ptr<engine> load_llama_cpp_engine(const std::filesystem::path& model,
                                                            std::uint32_t threads);

}  // namespace headwise_tool
