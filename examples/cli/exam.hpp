// SPDX-License-Identifier: Apache-2.0
//
// What a suite asks of a model: texts in which some tokens are to be predicted. All that comes
// before is fed in steps of step_tokens, and rows are dropped as it goes by: a question at the end
// was not in view when the cache let go of what it asks for.
//
// The same options and seed make the same texts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "prompts.hpp"

namespace headwise_tool {

// Tokens from `first_answer` on are to be predicted, each from those before it.
struct exam {
  token_ids ids;
  std::size_t first_answer = 1;
};

enum class task_kind { text, passkey, key_values, copy, dialogue };
inline constexpr task_kind task_kinds[] = {task_kind::text, task_kind::passkey,
                                           task_kind::key_values, task_kind::copy,
                                           task_kind::dialogue};
[[nodiscard]] constexpr std::string_view to_string(task_kind kind) noexcept {
  constexpr std::string_view names[] = {"text", "passkey", "key_values", "copy", "dialogue"};
  return names[static_cast<std::size_t>(kind)];
}

struct task_options {
  std::string name;
  task_kind kind = task_kind::text;
  std::filesystem::path text;  // of kind text: a file, of which every token is to be predicted
  std::size_t samples = 8;     // texts, at depths from the beginning to the end
  std::uint64_t seed = 1;
};

// length: tokens of each text, at most; a made text comes as close as its pieces allow. Throws
// headwise::error where the text is too short, or the length for the task.
[[nodiscard]] std::vector<exam> make_exams(const engine& model, const task_options& task,
                                           std::size_t length);

}  // namespace headwise_tool
