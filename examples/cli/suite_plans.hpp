// SPDX-License-Identifier: Apache-2.0
//
// The plans of a suite at one length: from maps or by a rule. A set of maps is read once for all
// profiled plans, and once more where heads are ordered for two classes: what that measures is no
// candidate of the others.
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
  // Reads the maps where a plan needs them. Both must outlive it. Throws headwise::error, also on
  // maps of another model, and on sets of maps whose token rules differ.
  suite_plans(const model_facts& model, const suite& what, headwise::token_count length);

  // nullopt where the smallest of the family is expected to hold more than the share.
  [[nodiscard]] std::optional<headwise::blueprint> make(const plan_family& family,
                                                        double level) const;

 private:
  void read_maps(const plan_family& family);
  [[nodiscard]] headwise::blueprint profiled(const plan_family& family, double level) const;
  [[nodiscard]] std::optional<headwise::blueprint> within_budget(const plan_family& family,
                                                                 double share) const;
  [[nodiscard]] std::optional<headwise::blueprint> by_rule(const plan_family& family,
                                                           double share) const;
  [[nodiscard]] std::optional<headwise::blueprint> two_classes(const plan_family& family,
                                                               double share) const;

  const model_facts& model_;
  const suite& suite_;
  headwise::token_count length_;
  headwise::blueprint like_;  // shape, model and token rules of every plan
  using by_maps = std::map<std::vector<std::filesystem::path>, headwise::profiler<>>;
  by_maps profiles_;  // of what plans choose from
  by_maps needs_;     // of what heads lose that stream
};

}  // namespace headwise_tool
