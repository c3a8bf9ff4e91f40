// SPDX-License-Identifier: Apache-2.0
//
// Who is measured beside whom: llama.cpp as it is, with flash attention and without, and the
// takeover, with every head global and with a blueprint. One owner thread each; the model must
// outlive them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "llama_cpp/handles.hpp"
#include "llama_cpp/model_support.hpp"
#include "llama_cpp/row_store.hpp"

namespace headwise_llama_cpp {

// In tokens, as llama.cpp can count.
inline constexpr std::size_t longest_text = std::numeric_limits<llama_pos>::max();

// What the commands have in common.
struct contest_options {
  std::filesystem::path model, blueprint;
  std::optional<headwise::blueprint> plan;  // what the blueprint's file holds
  std::uint32_t random_layers = 0;          // of a random model in place of a file
  std::vector<std::size_t> lengths{512, 2048, 8192};
  std::vector<int> threads{1, 2};
  row_type rows = row_type::f16;
  headwise::token_count window = 512;  // of the heads that have one, where there is no blueprint
};

enum class contestant_kind { stock_flash, stock, all_global, blueprint };
inline constexpr contestant_kind contestant_kinds[] = {
    contestant_kind::stock_flash, contestant_kind::stock, contestant_kind::all_global,
    contestant_kind::blueprint};

struct contestant {
  std::string name;
  std::function<void(std::span<const llama_token>)> feed;
  // Of llama.cpp's cells and of what headwise's memory resource gave out: now, and at most so far.
  std::function<std::size_t()> held_bytes, peak_bytes;
  llama_context* context;
};

// Reads the blueprint, if there is one: before anything that takes long.
void read_plan(contest_options& options);

// Throws headwise::error naming both files where the plan is for another model.
[[nodiscard]] model_handle load_model(const contest_options& options);

// capacity: the most tokens that it will be fed.
[[nodiscard]] contestant make_contestant(contestant_kind kind, llama_model& model,
                                         const contest_options& options, std::size_t capacity,
                                         int threads);

// Ids from all over a vocabulary, the same for every contestant.
class id_source {
 public:
  explicit id_source(const llama_model& model)
      : vocabulary_(static_cast<std::int64_t>(vocabulary_size(model))) {}
  [[nodiscard]] llama_token next() noexcept {
    return id_ = static_cast<llama_token>((std::int64_t{id_} * 31 + 7) % vocabulary_);
  }
  [[nodiscard]] std::vector<llama_token> next(std::size_t count);

 private:
  std::int64_t vocabulary_;
  llama_token id_ = 1;
};

}  // namespace headwise_llama_cpp
