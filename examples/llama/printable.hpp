// SPDX-License-Identifier: Apache-2.0
//
// A name from a file, made fit for an error message: quoted, at most 80 bytes, control and
// non-ASCII bytes escaped.

#pragma once

#include <string>
#include <string_view>

namespace llama_example {

[[nodiscard]] std::string printable(std::string_view text);

}  // namespace llama_example
