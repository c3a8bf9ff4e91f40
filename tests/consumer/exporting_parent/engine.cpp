// SPDX-License-Identifier: Apache-2.0
#include <headwise/headwise.hpp>

headwise::token_count keeps_forever() {
  return headwise::forever;
}
