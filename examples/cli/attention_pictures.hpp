// SPDX-License-Identifier: Apache-2.0
//
// Recorded maps as small pictures, one for each query head: queries down, keys across, brightness
// by attention on a logarithmic scale. Attention that a head's policy keeps is blue, what it gives
// up is orange: whether a class is right can be seen.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

struct attention_picture {
  std::string png;    // bytes of the file
  double kept = 1.0;  // share of the attention that the policy keeps, on this prompt
};

// maps: files and folders of recordings; their first prompt is drawn, [layers * query_heads].
// Throws headwise::error where they are not of the blueprint's model or not probabilities.
[[nodiscard]] std::vector<attention_picture> draw_attention(
    std::span<const std::filesystem::path> maps, const headwise::blueprint& plan);

}  // namespace headwise_tool
