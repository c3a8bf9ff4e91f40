// SPDX-License-Identifier: Apache-2.0
//
// A folder with a small made model and texts for it, and the commands that most tests begin with.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/gguf_builder.hpp"
#include "tool_run.hpp"

#include "headwise/io/blueprint_json.hpp"
#include "support/files.hpp"

namespace headwise_tests {

namespace fs = std::filesystem;
using json = nlohmann::json;

class Pipeline : public testing::Test {
 protected:
  Pipeline() {
    folder_.write("model.gguf", made_model{}.file().bytes());
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the cat, number " + std::to_string(i) + ", sat.\n";
    folder_.write("text.txt", text);
    folder_.write("blank.txt", " \n\t \n");
    folder_.write("short.txt", "too short");
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] tool_result record(const std::string& text, const std::string& out,
                                   const std::string& length = "48") const {
    return run_headwise({"record", "--model", path("model.gguf"), "--text", path(text), "--out",
                         path(out), "--prompts", "3", "--length", length});
  }
  [[nodiscard]] tool_result profile(const std::string& target = "0.9",
                                    const std::string& threads = "0") const {
    return run_headwise({"profile", path("maps"), "--target", target, "--windows", "4,16",
                         "--threads", threads, "--out", path("b.json")});
  }
  [[nodiscard]] tool_result eval(const std::string& model, const std::string& text) const {
    return run_headwise({"eval", "--model", path(model), "--text", path(text), "--blueprint",
                         path("b.json"), "--windows-of", "100", "--tokens", "300", "--cache-type",
                         "f32", "--json", path("summary.json")});
  }

  temporary_folder folder_;
};

}  // namespace headwise_tests
