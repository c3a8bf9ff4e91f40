// SPDX-License-Identifier: Apache-2.0
//
// What values of options must be, beyond what the parser knows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headwise/core/types.hpp"

namespace headwise_tool {

// What is wrong with `text` as a whole number from low to high, in words; empty where nothing is.
[[nodiscard]] std::string complaint_on_count(const std::string& text, std::uint64_t low,
                                             std::uint64_t high);

// The same of the name of a file or folder to write.
[[nodiscard]] std::string complaint_on_name(const std::string& text);

// Throws usage_error naming the option where the value is not from 0 to 1.
void require_share(const std::string& option, double value);

// The tokens of --length. Throws headwise::error(out_of_range) where no sequence is so long.
[[nodiscard]] headwise::token_count sequence_length(std::uint64_t tokens);

// Throws usage_error naming the option where `out` is one of the files that the command reads, by
// this name or another. inputs: files, and folders of files; empty names are left out.
void require_no_input(const std::string& option, const std::filesystem::path& out,
                      const std::vector<std::filesystem::path>& inputs);

// Throws usage_error where both are given and are one file.
void require_apart(const std::string& option, const std::filesystem::path& out,
                   const std::string& other_option, const std::filesystem::path& other);

// As require_no_input of a file to be written, where the option is given: an empty name is none.
// Throws headwise::error(unreadable) where it cannot be written, so that no work is done in vain.
void require_output(const std::string& option, const std::filesystem::path& out,
                    const std::vector<std::filesystem::path>& inputs);

}  // namespace headwise_tool
