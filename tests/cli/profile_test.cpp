// SPDX-License-Identifier: Apache-2.0
//
// headwise profile beyond a target: within a budget, within a loss, and with heavy hitters.

#include "made_pipeline.hpp"

namespace headwise_tests {
namespace {

class Profile : public Pipeline {
 protected:
  // Of the folder's maps, to b.json.
  [[nodiscard]] tool_result profile_with(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"profile", path("maps"), "--out", path("b.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_headwise(arguments);
  }
  [[nodiscard]] headwise::blueprint written() const {
    return headwise::load_blueprint(path("b.json"));
  }
};

TEST_F(Profile, TriesCloserWindowsForABudgetThanForATarget) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);  // 48 tokens
  const auto windows = [&](const std::vector<std::string>& more) {
    EXPECT_EQ(profile_with(more).code, 0);
    const headwise::blueprint plan = written();
    std::string names;
    for (const headwise::candidate_recovery& c : plan.heads.front().candidates)
      if (c.name.rfind("special+punctuation+local", 0) == 0) names += c.name.substr(25);
    return names;
  };
  EXPECT_EQ(windows({"--target", "0.9"}), "(16)(32)");
  EXPECT_EQ(windows({"--budget", "60%"}), "(8)(16)(24)(32)(40)");
  EXPECT_EQ(windows({"--budget", "60%", "--length", "90"}), "(8)(16)(24)(32)(40)(48)(56)(64)(80)");
  EXPECT_EQ(windows({"--budget", "60%", "--windows", "5,7"}), "(5)(7)");
}

}  // namespace
}  // namespace headwise_tests
