// SPDX-License-Identifier: Apache-2.0

#include "command_line.hpp"

int main(int argc, char** argv) {
  return headwise_tool::run_tool(argc, argv);
}
