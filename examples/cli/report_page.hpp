// SPDX-License-Identifier: Apache-2.0
//
// A blueprint as one HTML page that needs nothing else: the head map, what was measured, bytes by
// layer, attention pictures beside the class that each head got, and all figures as a table.
#pragma once

#include <string>

#include "attention_pictures.hpp"
#include "evaluation.hpp"
#include "expected_bytes.hpp"

namespace headwise_tool {

struct report {
  const headwise::blueprint& plan;
  cache_layout layout;
  const evaluation* measured = nullptr;     // where there is one
  std::vector<attention_picture> pictures;  // [layers * query_heads], or empty
};

// Equal input gives equal bytes.
[[nodiscard]] std::string report_page(const report& what);

}  // namespace headwise_tool
