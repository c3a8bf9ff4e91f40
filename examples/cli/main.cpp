// SPDX-License-Identifier: Apache-2.0

#include "command_line.hpp"

#include "support/standard_output.hpp"

int main(int argc, char** argv) {
  occupy_standard_streams();
  return headwise_tool::run_tool(argc, argv);
}
