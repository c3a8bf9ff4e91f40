// SPDX-License-Identifier: Apache-2.0
//
// headwise profile beyond a target: within a budget, within a loss, and with heavy hitters.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "loss_limit.hpp"
#include "made_pipeline.hpp"
#include "numbers.hpp"

#include "support/made_maps.hpp"
#include "support/random.hpp"

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

TEST(fewest_percent, is_the_threshold_where_there_is_one) {
  for (unsigned lowest = 1; lowest <= 100; ++lowest)
    for (unsigned threshold = 1; threshold <= 101; ++threshold) {
      std::vector<unsigned> asked;
      const auto found = headwise_tool::fewest_percent(lowest, [&](unsigned percent) {
        asked.push_back(percent);
        return percent >= threshold;
      });
      const auto expected =
          threshold > 100 ? std::nullopt : std::optional(std::max(lowest, threshold));
      ASSERT_EQ(found, expected) << lowest;
      ASSERT_LE(asked.size(), 8U) << lowest << " " << threshold;
      ASSERT_EQ(std::set<unsigned>(asked.begin(), asked.end()).size(), asked.size());
      ASSERT_GE(*std::min_element(asked.begin(), asked.end()), lowest);
    }
}

TEST(fewest_percent, was_within_when_asked_and_the_one_below_was_not) {
  std::size_t found_some = 0;
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    random_source random(seed);
    const unsigned lowest = random.between(1, 100);
    std::map<unsigned, bool> asked;
    const auto found = headwise_tool::fewest_percent(
        lowest, [&](unsigned percent) { return asked[percent] = random.one_in(3); });
    if (!found) {
      ASSERT_FALSE(asked.at(100)) << seed;
      for (const auto& [percent, within] : asked) ASSERT_FALSE(within) << seed;
      continue;
    }
    ++found_some;
    ASSERT_TRUE(asked.at(*found)) << seed;
    if (*found > lowest) {
      ASSERT_FALSE(asked.at(*found - 1)) << seed;
    }
  }
  EXPECT_GT(found_some, 300U);
}

class MaxLoss : public Profile {
 protected:
  MaxLoss() { EXPECT_EQ(record("text.txt", "maps").code, 0); }  // 48 tokens
  [[nodiscard]] tool_result with_max_loss(const std::string& limit,
                                          const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{
        "--max-loss",     limit,          "--model", path("model.gguf"), "--text",
        path("text.txt"), "--windows-of", "100",     "--tokens",         "300",
        "--type",         "f32"};
    all.insert(all.end(), more.begin(), more.end());
    return profile_with(all);
  }
  struct evaluated {
    double perplexity = 0.0, loss = 0.0;
  };
  // b.json, as headwise eval finds it on the same windows.
  [[nodiscard]] evaluated evaluate_written() const {
    EXPECT_EQ(eval("model.gguf", "text.txt").code, 0);
    const json summary = json::parse(read_file(path("summary.json")));
    const double found = summary["perplexity_blueprint"];
    return {found, found / summary["perplexity_full"].get<double>() - 1.0};
  }
};

TEST_F(MaxLoss, WritesWhatEvalFindsToBeWithinAndNotWithOnePercentLess) {
  std::set<double> budgets;
  for (const char* const limit : {"0%", "1%", "2.5%", "1000%"}) {
    const tool_result profiled = with_max_loss(limit);
    ASSERT_EQ(profiled.code, 0) << profiled.err;
    const headwise::blueprint plan = written();
    ASSERT_TRUE(plan.origin.budget);
    budgets.insert(*plan.origin.budget);
    EXPECT_EQ(plan.origin.recovery_target, 0.0);
    EXPECT_EQ(plan.origin.sources.size(), 4U);  // three maps and the text
    EXPECT_EQ(plan.origin.sources.back().name, "text.txt");
    const double most = std::stod(limit) / 100.0;
    const evaluated found = evaluate_written();
    EXPECT_LE(found.loss, most + 1e-12) << limit;
    const long share = std::lround(100.0 * *plan.origin.budget);
    EXPECT_EQ(static_cast<double>(share) / 100.0, plan.origin.budget);
    const std::string loss = (found.loss < 0 ? "" : "+") + headwise_tool::percent(found.loss, 2);
    EXPECT_TRUE(contains(profiled.err, "\n" + std::to_string(share) + " %: " + loss + "\n"))
        << loss << profiled.err;
    const std::string perplexity = "perplexity " + headwise_tool::fixed(found.perplexity, 3);
    EXPECT_TRUE(contains(profiled.out, perplexity + ", " + loss + " against the full cache"))
        << loss << profiled.out;
    EXPECT_TRUE(contains(profiled.out, "300 tokens of text.txt")) << profiled.out;
    if (const std::string less = std::to_string(share - 1) + "%"; share > 11) {
      ASSERT_EQ(profile_with({"--budget", less}).code, 0);
      EXPECT_GT(evaluate_written().loss, most) << limit;
    }
    // The same plan as by that budget.
    ASSERT_EQ(profile_with({"--budget", std::to_string(share) + "%"}).code, 0);
    headwise::blueprint by_budget = written();
    by_budget.origin.sources = plan.origin.sources;
    EXPECT_EQ(by_budget, plan) << limit;
  }
  EXPECT_GE(budgets.size(), 3U);
  // Four sinks and the query's own token: of 48 rows, and of so many that the least tried is more.
  EXPECT_EQ(*budgets.begin(), 0.11);
  ASSERT_EQ(with_max_loss("1000%", {"--length", "1000"}).code, 0);
  EXPECT_EQ(written().origin.budget, 0.05);
}

// To maps of 16 tokens a window of 32 is as good as every token, and no budget buys more.
TEST_F(MaxLoss, WritesNothingWhereAllThatThereIsLosesMore) {
  fs::remove_all(path("maps"));
  ASSERT_EQ(record("text.txt", "maps", "16").code, 0);
  const std::vector<std::string> how{"--length", "100", "--windows", "32"};
  const tool_result none = with_max_loss("0%", how);
  EXPECT_EQ(none.code, 1) << none.out;
  EXPECT_TRUE(contains(none.err, "--max-loss")) << none.err;
  EXPECT_TRUE(contains(none.err, " with 100 % of the rows")) << none.err;
  EXPECT_FALSE(fs::exists(path("b.json")));
  ASSERT_EQ(with_max_loss("100%", how).code, 0);
}

TEST_F(MaxLoss, IsRefusedWhereItIsNoneOrNotAlone) {
  for (const char* const wrong : {"", "2", "0.02", "-1%", "2 %", "%", "nan%", "inf%", "two%"}) {
    const tool_result refused = with_max_loss(wrong);
    EXPECT_EQ(refused.code, 2) << wrong;
    EXPECT_TRUE(contains(refused.err, "--max-loss")) << refused.err;
  }
  const std::vector<std::vector<std::string>> conflicts{
      {"--budget", "40%"}, {"--target", "0.9"}, {"--also", "0.9"}};
  for (const auto& conflict : conflicts) {
    const tool_result refused = with_max_loss("2%", conflict);
    EXPECT_EQ(refused.code, 2) << conflict.front();
    EXPECT_TRUE(contains(refused.err, conflict.front())) << refused.err;
  }
  const tool_result no_text = profile_with({"--max-loss", "2%", "--model", path("model.gguf")});
  EXPECT_EQ(no_text.code, 2);
  EXPECT_TRUE(contains(no_text.err, "--text")) << no_text.err;
  const tool_result no_model = profile_with({"--max-loss", "2%", "--text", path("text.txt")});
  EXPECT_EQ(no_model.code, 2);
  EXPECT_TRUE(contains(no_model.err, "--model")) << no_model.err;
  for (const char* const alone : {"--model", "--text", "--tokens", "--windows-of"})
    EXPECT_EQ(profile_with({alone, "300"}).code, 2) << alone;
  EXPECT_EQ(profile_with({"--engine", "small"}).code, 2);
  EXPECT_FALSE(fs::exists(path("b.json")));
}

TEST_F(MaxLoss, RefusesMapsOfAnotherModelAndOutputsThatAreInputs) {
  made_model other;
  other.layers = 3;
  folder_.write("other.gguf", other.file().bytes());
  const auto profiled = [&](const char* model, const char* text, const char* out) {
    return run_headwise({"profile", path("maps"), "--max-loss", "2%", "--model", path(model),
                         "--text", path(text), "--windows-of", "100", "--out", path(out)});
  };
  const tool_result mixed = profiled("other.gguf", "text.txt", "b.json");
  EXPECT_EQ(mixed.code, 1);
  for (const char* const part : {"maps is not for", "other.gguf", "layers", "2", "3"})
    EXPECT_TRUE(contains(mixed.err, part)) << mixed.err;
  EXPECT_FALSE(contains(mixed.err, "full cache")) << mixed.err;
  EXPECT_EQ(profiled("model.gguf", "blank.txt", "b.json").code, 1);
  EXPECT_EQ(profiled("model.gguf", "none.txt", "b.json").code, 1);
  EXPECT_FALSE(fs::exists(path("b.json")));
  for (const char* const input : {"text.txt", "model.gguf"}) {
    const std::string before = read_file(path(input));
    const tool_result refused = profiled("model.gguf", "text.txt", input);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_TRUE(contains(refused.err, input)) << refused.err;
    EXPECT_TRUE(read_file(path(input)) == before);
  }
}

// Maps of 40 tokens: in layer 0 both query heads look at eight tokens, every third from the third
// on, and at the query's own; in layer 1 at that alone.
std::string maps_with_eight_hitters() {
  constexpr std::size_t n = 40;
  std::vector<double> far(n * n, 0.0), near(n * n, 0.0);
  for (std::size_t query = 0; query < n; ++query) {
    near[query * n + query] = 1.0;
    const std::size_t seen = std::min<std::size_t>(8, (query + 1) / 3);
    far[query * n + query] = seen == 0 ? 1.0 : 0.125;
    for (std::size_t hitter = 0; hitter < seen; ++hitter)
      far[query * n + 3 * hitter + 2] += 0.875 / static_cast<double>(seen);
  }
  std::vector<made_tensor> tensors;
  for (const auto* const weights : {&far, &near}) {
    const std::string one = elements("F32", *weights);
    tensors.push_back(
        {"0." + std::to_string(tensors.size()) + ".attention", "F32", "[2, 40, 40]", one + one});
  }
  std::vector<std::int64_t> ids(n);
  std::iota(ids.begin(), ids.end(), 100);
  tensors.push_back(tokens_tensor("0", ids));
  return safetensors_of(map_metadata(2), tensors);
}

TEST_F(Profile, SaysWhereFewerHeavyHittersMakeALargerCache) {
  folder_.write("maps", maps_with_eight_hitters());
  struct outcome {
    std::size_t globals = 0;
    double rows = 0.0, best = 0.0;  // best: of the hitters of layer 0
    std::string said;               // the lines about heavy hitters
  };
  const auto with_hitters = [&](const std::string& shares, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--windows", "2,4", "--no-learned"});
    if (!shares.empty()) more.insert(more.end(), {"--heavy-hitters", shares});
    const tool_result profiled = profile_with(more);
    EXPECT_EQ(profiled.code, 0) << profiled.err;
    const headwise::blueprint plan = written();
    outcome o;
    for (const headwise::head_plan& head : plan.heads) {
      o.globals += head.name == "global" ? 1U : 0U;
      o.rows += head.resident_fraction / 2;
    }
    for (const headwise::candidate_recovery& c : plan.heads.front().candidates)
      if (contains(c.name, "+frequent(")) o.best = std::max(o.best, c.recovery);
    std::istringstream lines(profiled.out);
    for (std::string line; std::getline(lines, line);)
      if (contains(line, "heavy hitters")) o.said += line + "\n";
    return o;
  };
  const outcome many = with_hitters("0.3"), few = with_hitters("0.1");
  EXPECT_EQ(many.globals, 0U);
  EXPECT_EQ(many.said, "");
  EXPECT_EQ(few.globals, 1U);
  EXPECT_GT(few.rows, many.rows + 0.25);
  EXPECT_LT(few.best, 0.95);
  const std::string best = headwise_tool::fixed(few.best, 3);
  EXPECT_EQ(few.said,
            "  1 head keeps every token although heavy hitters were tried: they recover at best " +
                best +
                " on average, and 0.950 is asked; try larger pools of them, a lower --target, or "
                "--budget\n");
  // The best of several, and what is asked by another criterion.
  EXPECT_EQ(with_hitters("0.05,0.1").said, few.said);
  EXPECT_EQ(with_hitters("0.1", {"--even-pools", "2"}).said, few.said);
  EXPECT_EQ(with_hitters("0.1,0.3").said, "");
  EXPECT_TRUE(contains(with_hitters("0.1", {"--criterion", "distance"}).said, "0.975 is asked"));
  // Nothing where none were tried, or where a budget does not owe the head its target.
  EXPECT_EQ(with_hitters("").globals, 1U);
  EXPECT_EQ(with_hitters("").said, "");
  EXPECT_EQ(with_hitters("0.1", {"--budget", "100%"}).globals, 1U);
  EXPECT_EQ(with_hitters("0.1", {"--budget", "100%"}).said, "");
}

}  // namespace
}  // namespace headwise_tests
