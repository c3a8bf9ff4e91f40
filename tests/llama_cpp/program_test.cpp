// SPDX-License-Identifier: Apache-2.0
//
// headwise-llama-cpp as it is called: what its tables must say whatever the machine, and what it
// refuses.
#include <cstdio>
#include <iostream>
#include <sstream>

#include <sys/wait.h>

#include "models.hpp"

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
        "compare --lengths 1" + model, "compare --rows f64" + model,
        "memory --random-layers 1" + model})
    EXPECT_NE(run_program(arguments).code, 0) << arguments;
  const program_run missing = run_program("memory --model nowhere.gguf --lengths 40");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.text.find("nowhere.gguf"), std::string::npos) << missing.text;
}

}  // namespace
}  // namespace headwise_tests
