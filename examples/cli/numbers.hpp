// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read them, the same under every locale.
#pragma once

#include <cstdint>
#include <string>

namespace headwise_tool {

[[nodiscard]] std::string with_commas(std::uint64_t value);  // 1,073,741,824
// 1,024 tokens; 1 token. many: where it is not `one` with an s.
[[nodiscard]] std::string counted(std::uint64_t value, const std::string& one,
                                  const std::string& many = {});
[[nodiscard]] std::string fixed(double value, int digits);        // 12.35
[[nodiscard]] std::string percent(double share, int digits = 1);  // 0.541 -> 54.1 %
[[nodiscard]] std::string change(double value, double reference, int digits = 1);  // +1.3 %
[[nodiscard]] std::string short_bytes(double bytes);  // 512 KiB, 1.21 GiB

// a * b; throws headwise::error(out_of_range) naming `what` where that needs more than 64 bits.
[[nodiscard]] std::uint64_t checked_product(std::uint64_t a, std::uint64_t b, const char* what);
[[nodiscard]] std::uint64_t checked_sum(std::uint64_t a, std::uint64_t b, const char* what);

}  // namespace headwise_tool
