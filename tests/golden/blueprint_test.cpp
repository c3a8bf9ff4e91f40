// SPDX-License-Identifier: Apache-2.0
//
// The blueprint's file form must not drift: the bytes of one that uses all of it are kept beside
// this file, and the shipped JSON Schema accepts them and refuses what the reader refuses.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/files.hpp"
#include "support/made_blueprint.hpp"

namespace {

using namespace headwise_tests;

const std::filesystem::path source = HEADWISE_SOURCE_DIR;

TEST(golden_blueprint, bytes_are_those_of_the_kept_file) {
  const std::string kept = read_file(source / "tests/golden/blueprint.json");
  EXPECT_EQ(text_of(made_blueprint()), kept);
  EXPECT_EQ(blueprint_of(kept), made_blueprint());
  EXPECT_EQ(headwise::load_blueprint(source / "tests/golden/blueprint.json"), made_blueprint());
}

TEST(golden_blueprint, schema_agrees_with_the_reader) {
  if (std::system("python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null") !=
      0)
    GTEST_SKIP() << "python3 with jsonschema 4 is not installed";
  const std::string kept = read_file(source / "tests/golden/blueprint.json");
  const temporary_folder folder;
  std::string arguments;
  const auto add = [&](const std::string& verdict, const std::string& text) {
    const std::string name = std::to_string(arguments.size()) + ".json";
    arguments += " " + verdict + ":" + folder.write(name, text).string();
  };
  add("valid", kept);
  add("valid",
      text_of(headwise::uniform_blueprint({1, 1, 1, 1}, headwise::make_spec(headwise::global{}))));
  add("valid", text_of(headwise::uniform_blueprint(
                   {1, 1, 1, 1}, headwise::make_spec(headwise::special_tokens(
                                     headwise::token_classes::sink)))));  // not measured
  add("valid", with(kept, "\"recovery_target\": 0.975", "\"recovery_target\": 0, \"budget\": 0.4"));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"version\": 1", "\"version\": 2"},
           {"\"layers\": 2", "\"layers\": 0"},
           {"\"window\": 4096", "\"window\": 4.7"},
           {"\"window\": 4096", "\"window\": 4096, \"windw\": 4"},
           {"\"window\": 4096", "\"ids\": [1]"},
           {"\"recovery_target\": 0.975", "\"recovery_target\": 1.5"},
           {"\"recovery_target\": 0.975", "\"recovery_target\": 0.975, \"budget\": 1.5"},
           {"\"aggregation\": \"worst\"", "\"aggregation\": \"best\""},
           {"\"tool\"", "\"tools\""},
           {"{\"policy\": \"learned\", ", "{"},
           {"[0, 1, 2]", "[0, 1, 1]"},
           {"[40, 41, 42]", "[40, 41, -1]"}}) {
    const std::string bad = with(kept, from, to);
    EXPECT_THROW(static_cast<void>(blueprint_of(bad)), headwise::error) << to;
    add("invalid", bad);
  }
  const std::string command = "python3 '" + (source / "tests/golden/validate.py").string() + "' '" +
                              (source / "include/headwise/io/blueprint.schema.json").string() +
                              "'" + arguments;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
