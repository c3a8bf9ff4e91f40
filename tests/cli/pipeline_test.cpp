// SPDX-License-Identifier: Apache-2.0
//
// record, profile, inspect, eval and generate on a small made model, and what each says of bad
// inputs.

#include <cmath>
#include <cstring>

#include "llama/session.hpp"
#include "made_pipeline.hpp"
#include "prompts.hpp"

#include "headwise/io/map_archive.hpp"

namespace headwise_tests {
namespace {

TEST_F(Pipeline, RecordsTheSameMapsIntoAFolderAndIntoAFile) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(record("text.txt", "all.safetensors").code, 0);
  const std::vector<fs::path> in_folder{path("maps")}, in_file{path("all.safetensors")};
  headwise::map_archive a(in_folder), b(in_file);
  EXPECT_EQ(a.prompts(), 3U);
  EXPECT_EQ(b.prompts(), 3U);
  EXPECT_EQ(a.rules(), b.rules());
  std::size_t maps = 0;
  while (const auto one = a.next()) {
    const auto other = b.next();
    ASSERT_TRUE(other);
    ASSERT_TRUE(std::ranges::equal(one->keys, other->keys));
    for (std::size_t row = 0; row < one->weights.count; ++row)
      ASSERT_TRUE(std::ranges::equal(one->weights.row(row), other->weights.row(row)));
    ++maps;
  }
  EXPECT_FALSE(b.next());
  EXPECT_EQ(maps, 3U * 2U * 4U);
}

TEST_F(Pipeline, SaysOneOfWhatIsOne) {
  const tool_result recorded =
      run_headwise({"record", "--model", path("model.gguf"), "--text", path("text.txt"), "--out",
                    path("maps"), "--prompts", "1", "--length", "48"});
  EXPECT_TRUE(contains(recorded.out, "recorded 1 prompt of 48 tokens")) << recorded.out;
  ASSERT_EQ(profile().code, 0);
  const tool_result inspected = run_headwise({"inspect", path("b.json"), "--length", "1"});
  EXPECT_TRUE(contains(inspected.out, "profiled on 1 prompt, 48 queries")) << inspected.out;
  EXPECT_TRUE(contains(inspected.out, "expected at 1 token in")) << inspected.out;
  EXPECT_TRUE(contains(run_headwise({"plan", path("b.json"), "--length", "1"}).out, "1 token,"));
}

TEST_F(Pipeline, RecordsWhatLooksBackToTheBeginning) {
  const tool_result recorded =
      run_headwise({"record", "--model", path("model.gguf"), "--text", path("text.txt"), "--out",
                    path("back"), "--prompts", "3", "--length", "48", "--look-back", "16"});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const auto engine = headwise_tool::load_engine({}, path("model.gguf"));
  const std::size_t start = engine->facts().start.size();
  // The text goes on from prompt to prompt, whatever each says again.
  std::vector<headwise_tool::token_ids> prompts =
      headwise_tool::cut_pieces(*engine, path("text.txt"), {3, 32});
  for (auto& ids : prompts)
    for (std::size_t i = 0; i < 16; ++i) ids.push_back(ids[start + i]);
  engine->make_recorder({.length = 48})->record(path("all.safetensors"), prompts, [] {});

  const std::vector<fs::path> in_folder{path("back")}, in_file{path("all.safetensors")};
  headwise::map_archive back(in_folder), all(in_file);
  std::size_t maps = 0;
  for (; const auto one = back.next(); ++maps) {
    const auto other = all.next();
    ASSERT_TRUE(other && std::ranges::equal(one->keys, other->keys)) << maps;
    ASSERT_EQ(one->first_query, 32U);
    ASSERT_EQ(one->weights.count, 16U);
    for (std::size_t row = 0; row < 16; ++row)
      ASSERT_TRUE(std::ranges::equal(one->weights.row(row), other->weights.row(32 + row)));
  }
  EXPECT_EQ(maps, 3U * 2U * 4U);
  // Beside prompts of which every query is known.
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(run_headwise({"profile", path("maps"), path("back"), "--budget", "50%", "--out",
                          path("both.json")})
                .code,
            0);
  const auto looking_back = [&](const char* tokens) {
    return run_headwise({"record", "--model", path("model.gguf"), "--text", path("text.txt"),
                         "--out", path("most"), "--length", "48", "--look-back", tokens});
  };
  for (const char* tokens : {"25", "9223372036854775808", "18446744073709551615"}) {
    const tool_result more = looking_back(tokens);
    EXPECT_EQ(more.code, 1);
    EXPECT_TRUE(contains(more.err, "--look-back: ")) << more.err;
    EXPECT_TRUE(contains(more.err, "at most 24, half of --length")) << more.err;
    EXPECT_FALSE(fs::exists(path("most")));
  }
  EXPECT_EQ(looking_back("24").code, 0);
}

TEST_F(Pipeline, ProfilesInspectsAndEvaluates) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  const tool_result profiled = profile();
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  const headwise::blueprint plan = headwise::load_blueprint(path("b.json"));
  EXPECT_EQ(plan.origin.prompts, 3U);
  EXPECT_EQ(plan.origin.sources.size(), 3U);
  EXPECT_EQ(plan.model.name, "made");
  for (const headwise::head_plan& head : plan.heads) EXPECT_GE(head.recovery, 0.9);

  const tool_result evaluated = eval("model.gguf", "text.txt");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const json summary = json::parse(read_file(path("summary.json")));
  for (const char* key :
       {"model", "layers", "kv_heads", "tokens_profiled", "tokens_evaluated", "full_bytes",
        "resident_bytes", "kept_ratio", "perplexity_full", "perplexity_blueprint",
        "perplexity_window_same_bytes", "agreement", "recovery_target"})
    EXPECT_TRUE(summary.contains(key)) << key;
  EXPECT_EQ(summary["layers"], 2);
  EXPECT_EQ(summary["tokens_profiled"], 3 * 48);
  EXPECT_EQ(summary["tokens_evaluated"], 300);
  EXPECT_EQ(summary["recovery_target"], 0.9);
  const json& main = summary["curve"][0];
  EXPECT_LE(main["blueprint"]["resident_bytes"], main["plain_window"]["resident_bytes"]);
  EXPECT_LE(main["blueprint"]["resident_bytes"], main["sinks_and_window"]["resident_bytes"]);
  EXPECT_LT(main["blueprint"]["payload_bytes"], main["blueprint"]["resident_bytes"]);

  const std::vector<std::string> inspect = {
      "inspect", path("b.json"),      "--maps", path("maps"),   "--eval", path("summary.json"),
      "--html",  path("report.html"), "--svg",  path("map.svg")};
  const tool_result inspected = run_headwise(inspect);
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_TRUE(contains(inspected.out, "made: 2 layers x 2 KV heads")) << inspected.out;
  const std::string page = read_file(path("report.html")), picture = read_file(path("map.svg"));
  ASSERT_EQ(run_headwise(inspect).code, 0);
  EXPECT_EQ(page, read_file(path("report.html")));
  EXPECT_EQ(picture, read_file(path("map.svg")));
  for (const char* outside : {"href", "url(", "@import", "<script", "src=\"http"})
    EXPECT_FALSE(contains(page, outside)) << outside;
  std::size_t pictures = 0;
  for (auto at = page.find("data:image/png"); at != std::string::npos;
       at = page.find("data:image/png", at + 1))
    ++pictures;
  EXPECT_EQ(pictures, 2U * 4U);
}

// The full cache of eval against a session that this test feeds by itself.
TEST_F(Pipeline, PerplexityAndBytesOfTheFullCacheAreWhatTheyAre) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile("1").code, 0);  // keeps everything: the blueprint is the full cache
  ASSERT_EQ(eval("model.gguf", "text.txt").code, 0);
  const json summary = json::parse(read_file(path("summary.json")));

  const llama_example::model model(path("model.gguf"));
  const auto full =
      headwise::uniform_blueprint(model.shape(), headwise::make_spec(headwise::global{}));
  double surprise = 0.0;
  const auto engine = headwise_tool::load_engine({}, path("model.gguf"));
  for (const auto& window : headwise_tool::cut_pieces(*engine, path("text.txt"), {3, 100})) {
    llama_example::session<headwise::f32> session(model, full);
    for (std::size_t i = 0; i + 1 < window.size(); ++i) {
      const auto logits = session.feed(std::span(&window[i], 1));
      double sum = 0.0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
      surprise +=
          std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(window[i + 1])]);
    }
  }
  EXPECT_NEAR(summary["perplexity_full"].get<double>(), std::exp(surprise / 297.0), 1e-3);
  EXPECT_EQ(summary["perplexity_blueprint"], summary["perplexity_full"]);
  EXPECT_EQ(summary["agreement"], 1.0);
  // 2 layers, 2 KV heads, rows of 2 x 8 floats; read at 32, 64, 96 and 100 tokens.
  EXPECT_EQ(summary["full_bytes"], 2.0 * 2.0 * 64.0 * (32 + 64 + 96 + 100) / 4.0);
  EXPECT_EQ(summary["full"]["payload_bytes"], summary["full_bytes"]);
}

TEST_F(Pipeline, QuantisedRowsAreEvaluatedAsSuch) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile().code, 0);
  // Rows of 8: a byte each behind a step, and one group of 32 halves of a byte.
  for (const auto& [type, row_bytes] :
       {std::pair("int8_row", 2 * 12), std::pair("int8_row+int4_group", 12 + 20)}) {
    const tool_result result =
        run_headwise({"eval", "--model", path("model.gguf"), "--text", path("text.txt"),
                      "--blueprint", path("b.json"), "--windows-of", "100", "--tokens", "100",
                      "--cache-type", type, "--json", path("summary.json")});
    ASSERT_EQ(result.code, 0) << result.err;
    const json summary = json::parse(read_file(path("summary.json")));
    EXPECT_EQ(summary["cache_type"], type);
    EXPECT_EQ(summary["full_bytes"], 2.0 * 2.0 * row_bytes * (32 + 64 + 96 + 100) / 4.0);
    EXPECT_EQ(summary["full"]["payload_bytes"], summary["full_bytes"]);
  }
}

TEST_F(Pipeline, FurtherTargetsMakeACurve) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(
      run_headwise({"profile", path("maps"), "--out", path("b.json"), "--also", "0.5,0.99"}).code,
      0);
  EXPECT_EQ(headwise::load_blueprint(path("b_0.5.json")).origin.recovery_target, 0.5);
  EXPECT_EQ(headwise::load_blueprint(path("b_0.99.json")).origin.recovery_target, 0.99);
}

TEST_F(Pipeline, ProfilesWithAnyNumberOfThreadsToTheSameBytes) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile().code, 0);
  const std::string bytes = read_file(path("b.json"));
  for (const std::string threads : {"1", "2", "3", "64"}) {
    ASSERT_EQ(profile("0.9", threads).code, 0);
    EXPECT_EQ(read_file(path("b.json")), bytes) << threads;
  }
}

// The last weight of one map and one in the middle of another, which most threads come to first.
TEST_F(Pipeline, NamesTheFirstBadMapWithAnyNumberOfThreads) {
  ASSERT_EQ(record("text.txt", "all.safetensors").code, 0);
  std::string bytes = read_file(path("all.safetensors"));
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t map = 48 * 48 * 2;
  const auto spoil = [&](std::size_t layer, std::size_t head, std::size_t byte) {
    const std::string place = "1." + std::to_string(layer) + ".attention";
    const std::size_t begin = bytes.find("data_offsets", bytes.find(place)) + 15;
    bytes[8 + header + std::stoul(bytes.substr(begin)) + head * map + byte] = '\x7e';
  };
  spoil(0, 3, map - 1);
  spoil(1, 0, 1);
  folder_.write("maps", bytes);
  for (const std::string threads : {"1", "2", "3", "64"}) {
    const tool_result profiled = profile("0.9", threads);
    EXPECT_EQ(profiled.code, 1);
    EXPECT_TRUE(contains(profiled.err, "prompt 1 layer 0 query head 3 row 47")) << profiled.err;
  }
}

TEST_F(Pipeline, GeneratesAndSaysWhatWasKept) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile("0.5").code, 0);
  const std::vector<std::string> generate = {"generate",     "--model",  path("model.gguf"),
                                             "--prompt",     "the cat",  "--blueprint",
                                             path("b.json"), "--tokens", "20"};
  const tool_result generated = run_headwise(generate);
  ASSERT_EQ(generated.code, 0) << generated.err;
  EXPECT_TRUE(contains(generated.out, "the cat"));
  EXPECT_TRUE(contains(generated.err, "kept ")) << generated.err;
  EXPECT_EQ(generated.out, run_headwise(generate).out);
  std::vector<std::string> seeded = generate;
  seeded.insert(seeded.end(), {"--temperature", "1.5", "--top-p", "0.9", "--seed", "3"});
  EXPECT_EQ(run_headwise(seeded).out, run_headwise(seeded).out);
  seeded.back() = "4";
  EXPECT_NE(run_headwise(seeded).out, generated.out);
}

TEST_F(Pipeline, TextsThatDoNotSufficeAreRefused) {
  const tool_result blank = record("blank.txt", "maps");
  EXPECT_EQ(blank.code, 1);
  EXPECT_TRUE(contains(blank.err, "blank.txt")) << blank.err;
  const tool_result brief = record("short.txt", "brief.safetensors");
  EXPECT_EQ(brief.code, 1);
  EXPECT_TRUE(contains(brief.err, "short.txt") && contains(brief.err, "144")) << brief.err;
  EXPECT_FALSE(fs::exists(path("brief.safetensors")));
  const tool_result beyond = record("text.txt", "maps", "513");
  EXPECT_EQ(beyond.code, 1);
  EXPECT_TRUE(contains(beyond.err, "512")) << beyond.err;
}

TEST_F(Pipeline, ASecondRecordingDoesNotMixWithTheFirst) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  const tool_result again = record("text.txt", "maps");
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(contains(again.err, "prompt_0")) << again.err;
}

TEST_F(Pipeline, ABlueprintOfAnotherModelIsRefusedWithBoth) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile().code, 0);
  made_model other;
  other.layers = 3;
  folder_.write("other.gguf", other.file().bytes());
  const tool_result evaluated = eval("other.gguf", "text.txt");
  EXPECT_EQ(evaluated.code, 1);
  for (const char* part : {"b.json", "other.gguf", "layers", "2", "3"})
    EXPECT_TRUE(contains(evaluated.err, part)) << evaluated.err;
  EXPECT_FALSE(fs::exists(path("summary.json")));
}

TEST_F(Pipeline, ATruncatedRecordingAndABrokenBlueprintAreRefused) {
  ASSERT_EQ(record("text.txt", "all.safetensors").code, 0);
  const std::string whole = read_file(path("all.safetensors"));
  folder_.write("half.safetensors", whole.substr(0, whole.size() / 2));
  const tool_result profiled =
      run_headwise({"profile", path("half.safetensors"), "--out", path("b.json")});
  EXPECT_EQ(profiled.code, 1);
  EXPECT_TRUE(contains(profiled.err, "half.safetensors")) << profiled.err;
  EXPECT_FALSE(fs::exists(path("b.json")));
  folder_.write("b.json", "{\"format\": 1}");
  const tool_result inspected = run_headwise({"inspect", path("b.json")});
  EXPECT_EQ(inspected.code, 1);
  EXPECT_TRUE(contains(inspected.err, "/format")) << inspected.err;
}

}  // namespace
}  // namespace headwise_tests
