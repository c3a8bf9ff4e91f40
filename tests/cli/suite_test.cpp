// SPDX-License-Identifier: Apache-2.0
//
// headwise eval --suite: what it runs, what it says, that it goes on where it broke off, and that
// its figures are those of headwise eval.

#include "suite.hpp"

#include <cmath>
#include <set>

#include "made_pipeline.hpp"
#include "numbers.hpp"
#include "suite_results.hpp"

namespace headwise_tests {
namespace {

class Suite : public Pipeline {
 protected:
  Suite() {
    EXPECT_EQ(record("text.txt", "maps").code, 0);
    EXPECT_EQ(profile().code, 0);
  }
  [[nodiscard]] static json made_suite() {
    return json::parse(R"({
      "model": "model.gguf", "maps": ["maps"], "windows": [2, 4, 8, 16], "lengths": [100],
      "plans": [{"name": "full", "kind": "full"},
                {"name": "ours", "kind": "budget", "shares": [0.01, 0.3, 0.6]},
                {"name": "by layer", "kind": "budget_by_layer", "shares": [0.6]},
                {"name": "ladder", "kind": "target", "targets": [0.9]},
                {"name": "shuffled", "kind": "shuffled", "shares": [0.6], "seed": 3},
                {"name": "window", "kind": "window", "shares": [0.3]},
                {"name": "sinks", "kind": "sinks_window", "shares": [0.01, 0.3]},
                {"name": "h2o", "kind": "heavy_hitters", "shares": [0.3]},
                {"name": "two", "kind": "two_classes", "shares": [0.8], "window": 8},
                {"name": "random", "kind": "random_classes", "shares": [0.8], "window": 8},
                {"name": "middle", "kind": "middle_global", "shares": [0.8]},
                {"name": "edges", "kind": "edges_global", "shares": [0.99]},
                {"name": "file", "kind": "blueprint", "file": "b.json"}],
      "tasks": [{"name": "prose", "kind": "text", "text": "text.txt", "samples": 3}]})");
  }
  [[nodiscard]] tool_result run(const json& suite) const {
    folder_.write("suite.json", suite.dump());
    return run_headwise({"eval", "--suite", path("suite.json"), "--json", path("results.json"),
                         "--html", path("suite.html")});
  }
  [[nodiscard]] std::vector<headwise_tool::suite_result> results() const {
    return headwise_tool::load_results(path("results.json"));
  }
};

TEST_F(Suite, RunsEveryPlanWithinItsShare) {
  const tool_result ran = run(made_suite());
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* plan : {"ours", "sinks"})
    EXPECT_TRUE(contains(ran.err, plan + std::string(" at 1 %, 100 tokens: even its smallest plan "
                                                     "holds more")));
  std::set<std::string> plans;
  for (const headwise_tool::suite_result& r : results()) {
    plans.insert(r.plan);
    ASSERT_EQ(r.exams.size(), 3U);
    for (const headwise_tool::exam_score& exam : r.exams) {
      EXPECT_EQ(exam.predicted, 99U);
      EXPECT_TRUE(std::isfinite(exam.surprise));
    }
    // What a rule keeps follows from positions alone; other texts than the profile's have other
    // tokens, and two layers few sums of rows.
    if (std::set<std::string>{"window", "sinks", "h2o", "middle"}.count(r.plan)) {
      EXPECT_LE(r.kept_rows, r.level) << r.plan;
      EXPECT_GT(r.kept_rows, r.level - 0.02) << r.plan;
    } else if (r.plan == "two" || r.plan == "random") {
      EXPECT_NEAR(r.kept_rows, (3 * 100 + 4 + 8) / 400.0, 1e-12) << r.plan;
    } else if (std::set<std::string>{"ours", "shuffled", "by layer"}.count(r.plan)) {
      EXPECT_LE(r.kept_rows, r.level + 0.02) << r.plan;
      EXPECT_GT(r.kept_rows, r.level - (r.plan == "by layer" ? 0.1 : 0.03)) << r.plan;
    }
  }
  EXPECT_TRUE(contains(ran.err, "edges at 99 %"));  // a model of two layers has no middle
  EXPECT_EQ(plans.size(), 12U);
  EXPECT_EQ(results().front().kept_rows, 1.0);
  const std::string page = read_file(path("suite.html"));
  for (const char* part :
       {"prose, 3 texts of 100 tokens, rows in f16", "by layer", "<svg", "What the heads keep"})
    EXPECT_TRUE(contains(page, part)) << part;
  for (const char* outside : {"href", "url(", "@import", "<script", "src=\"http"})
    EXPECT_FALSE(contains(page, outside)) << outside;
  EXPECT_TRUE(contains(ran.out, "| ours, 60 % |")) << ran.out;
  for (const std::string& shown : {page, ran.out}) {
    EXPECT_TRUE(contains(shown, "beside ours"));
    EXPECT_TRUE(contains(shown, "No more than 1 % above the full cache, with the whole of"));
  }
  EXPECT_TRUE(contains(ran.err, "1 of at most 16: full")) << ran.err;
}

TEST_F(Suite, FindsWhatEvalFinds) {
  json suite = made_suite();
  suite["row_types"] = {"f32"};
  ASSERT_EQ(run(suite).code, 0);
  ASSERT_EQ(eval("model.gguf", "text.txt").code, 0);  // 3 x 100 tokens, rows in f32
  const json summary = json::parse(read_file(path("summary.json")));
  const auto all = results();
  EXPECT_NEAR(perplexity(all.front()), summary["perplexity_full"].get<double>(), 1e-9);
  EXPECT_NEAR(perplexity(all.back()), summary["perplexity_blueprint"].get<double>(), 1e-9);
  // The full cache is a dense one in f32, here beside f16.
  EXPECT_NEAR(2.0 * all.back().full_bytes, summary["full_bytes"].get<double>(), 1e-6);
  EXPECT_NEAR(all.back().resident_bytes, summary["resident_bytes"].get<double>(), 1e-6);
}

TEST_F(Suite, GoesOnWhereItBrokeOff) {
  const tool_result ran = run(made_suite());
  ASSERT_EQ(ran.code, 0);
  const std::string whole = read_file(path("results.json"));
  fs::remove(path("results.json"));
  json part = made_suite();
  part["plans"].erase(part["plans"].begin() + 3, part["plans"].end());
  ASSERT_EQ(run(part).code, 0);
  const tool_result again = run(made_suite());
  ASSERT_EQ(again.code, 0);
  EXPECT_EQ(read_file(path("results.json")), whole);
  EXPECT_TRUE(contains(again.err, "full 1.000, prose, 100 tokens, f16: 100.0 %")) << again.err;
  EXPECT_TRUE(contains(again.err, "(known)"));
  EXPECT_FALSE(contains(ran.err, "(known)"));
  // Other texts are not taken for known ones, nor is another model, rows or tokens.
  json other = made_suite();
  other["tasks"][0]["samples"] = 2;
  EXPECT_FALSE(contains(run(other).err, "(known)"));
  other = made_suite();
  other["row_types"] = {"bf16"};
  EXPECT_FALSE(contains(run(other).err, "(known)"));
  std::string text = read_file(path("text.txt"));
  std::swap(text[1], text[2]);
  folder_.write("text.txt", text);
  EXPECT_FALSE(contains(run(made_suite()).err, "(known)"));
  EXPECT_TRUE(contains(run(made_suite()).err, "(known)"));
  folder_.write("model.gguf", made_model{.seed = 2}.file().bytes());  // of the same name and size
  EXPECT_FALSE(contains(run(made_suite()).err, "(known)"));
}

// A plan may be profiled on maps of its own; rows of all types are measured against the first's.
TEST_F(Suite, ProfilesAPlanOnItsOwnMaps) {
  ASSERT_EQ(record("text.txt", "others", "30").code, 0);
  json suite = made_suite();
  suite["plans"].erase(suite["plans"].begin() + 2, suite["plans"].end());
  suite["plans"][1]["shares"] = {0.5};
  json own = suite["plans"][1];
  own["name"] = "on others";
  own["maps"] = {"others"};
  suite["plans"].push_back(own);
  suite["row_types"] = {"f16", "int8_row"};
  const tool_result ran = run(suite);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto all = results();
  ASSERT_EQ(all.size(), 6U);
  EXPECT_NE(all[2].key, all[4].key);  // "ours" and "on others", f16
  EXPECT_TRUE(contains(ran.out, "rows in int8_row")) << ran.out;
  const headwise_tool::interval change = perplexity_change(all[1], all[0]);
  EXPECT_NE(change.value, 0.0);  // of rounded rows, full against full
  const std::string bracket = headwise_tool::percent(change.value, 1);
  EXPECT_TRUE(contains(ran.out, bracket + " (")) << ran.out << bracket;
}

// The keys of figures tell what their plans keep.
TEST_F(Suite, TriesTheWindowsOfProfileUnlessItNamesSome) {
  const auto keys_of = [&](const char* kind, const json& windows) {
    fs::remove(path("results.json"));
    json suite = made_suite();
    const bool by_target = std::string(kind) == "target";
    suite["plans"] = {suite["plans"][0],
                      {{"name", "ours"},
                       {"kind", kind},
                       {by_target ? "targets" : "shares", {0.4, 0.5, 0.6, 0.7, 0.8}}}};
    suite["windows"] = windows;
    if (windows.empty()) suite.erase("windows");
    EXPECT_EQ(run(suite).code, 0) << kind;
    std::string keys;
    for (const headwise_tool::suite_result& r : results())
      if (r.plan == "ours") keys += r.key;
    return keys;
  };
  const json none, of_ladder = {16, 32, 64, 96}, closer = {8, 16, 24, 32, 40, 48, 56, 64, 80, 96};
  for (const char* const kind : {"budget", "budget_by_layer"}) {
    EXPECT_EQ(keys_of(kind, none), keys_of(kind, closer)) << kind;
    EXPECT_NE(keys_of(kind, none), keys_of(kind, of_ladder)) << kind;
  }
  EXPECT_EQ(keys_of("target", none), keys_of("target", of_ladder));
  EXPECT_NE(keys_of("target", none), keys_of("target", closer));
}

TEST_F(Suite, AsksForWhatStandsInTheMiddle) {
  json suite = made_suite();
  suite["lengths"] = {512};
  suite["plans"].erase(suite["plans"].begin() + 1, suite["plans"].end());
  suite["tasks"] = json::array();
  for (const char* kind : {"passkey", "key_values", "copy", "dialogue"})
    suite["tasks"].push_back({{"name", kind}, {"kind", kind}, {"samples", 2}});
  const tool_result ran = run(suite);
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto all = results();
  ASSERT_EQ(all.size(), 4U);
  for (const headwise_tool::suite_result& r : all)
    for (const headwise_tool::exam_score& exam : r.exams) {
      EXPECT_GE(exam.predicted, 1U) << r.task;
      EXPECT_LT(exam.predicted, 200U) << r.task;
    }
  suite["lengths"] = {20};
  const tool_result refused = run(suite);
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.err, "task 'passkey'")) << refused.err;
}

TEST_F(Suite, RefusesWhatItCannotRun) {
  const auto refusal = [&](const char* pointer, const json& value) {
    json suite = made_suite();
    suite[json::json_pointer(pointer)] = value;
    const tool_result refused = run(suite);
    EXPECT_EQ(refused.code, 1) << pointer;
    EXPECT_FALSE(fs::exists(path("results.json")));
    return refused.err;
  };
  EXPECT_TRUE(contains(refusal("/plans/0/kind", "window"), "/plans/0"));
  EXPECT_TRUE(contains(refusal("/plans/1/kind", "best"), "/plans/1/kind"));
  EXPECT_TRUE(contains(refusal("/plans/1/shares/0", 1.5), "/plans/1/shares/0"));
  EXPECT_TRUE(contains(refusal("/plans/1/name", "full"), "/plans/1/name"));
  EXPECT_TRUE(contains(refusal("/plans/1/share", 0.5), "/plans/1/share"));
  EXPECT_TRUE(contains(refusal("/plans/3/targets", json::array()), "/plans/3/targets"));
  EXPECT_TRUE(contains(refusal("/maps", json::array()), "/plans/1/kind"));
  EXPECT_TRUE(contains(refusal("/lengths", json::array()), "/lengths"));
  EXPECT_TRUE(contains(refusal("/tasks/0/text", "none.txt"), "none.txt"));
  EXPECT_TRUE(contains(refusal("/row_types", {"f8"}), "/row_types/0"));
  // What a kind has no use for.
  EXPECT_TRUE(contains(refusal("/plans/0/shares", {0.5}), "/plans/0/shares"));
  EXPECT_TRUE(contains(refusal("/plans/1/targets", {0.5}), "/plans/1/targets"));
  EXPECT_TRUE(contains(refusal("/plans/1/seed", 2), "/plans/1/seed"));
  EXPECT_TRUE(contains(refusal("/plans/1/window", 8), "/plans/1/window"));
  EXPECT_TRUE(contains(refusal("/plans/1/file", "b.json"), "/plans/1/file"));
  EXPECT_TRUE(contains(refusal("/plans/3/shares", {0.5}), "/plans/3/shares"));
  EXPECT_TRUE(contains(refusal("/plans/5/maps", {"maps"}), "'window'"));
  EXPECT_TRUE(contains(refusal("/tasks/0/seed", 1), "/tasks/0/seed"));
  json passkey = {{"name", "passkey"}, {"kind", "passkey"}, {"text", "text.txt"}};
  EXPECT_TRUE(contains(refusal("/tasks/1", passkey), "/tasks/1/text"));
  folder_.write("results.json", R"({"format": "something", "results": []})");
  EXPECT_EQ(run(made_suite()).code, 1);
  const tool_result mixed = run_headwise(
      {"eval", "--suite", path("suite.json"), "--model", path("model.gguf"), "--json", path("r")});
  EXPECT_EQ(mixed.code, 2);
  EXPECT_TRUE(contains(mixed.err, "--suite")) << mixed.err;
  EXPECT_EQ(run_headwise({"eval", "--suite", path("suite.json")}).code, 2);
}

TEST(load_suite, TakesTheSuitesOfTheBenchmark) {
  const fs::path folder = fs::path(HEADWISE_SOURCE_DIR) / "bench" / "quality";
  std::size_t suites = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const headwise_tool::suite what = headwise_tool::load_suite(entry.path());
    EXPECT_GT(what.plans.size(), 1U) << entry.path();
    EXPECT_EQ(what.model, folder / "model.gguf");
    ++suites;
  }
  EXPECT_GE(suites, 5U);
}

TEST_F(Pipeline, ProfilesWithinABudget) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  const auto profiled = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"profile",  path("maps"), "--windows",
                                       "2,4,8,16", "--out",      path("b.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_headwise(arguments);
  };
  ASSERT_EQ(profiled({"--budget", "60%"}).code, 0);
  const headwise::blueprint plan = headwise::load_blueprint(path("b.json"));
  EXPECT_EQ(plan.origin.budget, 0.6);
  EXPECT_EQ(plan.origin.recovery_target, 0.0);
  double rows = 0.0;
  for (const headwise::head_plan& head : plan.heads) rows += head.resident_fraction;
  EXPECT_LE(rows, 0.6 * static_cast<double>(plan.heads.size()));
  // As many bytes at the same length: 2 layers x 2 KV heads x 48 tokens x row.
  const std::uint64_t row = 4 * plan.shape.head_dim;
  const std::string bytes = std::to_string(plan.shape.heads() * 48 * row * 6 / 10);
  ASSERT_EQ(profiled({"--budget", bytes + "B@48"}).code, 0);
  EXPECT_NEAR(*headwise::load_blueprint(path("b.json")).origin.budget, 0.6, 1e-3);
  ASSERT_EQ(profiled({"--budget", "1MiB"}).code, 0);
  EXPECT_EQ(headwise::load_blueprint(path("b.json")).origin.budget, 1.0);
  for (const char* wrong : {"", "40", "0%", "101%", "-4%", "40 %", "4TiB", "1MiB@", "1MiB@0",
                            "1MiB@48x", "nan%", "MiB", "1e30GiB"})
    EXPECT_EQ(profiled({"--budget", wrong}).code, *wrong == '\0' ? 0 : 2) << wrong;
  EXPECT_EQ(profiled({"--budget", "1MiB@48", "--length", "64"}).code, 2);
  const tool_result owed = profiled({"--budget", "10%", "--target", "0.99"});
  EXPECT_EQ(owed.code, 1);
  EXPECT_TRUE(contains(owed.err, "budget")) << owed.err;
}

}  // namespace
}  // namespace headwise_tests
