// SPDX-License-Identifier: Apache-2.0
//
// Recorded maps as small pictures, one for each query head: queries down, keys across, brightness
// by attention on a logarithmic scale. Attention that a head's policy keeps is blue, what it gives
// up is orange: whether a class is right can be seen.
#pragma once

#include <string>
#include <vector>

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/io/map_archive.hpp"

namespace headwise_tool {

struct attention_picture {
  std::string png;    // bytes of the file
  double kept = 1.0;  // share of the attention that the policy keeps, on this prompt
};

// The first prompt of the archive, [layers * query_heads]. Throws headwise::error where the maps
// are not of the blueprint's model or not probabilities.
[[nodiscard]] std::vector<attention_picture> draw_attention(headwise::map_archive& maps,
                                                            const headwise::blueprint& plan);

}  // namespace headwise_tool
