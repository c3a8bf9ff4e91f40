// SPDX-License-Identifier: Apache-2.0
#include "headwise/io/map_archive.hpp"

#include <chrono>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "headwise/io/map_writer.hpp"
#include "support/files.hpp"
#include "support/made_maps.hpp"
#include "support/random.hpp"

namespace {

using headwise::element_type;
using headwise::error_code;
using headwise::head_share;
using headwise::map_archive;
using headwise::map_info;
using headwise::map_writer;
using headwise::rows;
using headwise::token_classes;
using headwise::weight_type;
using namespace headwise_tests;

const map_info info{{2, 4, 2, 8},
                    {"model", 50, "abcd"},
                    {1,
                     {{"special", token_classes::special, {3}},
                      {"digits", static_cast<token_classes>(headwise::first_user_class), {4, 5}}}}};

// The weight that a test puts at each place: different everywhere, exact in float.
float weight(std::size_t prompt, std::uint32_t layer, std::uint32_t head, std::size_t query,
             std::size_t key) {
  return static_cast<float>((((prompt * 2 + layer) * 4 + head) * 16 + query) * 16 + key);
}

// Rows as an engine has them: as wide as the query's position, in steps of two queries.
void record(const std::filesystem::path& path,
            const std::vector<std::vector<std::int32_t>>& prompts) {
  map_writer writer(path, info, prompts, element_type::f32);
  for (std::size_t p = 0; p < prompts.size(); ++p)
    for (std::uint32_t layer = 2; layer-- > 0;)
      for (std::uint32_t head = 0; head < 4; ++head)
        for (std::uint32_t q = 0; q < prompts[p].size(); q += 2) {
          const std::size_t count = std::min<std::size_t>(2, prompts[p].size() - q);
          std::vector<float> weights;
          for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = 0; k < q + count; ++k)
              weights.push_back(k <= q + i ? weight(p, layer, head, q + i, k) : 0.0F);
          writer.write(p, layer, head, q, rows<const float>(weights.data(), count, q + count));
        }
  writer.finish();
}

void expect_prompt(map_archive& archive, std::uint64_t prompt, std::size_t made_as,
                   const std::vector<std::int32_t>& ids) {
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    for (std::uint32_t head = 0; head < 4; ++head) {
      const auto map = archive.next();
      ASSERT_TRUE(map);
      EXPECT_EQ(map->prompt, prompt);
      EXPECT_EQ(map->layer, layer);
      EXPECT_EQ(map->query_head, head);
      EXPECT_EQ(map->first_query, 0U);
      ASSERT_EQ(map->weights.count, ids.size());
      ASSERT_EQ(map->keys.size(), ids.size());
      for (std::size_t k = 0; k < ids.size(); ++k) EXPECT_EQ(map->keys[k].id, ids[k]);
      for (std::size_t q = 0; q < ids.size(); ++q)
        for (std::size_t k = 0; k < ids.size(); ++k)
          ASSERT_EQ(map->weights.at(q, k), k <= q ? weight(made_as, layer, head, q, k) : 0.0F);
    }
}

TEST(map_archive, reads_what_map_writer_wrote_over_several_files) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> first{{1, 2, 3}, {4}}, second{{5, 6, 7, 8, 9}};
  record(folder.path() / "a.safetensors", first);
  record(folder.path() / "b.safetensors", second);
  folder.write("notes.txt", "not a map");
  map_archive archive(std::vector{folder.path()});
  EXPECT_EQ(archive.shape(), info.shape);
  EXPECT_EQ(archive.fingerprint(), info.model);
  EXPECT_EQ(archive.rules(), info.tokens);
  EXPECT_EQ(archive.prompts(), 3U);
  EXPECT_EQ(archive.bytes_total(), 4U * 2 * 4 * (9 + 1 + 25));
  ASSERT_EQ(archive.files().size(), 2U);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(archive.bytes_done(), 0U);
    expect_prompt(archive, 0, 0, first[0]);
    expect_prompt(archive, 1, 1, first[1]);
    expect_prompt(archive, 2, 0, second[0]);
    EXPECT_FALSE(archive.next());
    EXPECT_FALSE(archive.next());
    EXPECT_EQ(archive.bytes_done(), archive.bytes_total());
    archive.rewind();
  }
}

TEST(map_archive, classes_travel_with_the_maps) {
  const temporary_folder folder;
  record(folder.path() / "a.safetensors", {{3, 4, 3, 9}});
  map_archive archive(std::vector{folder.path() / "a.safetensors"});
  const auto map = archive.next();
  ASSERT_TRUE(map);
  const auto digits = static_cast<token_classes>(headwise::first_user_class);
  EXPECT_EQ(map->keys[0].classes, token_classes::sink | token_classes::special);
  EXPECT_EQ(map->keys[1].classes, digits);
  EXPECT_EQ(map->keys[2].classes, token_classes::special);
  EXPECT_EQ(map->keys[3].classes, token_classes::none);
  EXPECT_NE(map->place.find("a.safetensors: tensor '0.0.attention'"), std::string_view::npos);
}

TEST(map_archive, prompts_come_in_the_order_of_their_numbers) {
  const temporary_folder folder;
  std::vector<made_tensor> tensors;
  for (const char* const name : {"b.c", "10", "a", "9"}) {
    tensors.push_back(map_tensor(name, 0));
    tensors.push_back(tokens_tensor(name, {1, 2, 3, 4}));
  }
  const auto path = folder.write("a.safetensors", safetensors_of(map_metadata(1), tensors));
  map_archive archive(std::vector{path});
  for (const std::string name : {"9", "10", "a", "b.c"})
    for (int head = 0; head < 2; ++head)
      EXPECT_NE(archive.next()->place.find("'" + name + ".0.attention'"), std::string_view::npos);
}

// What a recording in half precision holds is the nearest half, so it reads back within 2^-11.
TEST(map_archive, half_precision) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> prompts{{1, 2, 3}};
  const std::vector<float> weights{1, 0, 0, 0.3F, 0.7F, 0, 0.1F, 0.2F, 0.7F};
  for (const auto& [type, bound] :
       {std::pair(element_type::f16, 0x1p-11F), std::pair(element_type::bf16, 0x1p-8F)}) {
    map_writer writer(folder.path() / "a.safetensors", {{1, 1, 1, 8}, {}, {}}, prompts, type);
    writer.write(0, 0, 0, 0, rows<const float>(weights.data(), 3, 3));
    writer.finish();
    map_archive archive(std::vector{folder.path() / "a.safetensors"});
    const auto map = archive.next();
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_NEAR(map->weights.at(i / 3, i % 3), weights[i], weights[i] * bound);
  }
}

// Where the file's elements are what the profiler reads, the weights lie in the file: those of one
// map right behind those of the one before.
TEST(map_archive, hands_out_the_file_itself) {
  for (const auto& [dtype, type] :
       {std::pair("F32", weight_type::f32), std::pair("F16", weight_type::f16),
        std::pair("BF16", weight_type::bf16), std::pair("F64", weight_type::f32)}) {
    const temporary_folder folder;
    map_archive archive(std::vector{folder.write("a.safetensors", small_maps(1, dtype))});
    const auto first = archive.next();
    ASSERT_TRUE(first);
    const std::byte* const data = first->weights.data;
    EXPECT_EQ(first->weights.type, type) << dtype;
    const auto second = archive.next();
    ASSERT_TRUE(second);
    const auto apart = second->weights.data - data;
    EXPECT_EQ(apart, std::string_view(dtype) == "F64" ? 0 : type == weight_type::f32 ? 64 : 32);
  }
}

// The maps of each share, and only those, by readers that were not made anew.
TEST(map_archive, reads_a_share) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> first{{1, 2, 3}, {4}}, second{{5, 6, 7, 8, 9}};
  record(folder.path() / "a.safetensors", first);
  record(folder.path() / "b.safetensors", second);
  map_archive archive(
      std::vector{folder.path() / "a.safetensors", folder.path() / "b.safetensors"});
  ASSERT_TRUE(archive.next());
  std::uint64_t bytes = 0;
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> seen;
  for (std::uint32_t i = 0; i < 3; ++i) {
    map_archive reader = archive.another();
    const head_share share{i, 3};
    while (const auto map = reader.next(share)) {
      EXPECT_TRUE(share.holds(archive.shape(), map->layer, map->query_head));
      EXPECT_EQ(reader.maps_before(), (map->prompt * 2 + map->layer) * 4 + map->query_head);
      EXPECT_TRUE(seen.emplace(map->prompt, map->layer, map->query_head).second);
      const std::vector<std::int32_t>& ids = map->prompt < 2 ? first[map->prompt] : second[0];
      ASSERT_EQ(map->keys.size(), ids.size());
      for (std::size_t k = 0; k < ids.size(); ++k) EXPECT_EQ(map->keys[k].id, ids[k]);
      const std::size_t made_as = map->prompt < 2 ? map->prompt : 0;
      for (std::size_t k = 0; k < ids.size(); ++k)
        EXPECT_EQ(map->weights.at(ids.size() - 1, k),
                  weight(made_as, map->layer, map->query_head, ids.size() - 1, k));
    }
    bytes += reader.bytes_done();
  }
  EXPECT_EQ(seen.size(), 3U * 2U * 4U);
  EXPECT_EQ(bytes, archive.bytes_total());
}

TEST(map_archive, a_file_that_changed_is_not_the_file_that_was_opened) {
  const temporary_folder folder;
  const auto path = folder.path() / "a.safetensors";
  record(path, {{1, 2, 3}});
  map_archive archive(std::vector{path});
  record(path, {{3, 2, 1}});  // of the same sizes and metadata
  // Each time that it is asked for.
  for (int i = 0; i < 2; ++i)
    expect_error(error_code::unreadable, {"a.safetensors"},
                 [&] { static_cast<void>(archive.next()); });

  map_archive written(std::vector{path});
  ASSERT_TRUE(written.next());
  written.rewind();
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  expect_error(error_code::unreadable, {"a.safetensors"},
               [&] { static_cast<void>(written.next()); });
}

// What is read before it stays good, and the file is taken once it is again what it was.
TEST(map_archive, a_refused_file_leaves_the_archive_where_it_was) {
  const temporary_folder folder;
  const std::vector<std::vector<std::int32_t>> first{{1, 2, 3}, {4}}, second{{5, 6}};
  record(folder.path() / "a.safetensors", first);
  record(folder.path() / "b.safetensors", second);
  map_archive archive(std::vector{folder.path()});
  expect_prompt(archive, 0, 0, first[0]);
  expect_prompt(archive, 1, 1, first[1]);
  std::filesystem::rename(folder.path() / "b.safetensors", folder.path() / "b");
  record(folder.path() / "b.safetensors", second);
  for (int i = 0; i < 3; ++i)
    expect_error(error_code::unreadable, {"b.safetensors", "another file"},
                 [&] { static_cast<void>(archive.next()); });
  std::filesystem::rename(folder.path() / "b", folder.path() / "b.safetensors");
  expect_prompt(archive, 2, 0, second[0]);
  EXPECT_FALSE(archive.next());
}

TEST(map_archive, nor_is_one_of_a_folder_of_arrays) {
  const temporary_folder folder;
  folder.write("metadata.json", map_metadata(1));
  folder.write("0.tokens.npy",
               npy_bytes(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }",
                         bytes_of(std::vector<std::int32_t>{5})));
  std::filesystem::path last;
  for (const char* const name : {"0.0.0.npy", "0.0.1.npy"})
    last = folder.write(name,
                        npy_bytes(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }",
                                  bytes_of(std::vector<float>{1})));
  map_archive archive(std::vector{folder.path()});
  ASSERT_TRUE(archive.next());
  std::filesystem::last_write_time(
      last, std::filesystem::last_write_time(last) + std::chrono::seconds(1));
  expect_error(error_code::unreadable, {"0.0.1.npy"}, [&] { static_cast<void>(archive.next()); });
}

TEST(map_archive, metadata_is_checked) {
  const auto refused = [](const std::string& metadata, error_code code, std::string_view what) {
    const temporary_folder folder;
    const auto path = folder.write(
        "a.safetensors",
        safetensors_of(metadata, {map_tensor("0", 0), tokens_tensor("0", {1, 2, 3, 4})}));
    expect_error(code, {"a.safetensors: metadata", what},
                 [&] { const map_archive archive(std::vector{path}); });
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string metadata = map_metadata(1);
    return metadata.replace(metadata.find(from), from.size(), to);
  };
  refused(changed("headwise-maps", "pt"), error_code::malformed, "'pt'");
  refused(changed("\"version\": \"1\"", "\"version\": \"2\""), error_code::unsupported, "'2'");
  refused(changed("\"version\": \"1\"", "\"version\": \"01\""), error_code::unsupported, "'01'");
  refused(changed(", \"layers\": \"1\"", ""), error_code::missing, "layers");
  refused(changed("\"layers\": \"1\"", "\"layers\": \"1x\""), error_code::malformed, "'1x'");
  refused(changed("\"layers\": \"1\"", "\"layers\": \"-1\""), error_code::malformed, "'-1'");
  refused(changed("\"layers\": \"1\"", "\"layers\": \"4294967297\""), error_code::malformed,
          "4294967297");
  refused(changed("\"kv_heads\": \"1\"", "\"kv_heads\": \"0\""), error_code::invalid_argument,
          "kv_heads");
  refused(map_metadata(1, ", \"token_classes\": \"{\\\"special\\\": [1]}\""), error_code::missing,
          "vocab_size");
  refused(map_metadata(1, ", \"vocab_size\": \"9\", \"token_classes\": \"{\\\"special\\\": [9]}\""),
          error_code::out_of_range, "/special/0");
  refused(map_metadata(1, ", \"vocab_size\": \"9\", \"token_classes\": \"[1]\""),
          error_code::malformed, "token_classes");
}

TEST(map_archive, shapes_are_checked) {
  const auto refused = [](const std::vector<made_tensor>& tensors, error_code code,
                          std::initializer_list<std::string_view> parts) {
    const temporary_folder folder;
    const auto path = folder.write("a.safetensors", safetensors_of(map_metadata(1), tensors));
    expect_error(code, parts, [&] { const map_archive archive(std::vector{path}); });
  };
  const std::string one = elements("F32", small_map);
  refused({{"0.0.attention", "F32", "[1, 4, 4]", one}, tokens_tensor("0", {1, 2, 3, 4})},
          error_code::shape_mismatch, {"'0.0.attention'", "[1, 4, 4]"});
  refused({map_tensor("0", 0), tokens_tensor("0", {1, 2, 3})}, error_code::shape_mismatch,
          {"'0.0.attention'", "3 keys"});
  refused({map_tensor("0", 0), {"0.tokens", "F32", "[4]", std::string(16, '\0')}},
          error_code::unsupported, {"'0.tokens'", "F32 [4]"});
  refused({map_tensor("0", 0), {"0.tokens", "I32", "[2, 2]", std::string(16, '\0')}},
          error_code::unsupported, {"'0.tokens'", "I32 [2, 2]"});
  refused(
      {map_tensor("0", 0), {"0.x.attention", "U8", "[1]", "\1"}, tokens_tensor("0", {1, 2, 3, 4})},
      error_code::malformed, {"'0.x.attention'"});
  refused({map_tensor("0", 0), map_tensor("0.00", 0), tokens_tensor("0", {1, 2, 3, 4})},
          error_code::missing, {"'0.00.tokens'"});
  std::vector<made_tensor> twice{map_tensor("0", 0), map_tensor("0", 0),
                                 tokens_tensor("0", {1, 2, 3, 4})};
  twice[1].name = "0.00.attention";
  refused(twice, error_code::duplicate, {"layer 0", "twice"});
}

TEST(map_archive, paths) {
  const temporary_folder folder;
  const auto refused = [](const std::vector<std::filesystem::path>& paths, error_code code,
                          std::string_view what) {
    expect_error(code, {what}, [&] { const map_archive archive(paths); });
  };
  refused({}, error_code::missing, "no files");
  refused({folder.path()}, error_code::missing, "no maps");
  refused({folder.path() / "absent"}, error_code::unreadable, "absent");
  refused({folder.write("0.0.0.npy", "")}, error_code::unsupported, "folder");
  refused({folder.path()}, error_code::unreadable, "metadata.json");
}

TEST(map_archive, a_file_that_changes_between_passes_is_refused) {
  const temporary_folder folder;
  const auto path = folder.write("a.safetensors", small_maps(1));
  map_archive archive(std::vector{path});
  folder.write("b", small_maps(1, "F32", ", \"model\": \"another\""));
  std::filesystem::rename(folder.path() / "b", path);
  expect_error(error_code::shape_mismatch, {"model", "'another'"},
               [&] { static_cast<void>(archive.next()); });
}

TEST(hash_source, names_and_hashes) {
  const temporary_folder folder;
  const auto path = folder.write("abc.txt", "abc");
  const headwise::map_file file{path, headwise::mapped_file(path).version()};
  const headwise::profile_source source = headwise::hash_source(file);
  EXPECT_EQ(source.name, "abc.txt");
  EXPECT_EQ(source.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// A hash stands for the bytes that were measured, or there is none.
TEST(hash_source, refuses_a_file_that_is_another_since) {
  const temporary_folder folder;
  const auto path = folder.path() / "a.safetensors";
  record(path, {{1, 2, 3}});
  map_archive archive(std::vector{folder.path()});
  while (archive.next()) continue;
  ASSERT_EQ(archive.files().size(), 1U);
  EXPECT_EQ(headwise::hash_source(archive.files().front()).name, "a.safetensors");
  record(path, {{3, 2, 1}});
  expect_error(error_code::unreadable, {"a.safetensors", "another file"},
               [&] { static_cast<void>(headwise::hash_source(archive.files().front())); });
}

// The arrays that maps and tokens were read from, and no other.
TEST(map_archive, names_the_files_of_a_folder_of_arrays) {
  const temporary_folder folder;
  folder.write("metadata.json", map_metadata(1));
  folder.write("notes.npy", "not an array");
  const auto array = [](const std::string& type, const std::string& shape, const auto& values) {
    return npy_bytes(1,
                     "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }",
                     bytes_of(values));
  };
  folder.write("0.tokens.npy", array("<i4", "(1,)", std::vector<std::int32_t>{5}));
  for (const char* const name : {"0.0.0.npy", "0.0.1.npy"})
    folder.write(name, array("<f4", "(1, 1)", std::vector<float>{1}));
  const map_archive archive(std::vector{folder.path()});
  std::vector<std::string> names;
  for (const headwise::map_file& file : archive.files())
    names.push_back(headwise::hash_source(file).name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.0.0.npy", "0.0.1.npy", "0.tokens.npy"}));
}

}  // namespace
