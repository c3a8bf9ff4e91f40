// SPDX-License-Identifier: Apache-2.0
//
// The options of the program's commands, and what they have in common.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "llama_cpp/takeover.hpp"

namespace headwise_llama_cpp {

// Which attention a text goes through.
enum class engine_kind { takeover, emulation, stock, stock_flash };

struct run_options {
  std::filesystem::path model, blueprint, text;
  std::string prompt;
  engine_kind engine = engine_kind::takeover;
  row_type rows = row_type::f16;
  takeover_form form = takeover_form::automatic;
  std::size_t tokens = 256;
  int threads = 2;
};

struct record_options {
  std::filesystem::path model, text, out;
  std::size_t prompts = 8, length = 512;
  headwise::token_count sinks = 4;
  int threads = 2;
};

struct compare_options {
  std::filesystem::path model, blueprint;
  std::uint32_t random_layers = 0;  // of a random model in place of a file
  std::vector<std::size_t> lengths{512, 2048, 8192};
  std::vector<int> threads{1, 2};
  row_type rows = row_type::f16;
  std::size_t tokens = 48;             // that are timed at each length
  headwise::token_count window = 512;  // of the heads that have one, where there is no blueprint
};

// Writes what follows a prompt (run_generate), or says how well the model foretells a text
// (run_eval), with speed and memory on standard error.
void run_generate(const run_options& options);
void run_eval(const run_options& options);
// Attention maps of pieces of a text, for `headwise profile`.
void run_record(const record_options& options);
// Tokens per second of stock llama.cpp and of the takeover, in one run.
void run_compare(const compare_options& options);

// The blueprint of the file; without one, every head global.
[[nodiscard]] headwise::blueprint read_plan(const llama_model& model,
                                            const std::filesystem::path& path);
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

}  // namespace headwise_llama_cpp
