// SPDX-License-Identifier: Apache-2.0

#include "contestants.hpp"

#include <iostream>
#include <memory>
#include <optional>

#include "llama_cpp/takeover.hpp"
#include "llama_cpp/vocabulary.hpp"
#include "random_model.hpp"
#include "stock_engine.hpp"

#include "headwise/io/blueprint_json.hpp"
#include "support/file_match.hpp"
#include "support/measured_memory.hpp"

namespace headwise_llama_cpp {
namespace {

std::size_t cell_bytes(const llama_model& model, const llama_context* context) {
  const headwise::model_shape shape = shape_of(model);
  return std::size_t{2} * sizeof(ggml_fp16_t) * shape.heads() * shape.head_dim *
         llama_n_ctx(context);
}

// Every other KV head keeps all, the others the first four tokens and a window.
headwise::blueprint half_plan(const llama_model& model, headwise::token_count window) {
  using namespace headwise;
  blueprint plan = uniform_blueprint(shape_of(model), make_spec(global{}));
  plan.tokens.sink_count = 4;
  for (std::size_t i = 1; i < plan.heads.size(); i += 2) {
    plan.heads[i].policy =
        make_spec(union_of(special_tokens(token_classes::sink), local_window(window)));
    plan.heads[i].name = "sinks and window";
  }
  return plan;
}

contestant make_stock(llama_model& model, bool flash, std::size_t capacity, int threads) {
  stock_options options;
  options.cells = capacity;
  options.flash_attention = flash;
  options.rows = GGML_TYPE_F16;
  options.threads = threads;
  const auto engine = std::make_shared<stock_engine>(model, options);
  const std::size_t bytes = cell_bytes(model, engine->context());
  return {flash ? "stock, flash attention" : "stock, without",
          [engine](auto ids) { engine->feed(0, ids); }, [bytes] { return bytes; },
          [bytes] { return bytes; }, engine->context()};
}

contestant make_takeover(std::string name, llama_model& model, const headwise::blueprint& plan,
                         row_type rows, std::size_t capacity, int threads) {
  takeover_options options;
  options.rows = rows;
  options.capacity = static_cast<headwise::token_count>(capacity);
  options.context.n_threads = options.context.n_threads_batch = threads;
  struct measured_takeover {
    measured_memory memory;
    std::optional<takeover> engine;
  };
  const auto it = std::make_shared<measured_takeover>();
  options.cache.memory = &it->memory;
  it->engine.emplace(model, plan, options);
  if (!it->engine->form_note().empty()) std::cerr << it->engine->form_note() << '\n';
  llama_context* const context = it->engine->context();
  const std::size_t cells = cell_bytes(model, context);
  return {std::move(name), [it](auto ids) { it->engine->feed(0, ids); },
          [it, cells] { return it->memory.held() + cells; },
          [it, cells] { return it->memory.peak() + cells; }, context};
}

}  // namespace

void read_plan(contest_options& options) {
  if (!options.blueprint.empty()) options.plan = headwise::load_blueprint(options.blueprint);
}

model_handle load_model(const contest_options& options) {
  const bool random = options.random_layers != 0;
  model_handle model =
      random ? make_8b_like_model(options.random_layers) : load_model(options.model);
  if (options.plan)
    require_match_of_files(*options.plan, options.blueprint.string(), shape_of(*model),
                           fingerprint_of(*model),
                           random ? "the random model" : options.model.string());
  return model;
}

contestant make_contestant(contestant_kind kind, llama_model& model, const contest_options& options,
                           std::size_t capacity, int threads) {
  switch (kind) {
    case contestant_kind::stock_flash:
      return make_stock(model, true, capacity, threads);
    case contestant_kind::stock:
      return make_stock(model, false, capacity, threads);
    case contestant_kind::all_global:
      return make_takeover(
          "takeover, all global", model,
          headwise::uniform_blueprint(shape_of(model), headwise::make_spec(headwise::global{})),
          options.rows, capacity, threads);
    case contestant_kind::blueprint:
      break;
  }
  return make_takeover("takeover, blueprint", model,
                       options.plan ? *options.plan : half_plan(model, options.window),
                       options.rows, capacity, threads);
}

std::vector<llama_token> id_source::next(std::size_t count) {
  std::vector<llama_token> ids(count);
  for (llama_token& id : ids) id = next();
  return ids;
}

}  // namespace headwise_llama_cpp
