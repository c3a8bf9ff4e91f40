// SPDX-License-Identifier: Apache-2.0

#include "tool.hpp"

#include <exception>
#include <iostream>

#include "commands.hpp"
#include "terminal.hpp"

#include "headwise/version.hpp"

namespace headwise_tool {
namespace {

constexpr int bad_data = 1;
constexpr int bad_usage = 2;

void describe(CLI::App& app) {
  app.name("headwise");
  app.description("Lets every attention head keep only the part of the KV cache that it looks at.");
  app.set_version_flag("--version", "headwise " HEADWISE_VERSION_STRING);
  app.require_subcommand(1);
  app.footer(
      "The usual way, on a model of your own:\n"
      "  headwise record  --model M.gguf --text some.txt --out maps\n"
      "  headwise profile maps --target 0.95 --out blueprint.json\n"
      "  headwise inspect blueprint.json --html report.html --maps maps\n"
      "  headwise eval    --model M.gguf --text other.txt --blueprint blueprint.json\n\n"
      "'headwise COMMAND --help' explains each. Exit codes: 0 done, 1 bad data or a failure,\n"
      "2 a wrong command line.\n");
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app;
  describe(app);
  add_record(app);
  add_profile(app);
  add_inspect(app);
  add_plan(app);
  add_eval(app);
  add_generate(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : bad_usage;
  }
}

}  // namespace

int run_tool(int argc, const char* const* argv) noexcept {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "headwise: not enough memory\n";
  } catch (const std::exception& e) {
    std::cerr << "headwise: " << harmless(e.what()) << '\n';
  }
  return bad_data;
}

}  // namespace headwise_tool
