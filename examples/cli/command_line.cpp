// SPDX-License-Identifier: Apache-2.0
//
// The options of all commands. The one file that knows the option parser, which takes long to
// compile.

#include "command_line.hpp"

#include <concepts>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>

#include <CLI/CLI.hpp>

#include "budget.hpp"
#include "cache_type.hpp"
#include "eval.hpp"
#include "generate.hpp"
#include "inspect.hpp"
#include "option_checks.hpp"
#include "plan.hpp"
#include "profile.hpp"
#include "record.hpp"
#include "usage_error.hpp"

#include "headwise/core/printable.hpp"
#include "headwise/version.hpp"
#include "support/option_choice.hpp"
#include "support/standard_output.hpp"

namespace headwise_tool {
namespace {

constexpr int bad_data = 1;
constexpr int bad_usage = 2;

void add_cache_type(CLI::App& command, const std::string& name, cache_type& value) {
  std::vector<std::pair<std::string, cache_type>> choices;
  for (const cache_type type : cache_types) choices.emplace_back(to_string(type), type);
  add_choice<cache_type>(command, name, value, choices,
                         "What keys and values are stored as; default: f16");
}

using option_check = std::function<std::string(const std::string&)>;

// Of options that take whole numbers from `low` on: the parser would wrap negative ones.
template <std::unsigned_integral T>
[[nodiscard]] option_check count_from(T low, T high = std::numeric_limits<T>::max()) {
  return [low, high](const std::string& text) { return complaint_on_count(text, low, high); };
}

// An option that is such a number. Its default is shown.
template <std::unsigned_integral T>
void add_count(CLI::App& command, const std::string& name, T& value, const option_check& check,
               const std::string& description) {
  command.add_option(name, value, description)->capture_default_str()->check(check);
}

void add_model_and_engine(CLI::App& command, std::filesystem::path& model, engine_choice& engine,
                          bool required) {
  command.add_option("--model", model, "Model, a GGUF file")->required(required);
  add_choice<engine_kind>(
      command, "--engine", engine.kind,
      {{"small", engine_kind::small}, {"llama.cpp", engine_kind::llama_cpp}},
      "small (default): Llama architectures, one thread; llama.cpp: whatever it runs");
}

// The model, and what runs it, with how many threads.
void add_model(CLI::App& command, std::filesystem::path& model, engine_choice& engine,
               bool required = true) {
  add_model_and_engine(command, model, engine, required);
  add_count(command, "--threads", engine.threads, count_from(0U, 1024U),
            "Threads of llama.cpp; 0: one for each core");
}

void add_text(CLI::App& command, evaluated_text& what) {
  command.add_option("--text", what.text, "Text that the profile did not see");
  add_count(command, "--windows-of", what.window, count_from(std::size_t{1}),
            "Tokens that each empty cache is fed");
  add_count(command, "--tokens", what.tokens, count_from(std::size_t{1}),
            "Tokens in all, in whole windows; fewer where the text is shorter");
}

// A file or folder to write.
CLI::Option* add_output(CLI::App& command, const std::string& name, std::filesystem::path& value,
                        const std::string& description) {
  return command.add_option(name, value, description)->check(complaint_on_name);
}

void add_record(CLI::App& app) {
  const auto options = std::make_shared<record_options>();
  CLI::App* const command = app.add_subcommand(
      "record", "Run a text through a model and write down its attention maps (safetensors).");
  add_model(*command, options->model, options->engine);
  command->add_option("--text", options->text, "Text; prompts are consecutive pieces of it")
      ->required();
  add_output(*command, "--out", options->out,
             "A folder (one file a prompt), or FILE.safetensors (all prompts)")
      ->required();
  add_count(*command, "--prompts", options->prompts, count_from(std::size_t{1}),
            "How many prompts");
  add_count(*command, "--length", options->length, count_from(std::size_t{1}),
            "Tokens of each prompt");
  add_count(*command, "--look-back", options->look_back, count_from(std::size_t{0}),
            "End each prompt with its first so many tokens, as 128, and write down the queries of "
            "these alone: what shows best which heads look things up");
  add_count(*command, "--sinks", options->sinks, count_from(headwise::token_count{0}),
            "How many first tokens count as sinks");
  add_choice<headwise::element_type>(*command, "--dtype", options->type,
                                     {{"f16", headwise::element_type::f16},
                                      {"bf16", headwise::element_type::bf16},
                                      {"f32", headwise::element_type::f32}},
                                     "Element type of the maps; default: f16");
  command->footer(
      "Example:\n"
      "  headwise record --model M.gguf --text wiki.txt --prompts 8 --length 512 --out maps\n"
      "  headwise record --model M.gguf --text wiki.txt --length 640 --look-back 128 --out back\n"
      "A map has length^2 weights for each query head, or look-back times length: 8 prompts of\n"
      "512 tokens on a model of 270 query heads take 1.1 GB. A recording that breaks off leaves\n"
      "no half file.");
  command->callback([options] { run_record(*options); });
}

void add_profile_choices(CLI::App& command, profile_options& options) {
  using headwise::group_aggregation;
  using headwise::plan_granularity;
  using headwise::recovery_criterion;
  add_choice<recovery_criterion>(
      command, "--criterion", options.classify.criterion,
      {{"mass", recovery_criterion::mass}, {"distance", recovery_criterion::distance}},
      "mass (default): kept attention >= target; distance: the paper's |A - A'| <= 1 - target");
  add_choice<group_aggregation>(command, "--aggregation", options.classify.aggregation,
                                {{"worst", group_aggregation::worst},
                                 {"mean", group_aggregation::mean},
                                 {"max", group_aggregation::max}},
                                "Which counts of the query heads of a group; default: worst");
  add_choice<plan_granularity>(
      command, "--granularity", options.classify.granularity,
      {{"head", plan_granularity::head}, {"layer", plan_granularity::layer}},
      "Class heads one by one, or a layer at a time; default: head");
  command
      .add_option(
          "--windows", options.windows,
          "Windows to try, as 16,32,64; default: nine from 16 to 512, with a budget 8,16,24 "
          "and so on up to the length, from 64 on four to each doubling")
      ->delimiter(',')
      ->check(count_from(headwise::token_count{1}));
  command
      .add_option("--heavy-hitters", options.measure.ladder.heavy_hitters,
                  "Try the most attended tokens behind each window too: so many, as fractions of "
                  "the length (FastGen: 0.3); default: none. Heads that these do not serve keep "
                  "everything, so fewer can make a larger cache; the summary says where")
      ->delimiter(',')
      ->check(CLI::Range(1e-6, 1.0));
  command
      .add_option("--even-pools", options.measure.ladder.even_pools,
                  "Try windows of so many tokens with as many of the most attended behind them "
                  "(H2O): best for budgets of few rows; default: none")
      ->delimiter(',')
      ->check(count_from(headwise::token_count{1}));
  command
      .add_option("--length", options.length,
                  "Sequence length at which rows are counted; 0: that of the first prompt")
      ->check(count_from(std::uint64_t{0}));
  add_count(command, "--threads", options.threads, count_from(0U, 1024U),
            "Threads that read maps, any number gives the same bytes, and of llama.cpp; 0: one for "
            "each core");
  command.add_flag("!--no-learned", options.measure.ladder.learn_ids,
                   "Do not learn token ids for each head");
}

void add_inspect(CLI::App& app) {
  const auto options = std::make_shared<inspect_options>();
  CLI::App* const command =
      app.add_subcommand("inspect", "Show a blueprint: on the terminal, as a page, as a picture.");
  command->add_option("blueprint", options->blueprint, "Blueprint")->required();
  CLI::Option* const html =
      add_output(*command, "--html", options->html, "Write a page that needs nothing else");
  command
      ->add_option("--maps", options->maps,
                   "Recorded maps: the page shows what each head of the first prompt looks at")
      ->needs(html);
  add_output(*command, "--svg", options->svg, "Write the head map as a picture");
  command->add_option("--eval", options->measured,
                      "Figures of 'headwise eval --json' for the page and the picture");
  command->add_option("--title", options->title,
                      "Name on page and picture; default: the model's own");
  command
      ->add_option("--length", options->length,
                   "Tokens at which bytes are stated; default: the blueprint's length")
      ->check(count_from(std::uint64_t{0}));
  add_cache_type(*command, "--type", options->type);
  command->footer(
      "Examples:\n"
      "  headwise inspect blueprint.json\n"
      "  headwise inspect blueprint.json --html report.html --maps maps --eval summary.json");
  command->callback([options] { run_inspect(*options); });
}

void add_plan(CLI::App& app) {
  const auto options = std::make_shared<plan_options>();
  CLI::App* const command = app.add_subcommand(
      "plan", "Say how many bytes of keys and values a cache needs, against a full one.");
  command->add_option("blueprint", options->blueprint, "Blueprint");
  command->add_option("--shape", options->shape,
                      "Instead: LAYERSxQUERY_HEADSxKV_HEADSxHEAD_DIM of a full cache");
  command
      ->add_option("--length", options->length,
                   "Tokens of a sequence; default: the length that the blueprint states")
      ->check(count_from(std::uint64_t{0}));
  add_count(*command, "--batch", options->batch, count_from(std::uint64_t{1}), "Sequences");
  add_cache_type(*command, "--type", options->type);
  command->footer(
      "Examples:\n"
      "  headwise plan --shape 32x32x32x128 --type bf16 --length 2048\n"
      "  headwise plan blueprint.json --length 8192 --batch 16\n"
      "Counts keys and values. Exact for windows, sinks and every token; where a class keeps\n"
      "punctuation or learned tokens, it rests on how often they occurred in the profile.");
  command->callback([options] { run_plan(*options); });
}

void add_eval(CLI::App& app) {
  const auto options = std::make_shared<eval_options>();
  CLI::App* const command = app.add_subcommand(
      "eval", "Measure a blueprint on a text: bytes, perplexity, agreement with the full cache.");
  add_model(*command, options->model, options->engine, false);
  add_text(*command, *options);
  command->add_option("--blueprint", options->blueprints,
                      "Blueprint; with several, the first is the main one and all make a curve");
  add_cache_type(*command, "--cache-type", options->type);
  add_output(*command, "--json", options->json, "Write all figures to this file");
  command->add_option("--suite", options->suite,
                      "Instead of all above: many plans and tasks, as this file says; what --json "
                      "holds already is not run again");
  add_output(*command, "--html", options->html, "Page of a suite, which needs nothing else");
  command->footer(
      "Examples:\n"
      "  headwise eval --suite suite.json --json results.json --html report.html\n"
      "  headwise eval --model M.gguf --text test.txt --blueprint blueprint.json\n"
      "Runs the full cache, the blueprint, and two rivals that hold at least as many bytes:\n"
      "one window for every head, and one behind the first tokens.\n");
  command->callback([options] { run_eval(*options); });
}

void add_generate(CLI::App& app) {
  const auto options = std::make_shared<generate_options>();
  CLI::App* const command =
      app.add_subcommand("generate", "Continue a prompt, with or without a blueprint.");
  add_model(*command, options->model, options->engine);
  command->add_option("--prompt", options->prompt, "Text to continue")->required();
  command->add_option("--blueprint", options->blueprint, "Blueprint; without it, a full cache");
  add_count(*command, "--tokens", options->tokens, count_from(1U, 1000000U),
            "The most tokens to add; with the prompt, no more than the model's context");
  command->add_option("--temperature", options->sampling.temperature, "0: the likeliest token")
      ->capture_default_str();
  command
      ->add_option("--top-p", options->sampling.top_p,
                   "Draw from the fewest likeliest tokens that hold this probability")
      ->capture_default_str();
  add_count(*command, "--seed", options->sampling.seed, count_from(std::uint64_t{0}),
            "Same seed, same text");
  command->footer(
      "Example:\n"
      "  headwise generate --model M.gguf --prompt 'Once upon a time' --blueprint blueprint.json\n"
      "The text goes to standard output, what was kept to standard error.");
  command->callback([options] { run_generate(*options); });
}

// With what it is measured on, which nothing else of the command needs.
void add_max_loss(CLI::App& command, profile_options& options) {
  CLI::Option* const max_loss = command.add_option_function<std::string>(
      "--max-loss",
      [&options](const std::string& text) { options.max_loss = parse_loss("--max-loss", text); },
      "Instead of both: the smallest budget with which the perplexity of --model on --text is "
      "measured to be at most so much above the full cache's, as 2%");
  add_model_and_engine(command, options.text.model, options.text.engine, false);
  add_text(command, options.text);
  for (const char* const needed : {"--model", "--text"})
    max_loss->needs(command.get_option(needed));
  for (const char* const other : {"--target", "--also", "--budget"})
    max_loss->excludes(command.get_option(other));
  for (const char* const part : {"--model", "--engine", "--text", "--windows-of", "--tokens"})
    command.get_option(part)->needs(max_loss)->group("With --max-loss");
}

void add_profile(CLI::App& app) {
  const auto options = std::make_shared<profile_options>();
  CLI::App* const command = app.add_subcommand(
      "profile", "Find the cheapest class for every head that keeps its attention; a blueprint.");
  command->add_option("maps", options->maps, "Recorded maps: files, or folders of them")
      ->required();
  add_output(*command, "--out", options->out, "The blueprint to write (JSON)")->required();
  const CLI::Option* const target =
      command
          ->add_option("--target", options->classify.recovery_target,
                       "Share of attention that each head must keep, from 0 to 1")
          ->capture_default_str();
  command
      ->add_option("--also", options->also,
                   "Further targets, as 0.9,0.98; written beside --out as NAME_0.9.json")
      ->delimiter(',');
  command->add_option("--budget", options->budget,
                      "Instead of a target for each head: 40% of a full cache's rows, 64MiB of "
                      "keys and values, or 64MiB@2048, at that length; --target is then what "
                      "each head keeps at least, default: 0");
  add_max_loss(*command, *options);
  add_cache_type(*command, "--type", options->type);
  add_profile_choices(*command, *options);
  command->footer(
      "Examples:\n"
      "  headwise profile maps --target 0.95 --out blueprint.json\n"
      "  headwise profile maps --budget 40% --out blueprint.json\n"
      "  headwise profile maps --max-loss 2% --model M.gguf --text other.txt --out blueprint.json\n"
      "  headwise profile a.safetensors b.safetensors --windows 32,64,128 --out blueprint.json\n"
      "--max-loss tries shares of the rows by bisection. What it writes was itself measured to be\n"
      "within the limit; since a loss does not fall with every row, one with less may be as well.");
  command->callback([options, target] {
    const bool within = !options->budget.empty() || options->max_loss;
    if (within && target->empty()) options->classify.recovery_target = 0.0;
    run_profile(*options);
  });
}

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
    // The parser says that a command is missing, not that it does not know this one.
    const std::vector<std::string> unknown = app.remaining();
    if (e.get_exit_code() != 0 && app.get_subcommands().empty() && !unknown.empty())
      throw usage_error("there is no command or option '" + unknown.front() + "'");
    return app.exit(e) == 0 ? 0 : bad_usage;
  }
}

}  // namespace

int run_tool(int argc, const char* const* argv) noexcept {
  try {
    const int code = parse_and_run(argc, argv);
    if (code == 0) require_printed();
    return code;
  } catch (const usage_error& e) {
    std::cerr << headwise::printable(e.what()) << "\nRun with --help for more information.\n";
    return bad_usage;
  } catch (const std::bad_alloc&) {
    std::cerr << "headwise: not enough memory\n";
  } catch (const std::exception& e) {
    std::cerr << "headwise: " << headwise::printable(e.what()) << '\n';
  }
  return bad_data;
}

}  // namespace headwise_tool
