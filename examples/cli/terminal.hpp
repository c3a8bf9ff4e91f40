// SPDX-License-Identifier: Apache-2.0
//
// What a terminal can do, and text in its colours.
#pragma once

#include <string>
#include <string_view>

namespace headwise_tool {

enum class stream { output, error };

[[nodiscard]] bool is_terminal(stream s) noexcept;
// A terminal that wants colours: NO_COLOR (https://no-color.org) is not set.
[[nodiscard]] bool wants_colour() noexcept;

// Text on a background, both "#rrggbb", in 24-bit colours.
[[nodiscard]] std::string coloured(std::string_view text, std::string_view ink,
                                   std::string_view background);

}  // namespace headwise_tool
