// SPDX-License-Identifier: Apache-2.0
//
// The `headwise` tool with --engine llama.cpp: what each command gives is what it gives with the
// small engine, but for the order of sums. Weights of 32 bits, so that neither rounds more.
#include <nlohmann/json.hpp>

#include "cli/tool_run.hpp"
#include "logits.hpp"
#include "models.hpp"

#include "headwise/io/blueprint_json.hpp"
#include "headwise/io/map_archive.hpp"

namespace headwise_tests {
namespace {

using strings = std::vector<std::string>;

class llama_cpp_tool : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  // The command with this model, by the engine.
  [[nodiscard]] tool_result run(const std::string& engine, strings arguments) const {
    arguments.insert(arguments.end(), {"--model", wide_.path().string(), "--engine", engine});
    if (engine == "llama.cpp") arguments.insert(arguments.end(), {"--threads", "1"});
    tool_result result = run_headwise(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }
  void record(const std::string& engine, const std::string& out) const {
    const tool_result recorded =
        run(engine, {"record", "--text", text_, "--out", path(out), "--prompts", "2", "--length",
                     "96", "--dtype", "f32"});
    EXPECT_TRUE(contains(recorded.out, "recorded 2 prompts of 96 tokens")) << recorded.out;
  }
  [[nodiscard]] headwise::blueprint profile(const std::string& maps, const std::string& out) const {
    EXPECT_EQ(run_headwise({"profile", path(maps), "--target", "0.9", "--out", path(out)}).code, 0);
    return headwise::load_blueprint(path(out));
  }

  temporary_folder folder_;
  widened_model wide_{tiny_model};
  std::string text_ = (tiny_folder / "heldout.txt").string();
};

TEST_F(llama_cpp_tool, records_what_the_small_engine_records) {
  record("llama.cpp", "theirs");
  record("small", "ours");
  headwise::map_archive theirs(std::vector<std::filesystem::path>{path("theirs")});
  headwise::map_archive ours(std::vector<std::filesystem::path>{path("ours")});
  EXPECT_EQ(theirs.rules(), ours.rules());
  EXPECT_EQ(theirs.fingerprint(), ours.fingerprint());
  std::size_t maps = 0;
  std::vector<float> a(96), b(96);
  while (const auto one = theirs.next()) {
    const auto other = ours.next();
    ASSERT_TRUE(other);
    for (std::size_t row = 0; row < 96; ++row) {
      one->weights.copy_row(row, a);
      other->weights.copy_row(row, b);
      ASSERT_LE(most_apart(a, b), 1e-4F) << one->place << " row " << row;
    }
    ++maps;
  }
  EXPECT_EQ(maps, 2 * ours.shape().layers * ours.shape().query_heads);
  const headwise::blueprint by_theirs = profile("theirs", "theirs.json");
  const headwise::blueprint by_ours = profile("ours", "ours.json");
  for (std::size_t i = 0; i < by_ours.heads.size(); ++i)
    EXPECT_EQ(by_theirs.heads[i].policy, by_ours.heads[i].policy) << i;
}

TEST_F(llama_cpp_tool, evaluates_to_the_same_figures) {
  record("llama.cpp", "maps");
  static_cast<void>(profile("maps", "b.json"));
  nlohmann::json figures[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string engine = i == 0 ? "small" : "llama.cpp";
    const tool_result evaluated =
        run(engine, {"eval", "--text", text_, "--blueprint", path("b.json"), "--windows-of", "200",
                     "--tokens", "400", "--json", path(engine + ".json")});
    EXPECT_TRUE(contains(evaluated.out, "blueprint, target 0.90")) << evaluated.out;
    figures[i] = nlohmann::json::parse(read_file(path(engine + ".json")));
  }
  for (const char* key : {"perplexity_full", "perplexity_blueprint", "perplexity_window_same_bytes",
                          "agreement", "resident_bytes"})
    EXPECT_NEAR(figures[1][key].get<double>() / figures[0][key].get<double>(), 1.0, 0.01) << key;
  for (const char* key : {"full_bytes", "tokens_evaluated", "cache_type", "model"})
    EXPECT_EQ(figures[0][key], figures[1][key]) << key;
  EXPECT_EQ(figures[0]["curve"][0]["blueprint"]["payload_bytes"],
            figures[1]["curve"][0]["blueprint"]["payload_bytes"]);
  EXPECT_LT(figures[1]["kept_ratio"], 1.0);
}

TEST_F(llama_cpp_tool, writes_the_same_text) {
  record("llama.cpp", "maps");
  static_cast<void>(profile("maps", "b.json"));
  for (const strings& more : {strings{}, {"--blueprint", path("b.json")}, {"--temperature", "1"}}) {
    strings arguments{"generate", "--prompt", "It was a", "--tokens", "60"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const tool_result ours = run("small", arguments), theirs = run("llama.cpp", arguments);
    EXPECT_EQ(theirs.out, ours.out);
    EXPECT_GT(theirs.out.size(), 60U);
    EXPECT_EQ(theirs.err, ours.err);
    EXPECT_TRUE(contains(theirs.err, "kept ")) << theirs.err;
  }
}

TEST_F(llama_cpp_tool, says_what_is_wrong) {
  const std::string no_model = folder_.write("no.gguf", "no model").string();
  const auto error_of = [](const strings& arguments) {
    const tool_result result = run_headwise(arguments);
    EXPECT_EQ(result.code, 1);
    return result.err;
  };
  const std::string unread =
      error_of({"generate", "--model", no_model, "--prompt", "a", "--engine", "llama.cpp"});
  EXPECT_TRUE(contains(unread, "no.gguf")) << unread;
  const std::string absent = error_of(
      {"generate", "--model", path("absent.gguf"), "--prompt", "a", "--engine", "llama.cpp"});
  EXPECT_TRUE(absent.starts_with("headwise: " + path("absent.gguf") + ": unreadable: got No such"))
      << absent;
  const std::string bytes = folder_.write("bytes.txt", "caf\xc3\xa9 \xff").string();
  const std::string binary = error_of({"record", "--model", tiny_model.string(), "--text", bytes,
                                       "--out", path("maps"), "--engine", "llama.cpp"});
  EXPECT_TRUE(contains(binary, bytes + ": unsupported: got byte 6 of it, which is no UTF-8"))
      << binary;
  const std::string prompt = error_of(
      {"generate", "--model", tiny_model.string(), "--prompt", "\xff", "--engine", "llama.cpp"});
  EXPECT_TRUE(contains(prompt, "--prompt: unsupported: got byte 0 of it, which is no UTF-8"))
      << prompt;
  const std::string long_text = error_of({"generate", "--model", tiny_model.string(), "--prompt",
                                          "a", "--engine", "llama.cpp", "--tokens", "100000"});
  EXPECT_TRUE(contains(long_text, "the context of this model")) << long_text;
}

}  // namespace
}  // namespace headwise_tests
