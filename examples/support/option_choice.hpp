// SPDX-License-Identifier: Apache-2.0
//
// An option of a command line whose value is one of a few words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

template <class T>
void add_choice(CLI::App& command, const std::string& name, T& value,
                const std::vector<std::pair<std::string, T>>& choices,
                const std::string& description) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  const auto choose = [&value, choices](const std::string& chosen) {
    for (const auto& [word, meaning] : choices)
      if (word == chosen) value = meaning;
  };
  command.add_option_function<std::string>(name, choose, description)->check(CLI::IsMember(words));
}
