// SPDX-License-Identifier: Apache-2.0
//
// Exit codes, help and messages for wrong command lines and files that are not there.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tool_run.hpp"

#include "support/standard_output.hpp"

namespace headwise_tests {
namespace {

const std::vector<std::string> commands = {"record", "profile", "inspect",
                                           "plan",   "eval",    "generate"};

TEST(CommandLine, HelpOfTheToolNamesEveryCommand) {
  const tool_result help = run_headwise({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const std::string& command : commands) EXPECT_TRUE(contains(help.out, command)) << command;
  EXPECT_TRUE(contains(help.out, "Exit codes"));
}

TEST(CommandLine, HelpOfEveryCommandHasAnExample) {
  for (const std::string& command : commands) {
    const tool_result help = run_headwise({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(contains(help.out, "headwise " + command + " ")) << command << help.out;
  }
}

TEST(CommandLine, Version) {
  const tool_result version = run_headwise({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "headwise 0.1.0\n");
}

TEST(CommandLine, WrongUsageIsTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"cook"},
      {"record"},
      {"record", "--model", "m", "--text", "t", "--out", "o", "--dtype", "f64"},
      {"record", "--model", "m", "--text", "t", "--out", "o", "--prompts", "0"},
      {"record", "--model", "m", "--text", "t", "--out", "o", "--length", "-3"},
      {"profile", "--out", "b.json"},
      {"profile", "maps", "--out", "b.json", "--target", "1.5"},
      {"profile", "maps", "--out", "b.json", "--target", "nan"},
      {"profile", "maps", "--out", "b.json", "--target", "0.9", "--also", "0.8,nan"},
      {"profile", "maps", "--out", "b.json", "--windows", ""},
      {"profile", "maps", "--out", "b.json", "--windows", "16,0"},
      {"profile", "maps", "--out", "b.json", "--length=-1"},
      {"profile", "maps", "--out", "b.json", "--criterion", "taste"},
      {"inspect"},
      {"inspect", "b.json", "--maps", "maps"},
      {"plan"},
      {"plan", "b.json", "--shape", "1x1x1x1"},
      {"plan", "--shape", "32x32x128", "--length", "1"},
      {"plan", "--shape", "32x32x32x128x", "--length", "1"},
      {"plan", "--shape", "32x32x0x128", "--length", "1"},
      {"plan", "--shape", "32x32x32x128"},
      {"plan", "--shape", "32x32x32x128", "--length=-5"},
      {"plan", "--shape", "32x32x32x128", "--length", "0x10"},
      {"plan", "--shape", "32x32x32x128", "--length", "8", "--batch=-1"},
      {"plan", "--shape", "32x32x32x128", "--length", "8", "--type", "f8"},
      {"eval", "--model", "m", "--text", "t"},
      {"generate", "--model", "m"},
      {"generate", "--model", "m", "--prompt", "p", "--tokens", "0"},
      {"generate", "--model", "m", "--prompt", "p", "--engine", "steam"},
      {"generate", "--model", "m", "--prompt", "p", "--threads", "2"},
      {"record", "--model", "m", "--text", "t", "--out", "o", "--threads=-1"},
      {"generate", "--model", "m", "--prompt", "p", "--seed=-1"}};
  for (const auto& arguments : wrong) {
    const tool_result result = run_headwise(arguments);
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    EXPECT_EQ(result.code, 2) << line << result.out << result.err;
    EXPECT_FALSE(result.err.empty()) << line;
  }
}

TEST(CommandLine, WhatIsWrongIsSaidInTheUsersWords) {
  const auto said = [](const std::vector<std::string>& arguments) {
    return run_headwise(arguments).err;
  };
  EXPECT_TRUE(contains(said({"cook"}), "'cook'"));
  EXPECT_TRUE(contains(said({"--cook"}), "'--cook'"));
  const std::string negative = said({"plan", "--shape", "1x1x1x1", "--length=-5"});
  EXPECT_TRUE(contains(negative, "--length") && contains(negative, "'-5'")) << negative;
  const std::string none =
      said({"record", "--model", "m", "--text", "t", "--out", "o", "--prompts", "0"});
  EXPECT_TRUE(contains(none, "'0' is not a whole number")) << none;
  EXPECT_LT(none.size(), 200U) << none;
  const std::string empty = said({"profile", "maps", "--out", "b.json", "--windows", ""});
  EXPECT_TRUE(contains(empty, "--windows") && contains(empty, "''")) << empty;
  const std::string no_number = said({"profile", "maps", "--out", "b.json", "--target", "nan"});
  EXPECT_TRUE(contains(no_number, "--target") && contains(no_number, "nan")) << no_number;
}

TEST(CommandLine, WhatCannotBePrintedIsAFailure) {
  class full_device : public std::streambuf {
  } nowhere;  // takes nothing
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--version"},
        {"record", "--help"},
        {"plan", "--shape", "32x32x32x128", "--length", "8"}}) {
    const tool_result result = run_headwise(arguments, &nowhere);
    EXPECT_EQ(result.code, 1) << arguments.front();
    EXPECT_TRUE(contains(result.err, "headwise: standard output: ")) << result.err;
  }
}

// Else what is printed to a stream that is not there goes into the file.
TEST(StandardStreams, AreNoFileThatIsOpenedLater) {
  const auto without_streams = [] {
    for (const int stream : {0, 1, 2}) close(stream);
    occupy_standard_streams();
    const bool is_lost = write(STDOUT_FILENO, "x", 1) < 0;
    _exit(open("/dev/null", O_RDONLY) > 2 && is_lost ? 0 : 1);
  };
  EXPECT_EXIT(without_streams(), testing::ExitedWithCode(0), "");
}

TEST(CommandLine, MissingFilesAreNamed) {
  const std::vector<std::vector<std::string>> absent = {
      {"record", "--model", "no-such.gguf", "--text", "t", "--out", "o"},
      {"profile", "no-such.safetensors", "--out", "b.json"},
      {"inspect", "no-such.json"},
      {"plan", "no-such.json"},
      {"eval", "--model", "no-such.gguf", "--text", "t", "--blueprint", "b.json"},
      {"generate", "--model", "no-such.gguf", "--prompt", "p"}};
  for (const auto& arguments : absent) {
    const tool_result result = run_headwise(arguments);
    EXPECT_EQ(result.code, 1) << arguments.front();
    EXPECT_TRUE(contains(result.err, "no-such.")) << result.err;
  }
}

}  // namespace
}  // namespace headwise_tests
