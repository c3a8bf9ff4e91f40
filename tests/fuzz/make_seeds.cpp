// SPDX-License-Identifier: Apache-2.0
//
// Writes the seeds of the fuzz targets, small valid inputs: headwise_fuzz_seeds --write <folder>.
// --check: says which of those in the folder are not what it would write.
#include <iostream>
#include <map>

#include "engine/gguf_builder.hpp"
#include "fuzz/saved_cache.hpp"

#include "support/made_blueprint.hpp"
#include "support/made_maps.hpp"

namespace headwise_tests {
namespace {

using seeds = std::map<std::string, std::string>;  // "target/name" -> bytes

void add_blueprints(seeds& all) {
  headwise::blueprint plan = made_blueprint();
  all["blueprint/every_part.json"] = text_of(plan);
  using namespace headwise;
  plan.heads[0].policy = make_spec(heavy_hitters(64));
  plan.heads[2].policy = make_spec(
      union_of(special_tokens(token_classes::sink), local_window(16), heavy_hitters(0.25, 512)));
  all["blueprint/heavy_hitters.json"] = text_of(plan);
}

void add_maps(seeds& all) {
  for (const char* type : {"F64", "F32", "F16", "BF16"})
    all[std::string("safetensors/maps_") + type + ".safetensors"] = small_maps(1, type);
  all["safetensors/classes.safetensors"] = small_maps(
      2, "F16", ", \"vocab_size\": \"9\", \"token_classes\": \"{\\\"special\\\": [8]}\"");
  all["safetensors/plain.safetensors"] =
      safetensors_of("{}", {{"a", "U8", "[3]", "abc"}, {"b", "I64", "[0, 4]", ""}});
}

void add_arrays(seeds& all) {
  const auto header = [](const char* descr, const char* shape) {
    return "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + shape +
           ", }";
  };
  all["npy/little.npy"] = npy_bytes(1, header("<f4", "(4, 4)"), elements("F32", small_map), 118);
  all["npy/big.npy"] =
      npy_bytes(2, header(">f8", "(4, 4)"), swapped(elements("F64", small_map), 8));
  all["npy/half.npy"] = npy_bytes(3, header("<f2", "(4, 4)"), elements("F16", small_map));
  all["npy/tokens.npy"] =
      npy_bytes(1, header("<i8", "(4,)"), bytes_of(std::vector<std::int64_t>{5, 6, 7, 8}));
  all["npy/big_tokens.npy"] = npy_bytes(
      1, header(">i4", "(4,)"), swapped(bytes_of(std::vector<std::int32_t>{5, 6, 7, 8}), 4));
}

void add_models(seeds& all) {
  made_model small;
  small.layers = 1;
  small.query_heads = 2;
  small.kv_heads = 1;
  small.head_dim = small.rope_dimensions = 2;
  small.embedding = 2;
  small.hidden = 2;
  all["gguf/llama.gguf"] = small.file().bytes();
  gguf_builder pieces;
  pieces.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens",
             {"<unk>", "<s>", "</s>", "<0x0A>", "\xE2\x96\x81", "t", "h", "e", "th", "the"})
      .reals("tokenizer.ggml.scores", {0, 0, 0, 0, -4, -5, -6, -7, -1, -2})
      .integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1, 1, 1, 1})
      .number("tokenizer.ggml.bos_token_id", 1)
      .number("tokenizer.ggml.unknown_token_id", 0);
  all["gguf/sentence_piece.gguf"] = pieces.bytes(2);
  gguf_builder blocks;
  struct block {
    std::uint32_t type;
    std::uint64_t elements, bytes;
  };
  for (const block b : {block{1, 2, 4}, block{2, 32, 18}, block{3, 32, 20}, block{6, 32, 22},
                        block{7, 32, 24}, block{8, 32, 34}, block{12, 256, 144},
                        block{13, 256, 176}, block{14, 256, 210}, block{30, 2, 4}})
    blocks.tensor("type " + std::to_string(b.type), {b.elements, 1}, b.type,
                  std::string(static_cast<std::size_t>(b.bytes), '7'));
  all["gguf/blocks.gguf"] = blocks.bytes();
}

void add_saved_sequences(seeds& all) {
  using headwise::attend_scope;
  saved_manager cache = make_saved_cache(headwise::unlimited_pages);
  random_source random(1);
  saved_text text = cache.open();
  all["saved_sequence/empty.state"] = saved(text);
  grow(text, 3, attend_scope::every_query, random);
  all["saved_sequence/short.state"] = saved(text);
  for (int i = 0; i < 20; ++i) grow(text, 1, attend_scope::every_query, random);
  all["saved_sequence/decoded.state"] = saved(text);
  if (!text.try_rollback(saved_horizon)) throw std::runtime_error("no rollback to the horizon");
  all["saved_sequence/rolled_back.state"] = saved(text);
  saved_text prompt = cache.open();
  grow(prompt, 24, attend_scope::last_query, random);
  all["saved_sequence/prompt.state"] = saved(prompt);
}

void add_scripts(seeds& all) {
  random_source random(1);
  for (const char* name : {"a", "b", "c", "d"}) {
    std::string choices(512, '\0');
    for (char& c : choices) c = static_cast<char>(random.below(256));
    all[std::string("script/random_") + name] = choices;
  }
}

int run(const std::string& mode, const std::filesystem::path& folder) {
  seeds all;
  for (const auto add :
       {add_blueprints, add_maps, add_arrays, add_models, add_saved_sequences, add_scripts})
    add(all);
  int stale = 0;
  for (const auto& [name, bytes] : all) {
    const std::filesystem::path path = folder / name;
    if (mode == "--write") {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << bytes;
    } else if (!std::filesystem::exists(path) || read_file(path) != bytes) {
      std::cerr << path << " is not what this program writes\n";
      ++stale;
    }
  }
  return stale == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headwise_tests

int main(int count, char** arguments) {
  const std::string mode = count == 3 ? arguments[1] : "";
  if (mode == "--write" || mode == "--check") return headwise_tests::run(mode, arguments[2]);
  std::cerr << "usage: headwise_fuzz_seeds --write|--check <folder>\n";
  return 2;
}
