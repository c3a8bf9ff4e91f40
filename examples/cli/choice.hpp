// SPDX-License-Identifier: Apache-2.0
//
// An option whose value is one of a few words.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace headwise_tool {

template <class T>
CLI::Option* add_choice(CLI::App& command, const std::string& name, T& value,
                        const std::vector<std::pair<std::string, T>>& choices,
                        const std::string& description) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  const auto choose = [&value, choices](const std::string& chosen) {
    value = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) {
              return choice.first == chosen;
            })->second;
  };
  return command.add_option_function<std::string>(name, choose, description)
      ->check(CLI::IsMember(words));
}

}  // namespace headwise_tool
