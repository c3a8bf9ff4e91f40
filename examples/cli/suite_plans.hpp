// SPDX-License-Identifier: Apache-2.0
//
// The plans of a suite at one length: from maps, each set of which is read once, or by a rule.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "engine.hpp"
#include "suite.hpp"

#include "headwise/blueprint/blueprint.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tool {

class suite_plans {
 public:
  // Reads the maps where a plan needs them. Both must outlive it. Throws headwise::error.
  suite_plans(const model_facts& model, const suite& what, headwise::token_count length);

  // nullopt where the smallest of the family is expected to hold more than the share.
  [[nodiscard]] std::optional<headwise::blueprint> make(const plan_family& family,
                                                        double level) const;

 private:
  [[nodiscard]] headwise::blueprint profiled(const plan_family& family, double level) const;
  [[nodiscard]] std::optional<headwise::blueprint> by_rule(const plan_family& family,
                                                           double share) const;
  [[nodiscard]] std::optional<headwise::blueprint> two_classes(const plan_family& family,
                                                               double share) const;

  const model_facts& model_;
  const suite& suite_;
  headwise::token_count length_;
  headwise::blueprint like_;  // shape, model and token rules of every plan
  std::map<std::vector<std::filesystem::path>, headwise::profiler<>> profiles_;  // by their maps
};

}  // namespace headwise_tool
