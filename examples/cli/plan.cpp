// SPDX-License-Identifier: Apache-2.0

#include "plan.hpp"

#include <array>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "blueprint_file.hpp"
#include "expected_bytes.hpp"
#include "numbers.hpp"
#include "option_checks.hpp"
#include "text_table.hpp"
#include "usage_error.hpp"

#include "headwise/core/printable.hpp"

namespace headwise_tool {
namespace {

// "32x32x8x128": layers, query heads, KV heads, head_dim.
headwise::model_shape parse_shape(const std::string& text) {
  std::array<std::uint32_t, 4> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [next, problem] = std::from_chars(at, end, numbers[i]);
    const bool last = i + 1 == numbers.size();
    if (problem != std::errc() || numbers[i] == 0 ||
        (last ? next != end : next == end || *next != 'x'))
      throw usage_error(std::string("--shape: '") + text +
                        "' is not LAYERSxQUERY_HEADSxKV_HEADSxHEAD_DIM, such as 32x32x8x128");
    at = next + 1;
  }
  const headwise::model_shape shape{numbers[0], numbers[1], numbers[2], numbers[3]};
  headwise::validate(shape, "--shape " + text);
  return shape;
}

void print_head(const headwise::model_shape& shape, const plan_options& options,
                std::uint64_t length) {
  std::cout << shape.layers << " layers x " << shape.kv_heads << " KV heads x head_dim "
            << shape.head_dim << ", " << to_string(options.type) << ", " << counted(length, "token")
            << ", batch " << with_commas(options.batch) << "\n\n";
}

void print_total(std::uint64_t full, std::uint64_t length, std::uint64_t batch) {
  const std::uint64_t tokens = checked_product(length, batch, "tokens");
  std::cout << "full " << with_commas(full) << " bytes (" << short_bytes(static_cast<double>(full))
            << "), " << with_commas(full / tokens) << " bytes ("
            << short_bytes(static_cast<double>(full) / static_cast<double>(tokens))
            << ") a token\n";
}

void plan_shape(const plan_options& options) {
  const headwise::model_shape shape = parse_shape(options.shape);
  const std::uint64_t row = row_bytes(options.type, shape.head_dim);
  const std::uint64_t full = full_bytes(shape.heads(), options.length, options.batch, row);
  print_head(shape, options, options.length);
  text_table table({"layer", "full bytes"});
  table.add({shape.layers == 1 ? "0" : "each of " + with_commas(shape.layers),
             with_commas(full / shape.layers)});
  table.add({"all", with_commas(full)});
  table.print(std::cout);
  std::cout << '\n';
  print_total(full, options.length, options.batch);
}

headwise::token_count planned_length(const plan_options& options, const headwise::blueprint& plan) {
  if (options.length == 0 && plan.origin.length == 0)
    throw usage_error("this blueprint states no length: give --length");
  return options.length == 0 ? plan.origin.length : sequence_length(options.length);
}

void plan_blueprint(const plan_options& options) {
  const headwise::blueprint plan = read_blueprint(options.blueprint);
  const headwise::model_shape& shape = plan.shape;
  const cache_layout layout{planned_length(options, plan), options.batch,
                            row_bytes(options.type, shape.head_dim)};
  const std::uint64_t full =
      full_bytes(shape.heads(), layout.length, layout.batch, layout.row_bytes);
  const auto ratio = [](std::uint64_t kept, std::uint64_t of) {
    return percent(static_cast<double>(kept) / static_cast<double>(of));
  };
  if (!plan.model.name.empty()) std::cout << headwise::printable(plan.model.name) << ": ";
  print_head(shape, options, layout.length);
  text_table table({"layer", "kept bytes", "full bytes", "kept"});
  std::uint64_t kept = 0;
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::uint64_t bytes = expected_layer_bytes(plan, layer, layout);
    kept = checked_sum(kept, bytes, "bytes of the cache");
    table.add({std::to_string(layer), with_commas(bytes), with_commas(full / shape.layers),
               ratio(bytes, full / shape.layers)});
  }
  table.rule();
  table.add({"all", with_commas(kept), with_commas(full), ratio(kept, full)});
  table.print(std::cout);
  std::cout << '\n';
  print_total(full, layout.length, layout.batch);
  std::cout << "kept " << with_commas(kept) << " bytes (" << short_bytes(static_cast<double>(kept))
            << "), " << ratio(kept, full) << " of full\n";
}

}  // namespace

void run_plan(const plan_options& options) {
  if (options.blueprint.empty() == options.shape.empty())
    throw usage_error("plan: give either a blueprint or --shape");
  if (!options.shape.empty() && options.length == 0) throw usage_error("--shape needs --length");
  options.shape.empty() ? plan_blueprint(options) : plan_shape(options);
}

}  // namespace headwise_tool
