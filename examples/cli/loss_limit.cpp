// SPDX-License-Identifier: Apache-2.0

#include "loss_limit.hpp"

#include <iostream>
#include <utility>

#include "numbers.hpp"
#include "progress.hpp"

#include "headwise/core/error.hpp"

namespace headwise_tool {

std::optional<unsigned> fewest_percent(unsigned lowest,
                                       const std::function<bool(unsigned percent)>& is_within) {
  unsigned low = lowest, high = 100;
  std::optional<unsigned> within;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (is_within(middle))
      within = high = middle;
    else
      low = middle + 1;
  }
  if (!within && is_within(high)) within = high;
  return within;
}

loss_limit::loss_limit(const evaluated_text& what, cache_type type, double limit)
    : model_(load_engine(what.engine, what.model)),
      windows_(cut_windows(*model_, what)),
      type_(type),
      limit_(limit) {}

std::size_t loss_limit::tokens() const noexcept {
  return windows_.size() * windows_.front().size();
}

plan_within loss_limit::smallest(
    unsigned lowest_percent,
    const std::function<headwise::blueprint(double share)>& plan_at) const {
  plan_within result;
  const double full = perplexity(
      "full cache",
      headwise::uniform_blueprint(model().shape, headwise::make_spec(headwise::global{})));
  std::cerr << "full cache: perplexity " << fixed(full, 3) << '\n';
  result.full_perplexity = full;
  std::string last;
  const auto is_within = [&](unsigned percents) {
    const std::string label = std::to_string(percents) + " %";
    headwise::blueprint plan = plan_at(percents / 100.0);
    const double found = perplexity(label, plan);
    last = change(found, full, 2) + " with " + label + " of the rows";
    std::cerr << label << ": " << change(found, full, 2) << '\n';
    if (!(found <= full * (1.0 + limit_))) return false;
    result.plan = std::move(plan);  // the last one that is within is the smallest of them
    result.perplexity = found;
    return true;
  };
  if (!fewest_percent(lowest_percent, is_within))
    headwise::raise(headwise::error_code::out_of_range, "--max-loss", last,
                    "at most +" + percent(limit_, 2) +
                        ": allow more, or give it more windows or heavy hitters to choose from");
  return result;
}

double loss_limit::perplexity(const std::string& label, const headwise::blueprint& plan) const {
  progress bar(label, tokens(), "tokens");
  return perplexity_of(*model_, windows_, plan, type_, [&](std::uint64_t fed) { bar.reach(fed); });
}

}  // namespace headwise_tool
