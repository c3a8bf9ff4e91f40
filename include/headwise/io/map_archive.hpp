// SPDX-License-Identifier: Apache-2.0
//
// map_archive: a map_source over recorded maps on disk, of any number of prompts and any size. One
// file is mapped at a time, and weights are handed out where they lie in it: F32, F16 or BF16, at
// any alignment. Only of those in F64 or big-endian is one [queries, keys] matrix held. So memory
// does not grow with the number of prompts. Opening looks into every file, so that a missing layer
// shows before hours of work. What makes weights a probability is the profiler's to check. Where a
// map has fewer queries than keys, they are the last ones.
//
// O(elements) per pass. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headwise/io/map_files.hpp"
#include "headwise/io/sha256.hpp"
#include "headwise/profile/attention_map.hpp"

HEADWISE_NAMESPACE_BEGIN

// The name and hash of a file for a blueprint's provenance. O(bytes), bounded memory. Throws
// error(unreadable) where it is no longer the version that was measured.
[[nodiscard]] inline profile_source hash_source(const map_file& source) {
  constexpr std::size_t step = std::size_t{1} << 20;
  const mapped_file file(source.path);
  if (file.version() != source.version) detail::refuse_changed(file.path());
  sha256 hash;
  for (std::size_t at = 0; at < file.size(); at += step) {
    const auto part = file.bytes().subspan(at, std::min(step, file.size() - at));
    hash.add(part);
    file.forget(part);
  }
  return {source.path.filename().string(), hash.hex()};
}

class map_archive {
 public:
  // paths: safetensors files, and folders of such files or of one set of .npy files
  // (map_files.hpp), in the order in which the prompts are numbered. Throws error naming file and
  // tensor.
  explicit map_archive(std::span<const std::filesystem::path> paths) {
    for (const std::filesystem::path& path : paths) add(path);
    if (units_.empty())
      raise(error_code::missing, "maps", "no files", "at least one file of recorded maps");
    for (unit& u : units_) survey(u);
  }

  [[nodiscard]] model_shape shape() const noexcept { return info_->shape; }
  [[nodiscard]] const model_fingerprint& fingerprint() const noexcept { return info_->model; }
  [[nodiscard]] const token_rules& rules() const noexcept { return info_->tokens; }
  [[nodiscard]] std::uint64_t prompts() const noexcept { return prompts_; }
  // Of the maps: what there is, and what next() has handed out in this pass.
  [[nodiscard]] std::uint64_t bytes_total() const noexcept { return bytes_total_; }
  [[nodiscard]] std::uint64_t bytes_done() const noexcept { return bytes_done_; }
  // Every file that maps and tokens come from, as it was surveyed; hash_source() makes a
  // blueprint's sources of them.
  [[nodiscard]] const std::vector<map_file>& files() const noexcept { return files_; }

  // Another reader of the same files, before the first prompt, without a survey: for a thread of
  // its own.
  [[nodiscard]] map_archive another() const {
    map_archive reader;
    reader.units_ = units_;
    reader.files_ = files_;
    reader.info_ = info_;
    reader.classifier_ = classifier_;
    reader.prompts_ = prompts_;
    reader.bytes_total_ = bytes_total_;
    return reader;
  }

  // Prompt by prompt, layer by layer, query head by query head, those that the share holds. Throws
  // error(unreadable) where a file is replaced or written to between the constructor and its turn;
  // one that is cut short in its turn stops the process (mapped_file.hpp).
  [[nodiscard]] std::optional<attention_map_view> next(head_share share = {}) {
    leave();
    for (; advance(); step())
      if (share.holds(info_->shape, layer_, head_))
        return std::visit([&](auto& maps) { return view_of(maps); }, *open_);
    return std::nullopt;
  }

  // How many maps, of all heads, come before the one that next() has handed out or failed on.
  [[nodiscard]] std::uint64_t maps_before() const noexcept {
    return (prompt_ * info_->shape.layers + layer_) * info_->shape.query_heads + head_;
  }

  // Back to the first prompt.
  void rewind() {
    matrix_.reset();
    open_.reset();
    keys_of_.reset();
    unit_ = prompt_in_unit_ = 0;
    layer_ = head_ = 0;
    prompt_ = bytes_done_ = 0;
  }

 private:
  struct unit {
    std::filesystem::path path;
    bool npy = false;
    std::vector<map_file> files = {};  // when it was surveyed
  };
  using any_maps = std::variant<detail::safetensors_maps, detail::npy_maps>;

  map_archive() = default;

  void add(const std::filesystem::path& path) {
    std::error_code problem;
    if (!std::filesystem::is_directory(path, problem)) {
      if (path.extension() == ".npy")
        raise(error_code::unsupported, path.string(), "one .npy file",
              "the folder of a whole set of them");
      units_.push_back({path, false});
      return;
    }
    const auto tensors = detail::files_of(path, ".safetensors");
    const auto arrays = detail::files_of(path, ".npy");
    if (tensors.empty() && arrays.empty())
      raise(error_code::missing, path.string(), "no maps", "files *.safetensors or *.npy");
    for (const std::filesystem::path& file : tensors) units_.push_back({file, false});
    if (!arrays.empty()) units_.push_back({path, true});
  }

  [[nodiscard]] static any_maps open(const unit& u) {
    if (u.npy) return detail::npy_maps(u.path);
    return detail::safetensors_maps(u.path);
  }

  void survey(unit& u) {
    const any_maps any = open(u);
    std::visit(
        [&](const auto& maps) {
          if (!info_) set_info(maps.info());
          require_same(maps.info(), u.path.string());
          for (const detail::prompt_entry& prompt : maps.prompts())
            static_cast<void>(tokens_of(maps, prompt));
          u.files = maps.files();
          files_.insert(files_.end(), u.files.begin(), u.files.end());
          prompts_ += maps.prompts().size();
          bytes_total_ += maps.map_bytes();
        },
        any);
  }

  void set_info(const map_info& info) {
    info_ = info;
    classifier_ = info.model.vocab_size == 0 ? token_classifier(info.tokens.sink_count)
                                             : make_classifier(info.tokens, info.model.vocab_size);
  }

  void require_same(const map_info& info, const std::string& place) const {
    const auto same = [&](const char* what, const auto& got, const auto& expected) {
      if (got == expected) return;
      const auto text = [](const auto& value) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
          return std::to_string(value);
        else
          return in_quotes(value);
      };
      raise(error_code::shape_mismatch, place + ": metadata " + what, text(got),
            text(expected) + " as in " + units_.front().path.string());
    };
    same("layers", info.shape.layers, info_->shape.layers);
    same("query_heads", info.shape.query_heads, info_->shape.query_heads);
    same("kv_heads", info.shape.kv_heads, info_->shape.kv_heads);
    same("head_dim", info.shape.head_dim, info_->shape.head_dim);
    same("model", info.model.name, info_->model.name);
    same("vocab_size", info.model.vocab_size, info_->model.vocab_size);
    same("tokenizer", info.model.tokenizer, info_->model.tokenizer);
    same("sink_count", info.tokens.sink_count, info_->tokens.sink_count);
    if (info.tokens != info_->tokens)
      raise(error_code::shape_mismatch, place + ": metadata token_classes", "other classes",
            "those of " + units_.front().path.string());
  }

  template <class Maps>
  void require_unchanged(const Maps& maps, const unit& u) const {
    require_same(maps.info(), u.path.string());
    if (maps.files() != u.files) detail::refuse_changed(u.path.string());
  }

  template <class Maps>
  [[nodiscard]] std::vector<token> tokens_of(const Maps& maps,
                                             const detail::prompt_entry& prompt) const {
    const std::vector<std::int64_t> ids = maps.ids(prompt);
    return classifier_.tokens(std::span(ids), 0, maps.tokens_place(prompt));
  }

  // The map that was handed out, if any.
  void leave() {
    if (!matrix_) return;
    std::visit([&](auto& maps) { maps.forget(*matrix_); }, *open_);
    matrix_.reset();
    step();
  }
  void step() noexcept {
    if (++head_ < info_->shape.query_heads) return;
    head_ = 0;
    if (++layer_ < info_->shape.layers) return;
    layer_ = 0;
    ++prompt_in_unit_;
    ++prompt_;
  }
  // Opens the file of the map to be read; false: there is none.
  [[nodiscard]] bool advance() {
    while (true) {
      if (!open_) {
        if (unit_ == units_.size()) return false;
        any_maps opened = open(units_[unit_]);
        std::visit([&](const auto& maps) { require_unchanged(maps, units_[unit_]); }, opened);
        open_.emplace(std::move(opened));  // not before it is checked: next() may be called again
        prompt_in_unit_ = 0;
      }
      const std::size_t count =
          std::visit([](auto& maps) { return maps.prompts().size(); }, *open_);
      if (prompt_in_unit_ < count) return true;
      open_.reset();
      ++unit_;
    }
  }

  template <class Maps>
  [[nodiscard]] attention_map_view view_of(Maps& maps) {
    const detail::prompt_entry& prompt = maps.prompts()[prompt_in_unit_];
    if (keys_of_ != prompt_) keys_ = tokens_of(maps, prompt);
    keys_of_ = prompt_;
    place_ = maps.place(prompt, layer_, head_);
    const detail::map_matrix matrix = maps.open(prompt, layer_, head_);
    const map_weights weights = weights_of(matrix);
    matrix_ = matrix;
    bytes_done_ += matrix.bytes.size();
    const auto first_query = static_cast<position>(matrix.keys - matrix.queries);
    return {prompt_, layer_, head_, first_query, weights, keys_, place_};
  }

  // As they lie in the file where the profiler reads their type. F64 is converted to float, what is
  // big-endian is turned round.
  [[nodiscard]] map_weights weights_of(const detail::map_matrix& matrix) {
    std::span<const std::byte> bytes = matrix.bytes;
    const element_type type = matrix.type;
    if (matrix.big_endian) bytes = swapped(bytes, element_bytes(type));
    const auto viewed = [&](weight_type as) {
      return map_weights(as, bytes.data(), matrix.queries, matrix.keys);
    };
    if (type == element_type::f32) return viewed(weight_type::f32);
    if (type == element_type::f16) return viewed(weight_type::f16);
    if (type == element_type::bf16) return viewed(weight_type::bf16);
    floats_.resize(matrix.queries * matrix.keys);
    decode_floats(type, bytes.data(), floats_);
    return {floats_.data(), matrix.queries, matrix.keys};
  }

  [[nodiscard]] std::span<const std::byte> swapped(std::span<const std::byte> bytes,
                                                   std::size_t element) {
    swapped_.assign(bytes.begin(), bytes.end());
    for (auto at = swapped_.begin(); at != swapped_.end();
         at += static_cast<std::ptrdiff_t>(element))
      std::reverse(at, at + static_cast<std::ptrdiff_t>(element));
    return swapped_;
  }

  std::vector<unit> units_;
  std::vector<map_file> files_;
  std::optional<map_info> info_;  // of every unit
  token_classifier classifier_{0};
  std::uint64_t prompts_ = 0;
  std::uint64_t bytes_total_ = 0;

  std::size_t unit_ = 0;
  std::size_t prompt_in_unit_ = 0;
  std::uint32_t layer_ = 0;  // of the next map, as is head_
  std::uint32_t head_ = 0;
  std::uint64_t prompt_ = 0;
  std::uint64_t bytes_done_ = 0;
  std::optional<any_maps> open_;

  // What the last view refers to.
  std::optional<detail::map_matrix> matrix_;
  std::vector<token> keys_;
  std::optional<std::uint64_t> keys_of_;  // the prompt
  std::string place_;
  std::vector<float> floats_;  // where they are F64 in the file
  std::vector<std::byte> swapped_;
};

static_assert(map_source<map_archive>);

HEADWISE_NAMESPACE_END
