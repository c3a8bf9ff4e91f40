// SPDX-License-Identifier: Apache-2.0
//
// The whole tool as a function. Returns the exit code: 0 done, 1 bad data or a failure, 2 a wrong
// command line. Results go to std::cout, messages to std::cerr.
#pragma once

namespace headwise_tool {

[[nodiscard]] int run_tool(int argc, const char* const* argv) noexcept;

}  // namespace headwise_tool
