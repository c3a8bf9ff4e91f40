// SPDX-License-Identifier: Apache-2.0
//
// The head map: layers across, KV heads down, each head coloured and labelled by its class, with
// what the whole keeps below. A stand-alone SVG that looks right on light and dark pages.
#pragma once

#include <string>

#include "evaluation.hpp"
#include "expected_bytes.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// measured: nullptr where nothing was; then the expected bytes are drawn. Equal input, equal bytes.
[[nodiscard]] std::string head_map_svg(const headwise::blueprint& plan, const cache_layout& layout,
                                       const evaluation* measured);

// What a tooltip says of a head: class, recovery, rows, bytes, and the next cheaper candidate.
[[nodiscard]] std::string describe_head(const headwise::blueprint& plan, headwise::head_id head,
                                        const cache_layout& layout);

// Of all candidates that cost less than the head's policy, the one that came closest to the
// target; nullptr where none is cheaper.
[[nodiscard]] const headwise::candidate_recovery* closest_cheaper(
    const headwise::head_plan& head) noexcept;

}  // namespace headwise_tool
