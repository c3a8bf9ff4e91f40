// SPDX-License-Identifier: Apache-2.0
//
// The two forms of recorded maps on disk behind one face: a safetensors file with tensors
// p.l.attention [query_heads, queries, keys] and p.tokens [keys], or a folder with metadata.json
// and <p>.<l>.<h>.npy [queries, keys] and <p>.tokens.npy [keys]. Opening checks that every layer
// and head of every prompt is there, with sizes that agree; map_archive.hpp reads them.
//
// Opening: O(tensors or files, and tokens), no weight is read. A map: O(1), a page is read when it
// is touched. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "headwise/io/map_format.hpp"
#include "headwise/io/npy_reader.hpp"

HEADWISE_NAMESPACE_BEGIN

// A file that maps or tokens were read from, and what it was like then.
struct map_file {
  std::filesystem::path path;
  file_version version;
  friend bool operator==(const map_file&, const map_file&) = default;
};

namespace detail {

// The map of one query head as it lies in a file: [queries, keys].
struct map_matrix {
  element_type type = element_type::f32;
  bool big_endian = false;
  std::size_t queries = 0;
  std::size_t keys = 0;
  std::span<const std::byte> bytes;
};

// A tensor or file that holds the maps of a layer, from query head `head` on.
struct map_entry {
  std::string prompt;
  std::uint32_t layer = 0;
  std::uint32_t head = 0;
  std::size_t item = 0;  // which tensor or file
};

struct prompt_entry {
  std::string name;
  std::size_t tokens = 0;          // which tensor or file
  std::vector<std::size_t> items;  // [layers * items of a layer]
};

// "2" before "10", and both before "a".
[[nodiscard]] inline bool prompt_before(std::string_view a, std::string_view b) {
  const auto key = [](std::string_view name) {
    const bool number = name.find_first_not_of("0123456789") == std::string_view::npos;
    return std::tuple(!number, number ? name.size() : 0, name);
  };
  return key(a) < key(b);
}

// "p.3" -> ("p", 3): what precedes the last dot, and the number behind it.
[[nodiscard]] inline std::optional<std::pair<std::string_view, std::uint32_t>> split_number(
    std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto number = number_in(name.substr(dot + 1));
  if (!number) return std::nullopt;
  return std::pair(name.substr(0, dot), *number);
}

[[nodiscard]] inline std::string map_name(const std::string& prompt, std::uint32_t layer,
                                          std::uint32_t head) {
  return "prompt " + in_quotes(prompt) + " layer " + std::to_string(layer) + " query head " +
         std::to_string(head);
}

// Sorts out the entries of each prompt: layers 0 .. layers - 1, of each the heads 0 .. heads - 1,
// once each. The numbers are claims of the file: nothing is allocated by them.
[[nodiscard]] inline std::vector<prompt_entry> complete_prompts(std::vector<map_entry> entries,
                                                                std::uint32_t layers,
                                                                std::uint32_t heads,
                                                                const std::string& place) {
  if (entries.empty())
    raise(error_code::missing, place, "no maps",
          "at least one <prompt>.<layer>.attention (or <prompt>.<layer>.<head>.npy)");
  std::sort(entries.begin(), entries.end(), [](const map_entry& a, const map_entry& b) {
    if (a.prompt != b.prompt) return prompt_before(a.prompt, b.prompt);
    return std::pair(a.layer, a.head) < std::pair(b.layer, b.head);
  });
  std::vector<prompt_entry> prompts;
  std::uint32_t layer = 0, head = 0;  // the next to come
  const auto absent = [&](const std::string& prompt) {
    raise(error_code::missing, place, "nothing for " + map_name(prompt, layer, head),
          "maps of " + std::to_string(layers) + " layers");
  };
  for (const map_entry& entry : entries) {
    if (prompts.empty() || prompts.back().name != entry.prompt) {
      if (!prompts.empty() && layer != layers) absent(prompts.back().name);
      prompts.push_back({entry.prompt, 0, {}});
      layer = head = 0;
    }
    const std::string name = map_name(entry.prompt, entry.layer, entry.head);
    if (entry.layer >= layers || entry.head >= heads)
      raise(error_code::shape_mismatch, place, name,
            std::to_string(layers) + " layers as the metadata says");
    if (std::pair(entry.layer, entry.head) < std::pair(layer, head))
      raise(error_code::duplicate, place, name + " twice", "each map once");
    if (entry.layer != layer || entry.head != head) absent(entry.prompt);
    prompts.back().items.push_back(entry.item);
    head = (head + 1) % heads;
    if (head == 0) ++layer;
  }
  if (layer != layers) absent(prompts.back().name);
  return prompts;
}

// shape: [queries, keys]. What holds of the map of every form.
inline void check_stored_map(std::string_view type, bool floats,
                             std::span<const std::uint64_t> shape, std::size_t tokens,
                             std::uint32_t layer, const std::string& place) {
  const std::string got = describe(type, shape);
  if (!floats) raise(error_code::unsupported, place, got, "a map in F16, BF16, F32 or F64");
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end())
    raise(error_code::missing, place, got + ", an empty map of layer " + std::to_string(layer),
          "at least one query and one key");
  if (shape.size() != 2) raise(error_code::shape_mismatch, place, got, "[queries, keys]");
  if (shape[0] > shape[1])
    raise(error_code::shape_mismatch, place, got, "at most as many queries as keys");
  if (shape[1] != tokens)
    raise(error_code::shape_mismatch, place, got,
          std::to_string(tokens) + " keys, one for each token of the prompt");
}

[[nodiscard]] inline std::vector<std::int64_t> decode_ids(element_type type, bool big_endian,
                                                          std::span<const std::uint64_t> shape,
                                                          std::span<const std::byte> bytes,
                                                          const std::string& place) {
  const bool integers = type == element_type::i32 || type == element_type::i64;
  if (!integers || shape.size() != 1)
    raise(error_code::unsupported, place, describe(to_string(type), shape),
          "token ids as I32 or I64 [keys]");
  const std::size_t size = element_bytes(type);
  std::vector<std::int64_t> ids(bytes.size() / size);
  std::array<std::byte, 8> element{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(bytes.data() + i * size, size, element.data());
    if (big_endian) std::reverse(element.data(), element.data() + size);
    ids[i] = decode_integer(type, element.data());
  }
  return ids;
}

// The files of a folder with that extension, sorted by name.
[[nodiscard]] inline std::vector<std::filesystem::path> files_of(
    const std::filesystem::path& folder, std::string_view extension) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  for (std::filesystem::directory_iterator it(folder, problem), end; !problem && it != end;
       it.increment(problem))
    if (it->path().extension() == extension) files.push_back(it->path());
  if (problem)
    raise(error_code::unreadable, folder.string(), problem.message(), "a readable folder");
  std::sort(files.begin(), files.end());
  return files;
}

[[noreturn]] inline void refuse_changed(const std::string& place) {
  raise(error_code::unreadable, place, "another file than at first",
        "files that stay as they are while they are read");
}

class safetensors_maps {
 public:
  explicit safetensors_maps(const std::filesystem::path& path)
      : reader_(path), info_(read_map_info(reader_.metadata(), reader_.path())) {
    constexpr std::string_view suffix = ".attention";
    std::vector<map_entry> entries;
    for (std::size_t i = 0; i < reader_.tensors().size(); ++i) {
      const std::string& name = reader_.tensors()[i].name;
      if (!std::string_view(name).ends_with(suffix)) continue;
      const auto parts =
          split_number(std::string_view(name).substr(0, name.size() - suffix.size()));
      if (!parts)
        raise(error_code::malformed, reader_.place(name), "that name",
              "<prompt>.<layer>.attention");
      entries.push_back({std::string(parts->first), parts->second, 0, i});
    }
    prompts_ = complete_prompts(std::move(entries), info_.shape.layers, 1, reader_.path());
    for (prompt_entry& prompt : prompts_) check(prompt);
  }

  [[nodiscard]] const map_info& info() const noexcept { return info_; }
  [[nodiscard]] std::span<const prompt_entry> prompts() const noexcept { return prompts_; }
  [[nodiscard]] std::uint64_t map_bytes() const noexcept { return map_bytes_; }
  [[nodiscard]] std::vector<map_file> files() const {
    return {{reader_.path(), reader_.file().version()}};
  }

  [[nodiscard]] std::vector<std::int64_t> ids(const prompt_entry& prompt) const {
    const auto& tensor = reader_.tensors()[prompt.tokens];
    return decode_ids(tensor.type, false, tensor.shape, tensor.bytes, reader_.place(tensor.name));
  }
  [[nodiscard]] std::string tokens_place(const prompt_entry& prompt) const {
    return reader_.place(reader_.tensors()[prompt.tokens].name);
  }
  [[nodiscard]] std::string place(const prompt_entry& prompt, std::uint32_t layer,
                                  std::uint32_t) const {
    return reader_.place(reader_.tensors()[prompt.items[layer]].name);
  }
  // Valid while this object lives.
  [[nodiscard]] map_matrix open(const prompt_entry& prompt, std::uint32_t layer,
                                std::uint32_t head) {
    const auto& tensor = reader_.tensors()[prompt.items[layer]];
    const std::size_t bytes = tensor.bytes.size() / info_.shape.query_heads;
    return {tensor.type, false, static_cast<std::size_t>(tensor.shape[1]),
            static_cast<std::size_t>(tensor.shape[2]), tensor.bytes.subspan(head * bytes, bytes)};
  }
  void forget(const map_matrix& matrix) const noexcept { reader_.file().forget(matrix.bytes); }

 private:
  void check(prompt_entry& prompt) {
    const std::string name = prompt.name + ".tokens";
    const auto* const tokens = reader_.find(name);
    if (tokens == nullptr)
      raise(error_code::missing, reader_.place(name), "nothing", "the token ids of the prompt");
    prompt.tokens = static_cast<std::size_t>(tokens - reader_.tensors().data());
    const std::size_t keys = ids(prompt).size();
    for (std::uint32_t layer = 0; layer < prompt.items.size(); ++layer) {
      const auto& tensor = reader_.tensors()[prompt.items[layer]];
      const std::string place = reader_.place(tensor.name);
      const std::span<const std::uint64_t> shape = tensor.shape;
      const bool heads = shape.size() == 3 && shape[0] == info_.shape.query_heads;
      check_stored_map(to_string(tensor.type), is_float(tensor.type),
                       heads ? shape.subspan(1) : shape, keys, layer, place);
      if (!heads)
        raise(error_code::shape_mismatch, place, describe(to_string(tensor.type), shape),
              "[" + std::to_string(info_.shape.query_heads) + ", queries, keys]");
      map_bytes_ += tensor.bytes.size();
    }
  }

  safetensors_reader reader_;
  map_info info_;
  std::vector<prompt_entry> prompts_;
  std::uint64_t map_bytes_ = 0;
};

class npy_maps {
 public:
  explicit npy_maps(const std::filesystem::path& folder)
      : folder_(folder), info_(read_info(folder / "metadata.json")) {
    std::vector<map_entry> entries;
    files_ = files_of(folder, ".npy");
    versions_.resize(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::string stem = files_[i].stem().string();
      const auto head = split_number(stem);
      const auto layer = head ? split_number(head->first) : std::nullopt;
      if (layer) entries.push_back({std::string(layer->first), layer->second, head->second, i});
    }
    prompts_ = complete_prompts(std::move(entries), info_.shape.layers, info_.shape.query_heads,
                                folder.string());
    for (prompt_entry& prompt : prompts_) check(prompt);
  }

  [[nodiscard]] const map_info& info() const noexcept { return info_; }
  [[nodiscard]] std::span<const prompt_entry> prompts() const noexcept { return prompts_; }
  [[nodiscard]] std::uint64_t map_bytes() const noexcept { return map_bytes_; }
  // Those that hold maps and tokens, sorted.
  [[nodiscard]] std::vector<map_file> files() const {
    std::vector<map_file> used;
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (versions_[i]) used.push_back({files_[i], *versions_[i]});
    return used;
  }

  // Throws error(unreadable), as open() does, where the file has changed since this was made.
  [[nodiscard]] std::vector<std::int64_t> ids(const prompt_entry& prompt) const {
    const npy_reader file = reopened(prompt.tokens);
    return decode_ids(file.type(), file.big_endian(), file.shape(), file.bytes(), file.path());
  }
  [[nodiscard]] std::string tokens_place(const prompt_entry& prompt) const {
    return files_[prompt.tokens].string();
  }
  [[nodiscard]] std::string place(const prompt_entry& prompt, std::uint32_t layer,
                                  std::uint32_t head) const {
    return files_[item(prompt, layer, head)].string();
  }
  // Valid until the next call.
  [[nodiscard]] map_matrix open(const prompt_entry& prompt, std::uint32_t layer,
                                std::uint32_t head) {
    open_.emplace(reopened(item(prompt, layer, head)));
    return {open_->type(), open_->big_endian(), static_cast<std::size_t>(open_->shape()[0]),
            static_cast<std::size_t>(open_->shape()[1]), open_->bytes()};
  }
  void forget(const map_matrix&) noexcept { open_.reset(); }

 private:
  [[nodiscard]] static map_info read_info(const std::filesystem::path& path) {
    const mapped_file file(path);
    const auto bytes = file.bytes();
    const json_value json =
        parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.path());
    text_map metadata;
    json_cursor(json, file.path())
        .for_each_member([&](const std::string& name, const json_cursor& value) {
          metadata.emplace(name, value.text());
        });
    return read_map_info(metadata, file.path());
  }

  [[nodiscard]] std::size_t item(const prompt_entry& prompt, std::uint32_t layer,
                                 std::uint32_t head) const noexcept {
    return prompt.items[std::size_t{layer} * info_.shape.query_heads + head];
  }
  [[nodiscard]] npy_reader reopened(std::size_t item) const {
    npy_reader file(files_[item]);
    if (file.file().version() != versions_[item]) refuse_changed(file.path());
    return file;
  }

  void check(prompt_entry& prompt) {
    const std::filesystem::path tokens = folder_ / (prompt.name + ".tokens.npy");
    const auto found = std::lower_bound(files_.begin(), files_.end(), tokens);
    if (found == files_.end() || *found != tokens)
      raise(error_code::missing, tokens.string(), "nothing", "the token ids of the prompt");
    prompt.tokens = static_cast<std::size_t>(found - files_.begin());
    versions_[prompt.tokens] = npy_reader(tokens).file().version();
    const std::size_t keys = ids(prompt).size();
    for (std::size_t i = 0; i < prompt.items.size(); ++i) {
      const npy_reader file(files_[prompt.items[i]]);
      versions_[prompt.items[i]] = file.file().version();
      check_stored_map(to_string(file.type()), is_float(file.type()), file.shape(), keys,
                       static_cast<std::uint32_t>(i / info_.shape.query_heads), file.path());
      map_bytes_ += file.bytes().size();
    }
  }

  std::filesystem::path folder_;
  map_info info_;
  std::vector<std::filesystem::path> files_;  // sorted
  std::vector<std::optional<file_version>>
      versions_;  // [files], of those that hold maps and tokens
  std::vector<prompt_entry> prompts_;
  std::uint64_t map_bytes_ = 0;
  std::optional<npy_reader> open_;
};

}  // namespace detail

HEADWISE_NAMESPACE_END
