// SPDX-License-Identifier: Apache-2.0
//
// headwise-llama-cpp as it is called: what its tables must say whatever the machine, and what it
// refuses.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models.hpp"

#include "headwise/io/blueprint_json.hpp"

namespace headwise_tests {
namespace {

struct program_run {
  int code = -1;
  std::string text;                            // both outputs
  std::vector<std::vector<std::string>> rows;  // of the table, but the first two
};

program_run run_program(const std::string& arguments) {
  program_run result;
  FILE* const pipe = popen((HEADWISE_LLAMA_CPP_PROGRAM " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "no process";
    return result;
  }
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    result.text.append(buffer, count);
  result.code = WEXITSTATUS(pclose(pipe));
  std::istringstream lines(result.text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") && !line.starts_with("|-")) continue;
    if (++number <= 2) continue;
    result.rows.emplace_back();
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');)
      result.rows.back().push_back(cell.substr(1, cell.size() - 2));
  }
  return result;
}

const std::string engines[] = {"stock, flash attention", "stock, without", "takeover, all global",
                               "takeover, blueprint"};

// The tiny model's rows of 16 bits for so many tokens.
double mebibytes_of(std::size_t tokens) {
  const auto model = load_quietly(tiny_model);
  const headwise::model_shape shape = hlc::shape_of(*model);
  return 4.0 * static_cast<double>(shape.heads() * shape.head_dim * tokens) / (1U << 20U);
}

TEST(llama_cpp_program, compares_all_engines_behind_each_length) {
  const program_run run = run_program("compare --model " + tiny_model.string() +
                                      " --lengths 40,1500 --threads 1,2 --tokens 6 --window 16");
  ASSERT_EQ(run.code, 0) << run.text;
  ASSERT_EQ(run.rows.size(), 8U) << run.text;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto& row = run.rows[i];
    ASSERT_EQ(row.size(), 7U) << run.text;
    EXPECT_EQ(row[0], i < 4 ? "40" : "1500");
    EXPECT_EQ(row[1], engines[i % 4]);
    for (const std::size_t threads : {0U, 1U}) {
      const double ms = std::stod(row[3 + 2 * threads]), rate = std::stod(row[4 + 2 * threads]);
      EXPECT_GT(ms, 0.0);
      EXPECT_NEAR(rate * ms / 1000.0, 1.0, 0.1);
    }
  }
  // 1,500 tokens and two turns of five for each number of threads, in blocks of 256.
  for (const std::size_t row : {0U, 1U, 4U, 5U})
    EXPECT_NEAR(std::stod(run.rows[row][2]), mebibytes_of(1536), 0.05) << row;
  const double all = std::stod(run.rows[6][2]), half = std::stod(run.rows[7][2]);
  EXPECT_GT(all, mebibytes_of(1500 + 256));         // its rows, and llama.cpp's cells
  EXPECT_LT(half, all - 0.4 * mebibytes_of(1500));  // every other head has a window
}

TEST(llama_cpp_program, counts_the_memory_of_each_engine) {
  const program_run run = run_program("memory --model " + tiny_model.string() +
                                      " --lengths 300,900 --threads 1 --window 16");
  ASSERT_EQ(run.code, 0) << run.text;
  ASSERT_EQ(run.rows.size(), 8U) << run.text;
  const double rounding = 0.11;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto& row = run.rows[i];
    ASSERT_EQ(row.size(), 8U) << run.text;
    EXPECT_EQ(row[0], i < 4 ? "300" : "900");
    EXPECT_EQ(row[1], engines[i % 4]);
    const auto number = [&](std::size_t of, std::size_t column) {
      return std::stod(run.rows[of][column]);
    };
    const std::size_t first = i / 4 * 4;
    EXPECT_GE(number(i, 3) + rounding, number(i, 2));  // at most, at the end
    EXPECT_GT(number(i, 2), number(i, 4));             // with the model alone
    EXPECT_NEAR(number(first, 2) - number(i, 2), number(i, 6), rounding);
    EXPECT_NEAR(number(first, 5) - number(i, 5), number(i, 7), rounding);
  }
  EXPECT_NEAR(std::stod(run.rows[0][5]), mebibytes_of(512), 0.06);
  EXPECT_NEAR(std::stod(run.rows[5][5]), mebibytes_of(1024), 0.06);
  EXPECT_LT(std::stod(run.rows[7][5]), std::stod(run.rows[6][5]));
}

TEST(llama_cpp_program, refuses_lengths_that_do_not_ascend) {
  const std::string compare = "compare --model " + tiny_model.string() + " --threads 1 --tokens 8 ";
  for (const char* lengths : {"64,32", "64,64", "64,70"}) {
    const program_run run = run_program(compare + "--lengths " + lengths);
    EXPECT_EQ(run.code, 1) << lengths;
    EXPECT_NE(run.text.find("at least the 10 tokens apart"), std::string::npos) << run.text;
  }
  EXPECT_EQ(run_program(compare + "--lengths 64,74").code, 0);
}

TEST(llama_cpp_program, refuses_what_is_no_command) {
  const std::string model = " --model " + tiny_model.string();
  for (const std::string& arguments :
       {std::string(), std::string("compare"), "compare --tokens 0" + model,
        "compare --lengths 1" + model, "compare --rows f64" + model, "compare --rows 1" + model,
        "compare --window 0" + model, std::string("compare --random-layers 513"),
        std::string("compare --random-layers 0"), "memory --random-layers 1" + model})
    EXPECT_EQ(run_program(arguments).code, 2) << arguments;
  const program_run missing = run_program("memory --model nowhere.gguf --lengths 40");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.text.find("headwise-llama-cpp: nowhere.gguf: unreadable: got No such file"),
            std::string::npos)
      << missing.text;
  const program_run help = run_program("compare --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.text.find("{f32,f16,bf16,int8,int4,int8+int4}"), std::string::npos) << help.text;
}

TEST(llama_cpp_program, refuses_texts_that_llama_cpp_cannot_count) {
  const program_run run = run_program("compare --model nowhere.gguf --threads 1 " +
                                      std::string("--lengths 2147483644 --tokens 4"));
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.text.find("2147483649 tokens"), std::string::npos) << run.text;
  const program_run wide = run_program("compare --model nowhere.gguf --threads 1 " +
                                       std::string("--lengths 40 --tokens 2147483647"));
  EXPECT_EQ(wide.code, 1);
  EXPECT_NE(wide.text.find("at most 2147483647"), std::string::npos) << wide.text;
}

TEST(llama_cpp_program, reads_the_blueprint_before_it_measures) {
  const temporary_folder folder;
  const std::string bad = folder.write("bad.json", "{}").string();
  headwise::blueprint other =
      headwise::uniform_blueprint({1, 2, 2, 8}, headwise::make_spec(headwise::global{}));
  const std::string unfit = (folder.path() / "unfit.json").string();
  headwise::save_blueprint(unfit, other);
  const std::string model = " --model " + tiny_model.string() + " --threads 1 --lengths 40";
  for (const char* const command : {"compare", "memory"}) {
    const program_run unread = run_program(command + model + " --blueprint " + bad);
    EXPECT_EQ(unread.code, 1);
    EXPECT_TRUE(unread.text.starts_with("headwise-llama-cpp: " + bad)) << unread.text;
    const program_run run = run_program(command + model + " --blueprint " + unfit);
    EXPECT_EQ(run.code, 1);
    EXPECT_TRUE(run.rows.empty()) << run.text;  // nor the table's head twice
    EXPECT_NE(run.text.find(unfit + " is not for " + tiny_model.string()), std::string::npos)
        << run.text;
  }
}

TEST(llama_cpp_program, says_when_its_table_was_lost) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no device that is full";
  FILE* const pipe = popen((HEADWISE_LLAMA_CPP_PROGRAM " --help 2>&1 >/dev/full"), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[256] = {};
  static_cast<void>(std::fread(buffer, 1, sizeof buffer - 1, pipe));
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 1);
  EXPECT_TRUE(std::string(buffer).starts_with("headwise-llama-cpp: standard output")) << buffer;
}

#ifdef __linux__
// The pipe ends where the last process that writes to it does.
TEST(llama_cpp_program, takes_its_contestant_along) {
  if (!std::filesystem::exists("/proc/self/task/" + std::to_string(::getpid()) + "/children"))
    GTEST_SKIP() << "the system does not say which children a process has";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execl(HEADWISE_LLAMA_CPP_PROGRAM, "headwise-llama-cpp", "memory", "--model",
            tiny_model.c_str(), "--lengths", "100000", "--threads", "1", nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  ASSERT_GT(program, 0);
  const std::string children =
      "/proc/" + std::to_string(program) + "/task/" + std::to_string(program) + "/children";
  const auto has_child = [&] {
    std::string id;
    return static_cast<bool>(std::ifstream(children) >> id);
  };
  for (int i = 0; i < 1000 && !has_child(); ++i) ::usleep(10'000);
  EXPECT_TRUE(has_child());
  ::kill(program, SIGTERM);
  ::waitpid(program, nullptr, 0);
  const auto ends_soon = [&] {
    pollfd end{ends[0], POLLIN, 0};
    const int patience = 10'000;  // milliseconds
    char byte = 0;
    while (::poll(&end, 1, patience) == 1)
      if (::read(ends[0], &byte, 1) == 0) return true;
    return false;
  };
  EXPECT_TRUE(ends_soon()) << "a contestant goes on";
  ::close(ends[0]);
}
#endif

}  // namespace
}  // namespace headwise_tests
