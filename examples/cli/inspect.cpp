// SPDX-License-Identifier: Apache-2.0

#include "inspect.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>

#include "blueprint_file.hpp"
#include "evaluation_json.hpp"
#include "head_class.hpp"
#include "head_map.hpp"
#include "numbers.hpp"
#include "option_checks.hpp"
#include "report_page.hpp"
#include "terminal.hpp"
#include "text_table.hpp"
#include "usage_error.hpp"

#include "headwise/core/printable.hpp"
#include "headwise/io/replacing_file.hpp"

namespace headwise_tool {
namespace {

namespace fs = std::filesystem;

// Layers down, KV heads across.
void print_map(const headwise::blueprint& plan) {
  constexpr std::size_t width = 6;
  const bool colour = wants_colour();
  const auto padded = [&](const std::string& text) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::cout << "  layer |";
  for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head)
    std::cout << padded(std::to_string(head)) << ' ';
  std::cout << "  KV head\n";
  for (std::uint32_t layer = 0; layer < plan.shape.layers; ++layer) {
    std::cout << ' ' << padded(std::to_string(layer)) << " |";
    for (std::uint32_t head = 0; head < plan.shape.kv_heads; ++head) {
      const head_class what = class_of(plan.head({layer, head}).policy);
      const colours look = colours_of(what);
      const std::string text = padded(label(what));
      std::cout << (colour ? coloured(text, look.ink, look.fill) : text) << ' ';
    }
    std::cout << '\n';
  }
}

void print_classes(const headwise::blueprint& plan) {
  text_table table({"class", "heads", "mean recovery", "mean rows", "keeps"}, {0, 4});
  for (const class_count& c : classes_of(plan))
    table.add({label(c.what), std::to_string(c.heads), fixed(c.mean_recovery, 4),
               percent(c.mean_resident_fraction), in_words(c.what)});
  table.print(std::cout);
}

void print_blueprint(const headwise::blueprint& plan, const cache_layout& layout, cache_type type) {
  const headwise::provenance& origin = plan.origin;
  std::cout << headwise::printable(plan.model.name.empty() ? "model" : plan.model.name) << ": "
            << plan.shape.layers << " layers x " << plan.shape.kv_heads << " KV heads, "
            << plan.shape.query_heads << " query heads, head_dim " << plan.shape.head_dim << '\n';
  if (origin.prompts > 0)
    std::cout << "profiled on " << counted(origin.prompts, "prompt") << ", "
              << counted(origin.queries, "query", "queries") << "; target "
              << fixed(origin.recovery_target, 2) << ", " << to_string(origin.criterion) << ", "
              << to_string(origin.aggregation) << " query head, by "
              << to_string(origin.granularity) << '\n';
  std::cout << '\n';
  print_map(plan);
  std::cout << '\n';
  print_classes(plan);
  const std::uint64_t kept = expected_bytes(plan, layout);
  const std::uint64_t full =
      full_bytes(plan.shape.heads(), layout.length, layout.batch, layout.row_bytes);
  std::cout << "\nexpected at " << counted(layout.length, "token") << " in " << to_string(type)
            << ": " << with_commas(kept) << " of " << with_commas(full) << " bytes ("
            << percent(static_cast<double>(kept) / static_cast<double>(full)) << ")\n";
}

void save_text(const fs::path& path, std::string_view text) {
  headwise::replacing_file file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
  std::cout << "written: " << path.string() << '\n';
}

void require_same_model(const headwise::blueprint& plan, const evaluation& measured,
                        const inspect_options& options) {
  if (measured.shape == plan.shape && measured.model == plan.model.name) return;
  headwise::raise(
      headwise::error_code::shape_mismatch, options.measured.string(),
      "an evaluation of '" + measured.model + "'",
      "one of '" + plan.model.name + "', which " + options.blueprint.string() + " is for");
}

void require_outputs(const inspect_options& options) {
  std::vector<fs::path> inputs = options.maps;
  inputs.insert(inputs.end(), {options.blueprint, options.measured});
  require_apart("--svg", options.svg, "--html", options.html);
  require_output("--html", options.html, inputs);
  require_output("--svg", options.svg, inputs);
}

}  // namespace

void run_inspect(const inspect_options& options) {
  require_outputs(options);
  headwise::blueprint plan = read_blueprint(options.blueprint);
  const headwise::token_count length =
      options.length == 0 ? plan.origin.length : sequence_length(options.length);
  if (length == 0) throw usage_error("this blueprint states no length: give --length");
  const cache_layout layout{length, 1, row_bytes(options.type, plan.shape.head_dim)};
  std::optional<evaluation> measured;
  if (!options.measured.empty()) {
    measured = load_evaluation(options.measured);
    require_same_model(plan, *measured, options);
  }
  std::vector<attention_picture> pictures;
  if (!options.maps.empty()) pictures = draw_attention(options.maps, plan);
  print_blueprint(plan, layout, options.type);  // all that can be refused is read by now

  const evaluation* const figures = measured ? &*measured : nullptr;
  if (!options.title.empty()) plan.model.name = options.title;
  if (!options.svg.empty()) save_text(options.svg, head_map_svg(plan, layout, figures));
  if (!options.html.empty())
    save_text(options.html, report_page({plan, layout, figures, std::move(pictures)}));
}

}  // namespace headwise_tool
