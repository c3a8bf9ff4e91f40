// SPDX-License-Identifier: Apache-2.0
//
// Printed by golden_blocks.py, not edited by hand. offsets: of the 16-bit scales in a block;
// weighted_sum: of the decoded values, as the script says.
#pragma once

#include <array>
#include <vector>

#include "llama/dequantize.hpp"

namespace headwise_tests {

struct golden_block {
  llama_example::tensor_type type;
  std::vector<std::size_t> offsets;
  double weighted_sum;
};

inline const std::array<golden_block, 8> golden_blocks{{
    {llama_example::tensor_type::q4_0, {0}, -518.8749694824219},
    {llama_example::tensor_type::q4_1, {0, 2}, 7587.827331542969},
    {llama_example::tensor_type::q5_0, {0}, 2963.552032470703},
    {llama_example::tensor_type::q5_1, {0, 2}, 13532.63607788086},
    {llama_example::tensor_type::q8_0, {0}, 12494.97982788086},
    {llama_example::tensor_type::q4_k, {0, 2}, 1324858.8665466309},
    {llama_example::tensor_type::q5_k, {0, 2}, 1090069.320678711},
    {llama_example::tensor_type::q6_k, {208}, 2081335.7936096191},
}};

}  // namespace headwise_tests
