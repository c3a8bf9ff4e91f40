// SPDX-License-Identifier: Apache-2.0
//
// headwise profile --max-loss: the fewest rows with which a model predicts a text almost as well as
// with all of them.
//
// The loss of a plan is by how much its perplexity is above that of a full cache with rows of the
// same type, as a share of the latter. It mostly falls where rows are added, but not with every
// hundredth of them. So what comes out was itself measured to be within the limit, and the next
// smaller share not to be; a share that is smaller still and was not measured may be by chance.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache_type.hpp"
#include "engine.hpp"
#include "evaluation.hpp"

#include "headwise/blueprint/blueprint.hpp"

namespace headwise_tool {

// The smallest of the numbers from `lowest` to 100 that is within, as bisection finds it: one that
// was asked about. Asks at most eight times, about no number twice. nullopt: not even 100 is.
[[nodiscard]] std::optional<unsigned> fewest_percent(
    unsigned lowest, const std::function<bool(unsigned percent)>& is_within);

struct plan_within {
  headwise::blueprint plan;
  double perplexity = 0.0, full_perplexity = 0.0;
};

class loss_limit {
 public:
  // Loads the model and reads the text. limit: the most that a plan may lose. Throws
  // headwise::error.
  loss_limit(const evaluated_text& what, cache_type type, double limit);

  [[nodiscard]] const model_facts& model() const noexcept { return model_->facts(); }
  [[nodiscard]] std::size_t tokens() const noexcept;

  // plan_at: of a share of the rows. Says on standard error what each plan loses. Throws
  // error(out_of_range) where all rows lose too much.
  [[nodiscard]] plan_within smallest(
      unsigned lowest_percent,
      const std::function<headwise::blueprint(double share)>& plan_at) const;

 private:
  [[nodiscard]] double perplexity(const std::string& label, const headwise::blueprint& plan) const;

  std::unique_ptr<engine> model_;
  std::vector<token_ids> windows_;
  cache_type type_;
  double limit_;
};

}  // namespace headwise_tool
