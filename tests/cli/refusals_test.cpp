// SPDX-License-Identifier: Apache-2.0
//
// What each command refuses once it has seen its files: outputs that are its own inputs, lengths
// that no sequence or model has, and evaluations that are not what they should be.

#include <sys/stat.h>

#include "made_pipeline.hpp"

namespace headwise_tests {
namespace {

// A command that must fail and leave `file` as it is.
void expect_left_alone(const std::string& file, int code,
                       const std::vector<std::string>& arguments) {
  const std::string before = read_file(file);
  const tool_result result = run_headwise(arguments);
  EXPECT_EQ(result.code, code) << arguments.front() << ": " << result.out << result.err;
  EXPECT_TRUE(contains(result.err, fs::path(file).filename().string())) << result.err;
  EXPECT_TRUE(read_file(file) == before) << file << " is another file now";
}

TEST_F(Pipeline, ProfileDoesNotWriteOverItsMaps) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  const std::string first = path("maps/prompt_0000.safetensors");
  expect_left_alone(first, 2, {"profile", first, "--out", first});
  expect_left_alone(first, 2, {"profile", path("maps"), "--out", first});
  expect_left_alone(
      first, 2,
      {"profile", path("maps"), "--out", path("maps/../maps/") + "prompt_0000.safetensors"});
  fs::create_symlink(first, path("link.json"));
  const tool_result by_link = run_headwise({"profile", path("maps"), "--out", path("link.json")});
  EXPECT_EQ(by_link.code, 2) << by_link.err;
  fs::create_hard_link(first, path("b_0.5.json"));
  const tool_result beside =
      run_headwise({"profile", path("maps"), "--out", path("b.json"), "--also", "0.5"});
  EXPECT_EQ(beside.code, 2) << beside.err;
  EXPECT_FALSE(fs::exists(path("b.json")));
  EXPECT_EQ(profile().code, 0);  // the maps are whole
}

TEST_F(Pipeline, OtherCommandsDoNotWriteOverTheirInputsEither) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile().code, 0);
  fs::copy_file(path("text.txt"), path("text.safetensors"));
  expect_left_alone(path("text.safetensors"), 2,
                    {"record", "--model", path("model.gguf"), "--text", path("text.safetensors"),
                     "--out", path("text.safetensors"), "--length", "48", "--prompts", "1"});
  for (const char* const name : {"model.gguf", "text.txt", "b.json"})
    expect_left_alone(
        path(name), 2,
        {"eval", "--model", path("model.gguf"), "--text", path("text.txt"), "--blueprint",
         path("b.json"), "--windows-of", "100", "--tokens", "100", "--json", path(name)});
  expect_left_alone(path("b.json"), 2, {"inspect", path("b.json"), "--svg", path("b.json")});
  const std::string first = path("maps/prompt_0000.safetensors");
  expect_left_alone(first, 2, {"inspect", path("b.json"), "--maps", path("maps"), "--html", first});
}

TEST_F(Pipeline, AFileIsNoFolderToRecordInto) {
  folder_.write("out.json", "{}");
  const tool_result recorded = record("text.txt", "out.json");
  EXPECT_EQ(recorded.code, 1);
  EXPECT_TRUE(contains(recorded.err, "out.json: unreadable: got Not a directory")) << recorded.err;
  EXPECT_FALSE(contains(recorded.err, "filesystem error")) << recorded.err;
}

class Output : public Pipeline {
 protected:
  Output() {
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    fs::create_directory(path("folder"));
    fs::create_directory(path("x_0.5.json"));
    folder_.write("suite.json", R"({"model": "none.gguf", "lengths": [100],
      "plans": [{"name": "full", "kind": "full"}],
      "tasks": [{"name": "prose", "kind": "text", "text": "none.txt", "samples": 3}]})");
  }
  // The command reads nothing that is there: what it says of `out` it says before its work.
  static void expect_refused(std::vector<std::string> command, const std::string& out, int code) {
    command.push_back(out);
    const tool_result result = run_headwise(command);
    EXPECT_EQ(result.code, code) << command.front() << result.out << result.err;
    EXPECT_TRUE(contains(result.err, code == 2 ? command[command.size() - 2] : out)) << result.err;
    EXPECT_FALSE(contains(result.err, "none")) << result.err;
  }

  std::vector<std::string> record_{"record", "--model",  path("none.gguf"),
                                   "--text", "none.txt", "--out"};
  std::vector<std::vector<std::string>> of_files_{
      {"profile", path("none"), "--out"},
      {"inspect", path("none.json"), "--svg"},
      {"inspect", path("none.json"), "--html"},
      {"eval", "--model", path("none.gguf"), "--text", "none.txt", "--blueprint", "none.json",
       "--json"},
      {"eval", "--suite", path("suite.json"), "--json"},
      {"eval", "--suite", path("suite.json"), "--json", path("results.json"), "--html"}};
};

TEST_F(Output, ThatCannotBeWrittenIsRefusedBeforeTheWork) {
  for (const auto& command : of_files_) {
    for (const char* const out : {"no_folder/x.json", "text.txt/x.json", "pipe", "folder"})
      expect_refused(command, path(out), 1);
    expect_refused(command, "/dev/null", 1);
    expect_refused(command, path(std::string(245, 'x')), 1);  // room for no name beside it
    expect_refused(command, "", 2);
  }
  for (const char* const out : {"no_folder/x.safetensors", "pipe", "text.txt/maps"})
    expect_refused(record_, path(out), 1);
  expect_refused(record_, "/dev/null", 1);
  expect_refused(record_, "", 2);
  const tool_result beside =
      run_headwise({"profile", path("none"), "--also", "0.5", "--out", path("x.json")});
  EXPECT_TRUE(contains(beside.err, "x_0.5.json: unreadable: got a folder")) << beside.err;
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(Output, IsNoOtherOutput) {
  const std::vector<std::string> both[] = {
      {"eval", "--suite", path("suite.json"), "--json", path("x"), "--html", path("./x")},
      {"inspect", path("none"), "--html", path("x"), "--svg", path("folder/../x")}};
  for (const auto& command : both) {
    const tool_result refused = run_headwise(command);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_TRUE(contains(refused.err, "as well: name another")) << refused.err;
  }
}

TEST_F(Output, IsNotThereBeforeTheWorkEither) {
  for (const auto& command : of_files_) {
    std::vector<std::string> arguments = command;
    arguments.push_back(path("x.json"));
    EXPECT_TRUE(contains(run_headwise(arguments).err, "none"));
  }
  EXPECT_FALSE(fs::exists(path("x.json")) || fs::exists(path("results.json")));
  record_.push_back(path("new/maps"));
  EXPECT_TRUE(contains(run_headwise(record_).err, "none.gguf"));
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(Pipeline, ProfilesAtAnyLengthOfASequenceAndAtNoOther) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  const auto at = [&](const std::string& length) {
    return run_headwise({"profile", path("maps"), "--out", path("b.json"), "--length", length});
  };
  for (const char* const beyond : {"4294967295", "4294967296"}) {
    const tool_result refused = at(beyond);
    EXPECT_EQ(refused.code, 1) << beyond;
    EXPECT_TRUE(contains(refused.err, "--length: out of range")) << refused.err;
    EXPECT_TRUE(contains(refused.err, "4,294,967,294")) << refused.err;
  }
  EXPECT_FALSE(fs::exists(path("b.json")));
  ASSERT_EQ(at("4294967294").code, 0);
  EXPECT_EQ(headwise::load_blueprint(path("b.json")).origin.length, headwise::max_length);
  EXPECT_EQ(run_headwise({"plan", path("b.json")}).code, 0);
}

TEST_F(Pipeline, ALengthThatCannotBeIsNamedAsItWasStated) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile().code, 0);
  const auto said = [&](const std::string& what, const tool_result& result) {
    EXPECT_EQ(result.code, 1);
    EXPECT_TRUE(contains(result.err, "headwise: " + what)) << result.err;
  };
  said("--length: invalid argument: got 1 token, expected at least",
       record("text.txt", "other", "1"));
  said("--length: invalid argument: got 513 tokens", record("text.txt", "other", "513"));
  said("--windows-of: invalid argument: got 513 tokens",
       run_headwise({"eval", "--model", path("model.gguf"), "--text", path("text.txt"),
                     "--blueprint", path("b.json"), "--windows-of", "513"}));
  folder_.write("suite.json", R"({"model": "model.gguf", "lengths": [513],
    "plans": [{"name": "full", "kind": "full"}],
    "tasks": [{"name": "prose", "kind": "text", "text": "text.txt"}]})");
  said("task 'prose': invalid argument: got 513 tokens",
       run_headwise({"eval", "--suite", path("suite.json"), "--json", path("results.json")}));
}

TEST_F(Pipeline, ATargetThatIsNoShareLeavesNoBlueprint) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  for (const char* const also : {"nan", "1.5", "0.5,-0.1"}) {
    const tool_result profiled = run_headwise(
        {"profile", path("maps"), "--target", "0.9", "--also", also, "--out", path("b.json")});
    EXPECT_EQ(profiled.code, 2) << also;
    EXPECT_TRUE(contains(profiled.err, "--also")) << profiled.err;
    EXPECT_FALSE(fs::exists(path("b.json")));
  }
}

TEST_F(Pipeline, GenerateKeepsToTheContextOfTheModel) {
  const auto with_tokens = [&](const std::string& prompt, const std::string& tokens) {
    return run_headwise(
        {"generate", "--model", path("model.gguf"), "--prompt", prompt, "--tokens", tokens});
  };
  const tool_result beyond = with_tokens("the cat", "512");  // the context alone
  EXPECT_EQ(beyond.code, 1);
  EXPECT_EQ(beyond.out, "");
  EXPECT_TRUE(contains(beyond.err, "--tokens of 512")) << beyond.err;
  EXPECT_TRUE(contains(beyond.err, "at most 512, the context of this model")) << beyond.err;
  const std::string long_prompt = read_file(path("text.txt"));
  EXPECT_EQ(with_tokens(long_prompt, "1").code, 1);
  EXPECT_EQ(with_tokens("the cat", "400").code, 0);
}

class Evaluation : public Pipeline {
 protected:
  // Puts `to` in the place of the first `from` of a good evaluation.
  void expect_refused(const std::string& from, const std::string& to,
                      const std::vector<std::string>& parts) {
    std::string text = good_;
    text.replace(text.find(from), from.size(), to);
    folder_.write("bad.json", text);
    const tool_result inspected =
        run_headwise({"inspect", path("b.json"), "--eval", path("bad.json")});
    EXPECT_EQ(inspected.code, 1) << to;
    EXPECT_EQ(inspected.out, "") << to;
    EXPECT_FALSE(contains(inspected.err, "json.exception")) << inspected.err;
    EXPECT_TRUE(contains(inspected.err, "bad.json: ")) << inspected.err;
    for (const std::string& part : parts)
      EXPECT_TRUE(contains(inspected.err, part)) << inspected.err;
  }

  std::string good_;
};

TEST_F(Evaluation, IsCheckedBeforeAnythingIsShown) {
  ASSERT_EQ(record("text.txt", "maps").code, 0);
  ASSERT_EQ(profile().code, 0);
  ASSERT_EQ(eval("model.gguf", "text.txt").code, 0);
  good_ = read_file(path("summary.json"));
  EXPECT_EQ(run_headwise({"inspect", path("b.json"), "--eval", path("summary.json")}).code, 0);

  const std::string full = "\"full_bytes\": " + json::parse(good_)["full_bytes"].dump();
  expect_refused(full, "\"full_bytes\": 0", {"/full_bytes", "got 0"});
  expect_refused(full, "\"full_bytes\": \"many\"", {"/full_bytes", "'many'"});
  expect_refused("\"full_bytes\"", "\"few_bytes\"", {"/full_bytes", "missing"});
  expect_refused("\"layers\": 2", "\"layers\": -2", {"/layers", "-2"});
  expect_refused("\"layers\": 2", "\"layers\": 0", {"/layers", "got 0"});
  expect_refused("\"curve\": [", "\"curve\": [], \"curb\": [", {"/curve", "missing"});
  expect_refused("\"perplexity\": ", "\"perplexity\": 0, \"was\": ", {"/full/perplexity", "got 0"});
  expect_refused("{", "{,", {"byte 2"});
}

}  // namespace
}  // namespace headwise_tests
