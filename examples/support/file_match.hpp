// SPDX-License-Identifier: Apache-2.0
//
// Whether a blueprint is for a model, in the words of who named their files.
#pragma once

#include <string>

#include "headwise/blueprint/blueprint.hpp"

// Throws what headwise::require_match throws, naming both files as well.
inline void require_match_of_files(const headwise::blueprint& plan, const std::string& from,
                                   const headwise::model_shape& shape,
                                   const headwise::model_fingerprint& fingerprint,
                                   const std::string& model_file) {
  try {
    headwise::require_match(plan, shape, fingerprint);
  } catch (const headwise::error& e) {
    headwise::raise(e.code(), from + " is not for " + model_file + ": " + e.place(), e.got(),
                    e.expected() + "; profile this model, or name the one it was made for");
  }
}
