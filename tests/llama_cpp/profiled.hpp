// SPDX-License-Identifier: Apache-2.0
//
// A blueprint made by the whole way: maps recorded by the adapter, profiled, a policy for each
// head.
#pragma once

#include <set>
#include <string>

#include "llama_cpp/recorder.hpp"
#include "models.hpp"

#include "headwise/io/map_archive.hpp"
#include "headwise/profile/profiler.hpp"

namespace headwise_tests {

inline headwise::blueprint profiled(llama_model& model, const std::filesystem::path& maps,
                                    double target) {
  hlc::recorder recorder(model, by_one_thread<hlc::recorder_options>(256, 100));
  recorder.record(maps, some_prompts(model, 2, 256));
  const std::filesystem::path paths[] = {maps};
  headwise::map_archive archive(paths);
  headwise::profile_options how;
  how.classify.recovery_target = target;
  return headwise::profile(archive, archive.rules(), archive.fingerprint(), how);
}

inline std::size_t distinct_policies(const headwise::blueprint& plan) {
  std::set<std::string> names;
  for (const headwise::head_plan& head : plan.heads) names.insert(head.name);
  return names.size();
}

}  // namespace headwise_tests
