// SPDX-License-Identifier: Apache-2.0
//
// A command line that cannot be: exit code 2, where bad data is 1.
#pragma once

#include <stdexcept>

namespace headwise_tool {

class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace headwise_tool
