// SPDX-License-Identifier: Apache-2.0
//
// Recorded maps, measured by several threads: each reads the files through an archive of its own
// and measures its share of the heads.
#pragma once

#include "headwise/io/map_archive.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tool {

// threads: at least 1; the result and, where a map is bad, the error are the same for any number.
[[nodiscard]] headwise::profiler<> measure(const headwise::map_archive& archive,
                                           const headwise::measure_options& options,
                                           std::uint32_t threads);

}  // namespace headwise_tool
