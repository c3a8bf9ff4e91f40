// SPDX-License-Identifier: Apache-2.0
//
// mapped_file, replacing_file, safetensors_writer.
#include "support/files.hpp"

#include <csignal>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headwise/io/mapped_file.hpp"
#include "headwise/io/replacing_file.hpp"
#include "headwise/io/safetensors_reader.hpp"
#include "headwise/io/safetensors_writer.hpp"

namespace {

using headwise::element_type;
using headwise::error_code;
using headwise::mapped_file;
using headwise::replacing_file;
using headwise::safetensors_reader;
using headwise::safetensors_writer;
using headwise::tensor_declaration;
using namespace headwise_tests;

std::string text_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(mapped_file, reads_moves_and_forgets) {
  const temporary_folder folder;
  const std::string text(100'000, 'x');
  mapped_file file(folder.write("a", text));
  file.forget(file.bytes().subspan(4000, 5000));
  mapped_file other(std::move(file));
  EXPECT_EQ(text_in(other.bytes()), text);
  mapped_file empty(folder.write("b", ""));
  EXPECT_EQ(empty.size(), 0U);
  empty = std::move(other);
  EXPECT_EQ(text_in(empty.bytes()), text);
}

TEST(mapped_file, refuses_what_is_no_file) {
  const temporary_folder folder;
  const auto refused = [](const std::filesystem::path& path, std::string_view reason) {
    expect_error(error_code::unreadable, {path.string(), reason},
                 [&] { const mapped_file file(path); });
  };
  refused(folder.path() / "absent", "No such file");
  refused(folder.path(), "regular file");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, "regular file");
}

TEST(replacing_file, appears_whole_or_not_at_all) {
  const temporary_folder folder;
  const auto path = folder.write("a", "before");
  {
    replacing_file file(path);
    file.write_at(0, std::as_bytes(std::span("after", 5)));
    EXPECT_EQ(read_file(path), "before");
  }
  EXPECT_EQ(read_file(path), "before");
  EXPECT_EQ(files_in(folder.path()), 1U);
  replacing_file file(path);
  file.write_at(2, std::as_bytes(std::span("ter", 3)));
  file.write_at(0, std::as_bytes(std::span("af", 2)));
  file.commit();
  EXPECT_EQ(read_file(path), "after");
  EXPECT_EQ(files_in(folder.path()), 1U);
  expect_error(error_code::unreadable, {"no_folder/a", "No such file"},
               [&] { const replacing_file bad(folder.path() / "no_folder" / "a"); });
}

TEST(replacing_file, replaces_files_alone) {
  const temporary_folder folder;
  const auto refused = [](const std::filesystem::path& path, std::string_view reason) {
    expect_error(error_code::unreadable, {path.string(), reason, "a file to write"},
                 [&] { const replacing_file file(path); });
  };
  refused(folder.path(), "a folder");
  refused("/dev/null", "a device, pipe or socket");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, "a device, pipe or socket");
}

TEST(replacing_file, needs_room_for_a_name_beside_it_from_the_start) {
  const temporary_folder folder;
  for (const std::size_t letters : {230U, 245U, 300U}) {
    const std::filesystem::path path = folder.path() / std::string(letters, 'a');
    if (letters == 230) {
      headwise::replacing_file file(path);
      file.commit();
      EXPECT_TRUE(std::filesystem::exists(path));
    } else {
      EXPECT_THROW(headwise::replacing_file{path}, headwise::error) << letters;
    }
  }
}

TEST(replacing_file, follows_links) {
  const temporary_folder folder;
  std::filesystem::create_directory(folder.path() / "in");
  const auto target = folder.path() / "in" / "target";
  const auto link = folder.path() / "link", other = folder.path() / "in" / "other";
  std::filesystem::create_symlink("in/other", link);
  std::filesystem::create_symlink("target", other);
  for (const char* const text : {"first", "again"}) {  // the target is not there, and is
    replacing_file file(link);
    EXPECT_EQ(file.path(), link.string());
    file.write_at(0, std::as_bytes(std::span(text, 5)));
    file.commit();
    EXPECT_EQ(read_file(target), text);
    EXPECT_TRUE(std::filesystem::is_symlink(link) && std::filesystem::is_symlink(other));
  }
  EXPECT_EQ(files_in(folder.path() / "in"), 2U);
  const auto round = folder.path() / "round";
  std::filesystem::create_symlink("round", round);
  expect_error(error_code::unreadable, {"round", "a link that cannot be followed"},
               [&] { const replacing_file file(round); });
}

#ifdef O_TMPFILE
TEST(replacing_file, leaves_nothing_when_its_process_is_killed) {
  const temporary_folder folder;
  const headwise::detail::file_descriptor nameless(
      ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (nameless.get() < 0) GTEST_SKIP() << "a file system without files that have no name";
  const pid_t child = ::fork();
  if (child == 0) {
    const replacing_file file(folder.path() / "a", 4096);
    ::raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(files_in(folder.path()), 0U);
}
#endif

// 1. A published file stays as it is while another writer of its name goes on. 2. The last to
// commit has its way. 3. No writer removes what another one writes.
TEST(replacing_file, writers_of_one_name_do_not_share_a_file) {
  const temporary_folder folder;
  const auto path = folder.path() / "a";
  const auto write = [](replacing_file& file, std::string_view text) {
    file.write_at(0, std::as_bytes(std::span(text)));
  };
  replacing_file first(path), second(path);
  {
    replacing_file third(path);
    write(third, "third");
  }
  write(first, "first");
  write(second, "2");
  first.commit();
  EXPECT_EQ(read_file(path), "first");  // 3
  write(second, "second");
  EXPECT_EQ(read_file(path), "first");  // 1
  replacing_file fourth(path);
  second.commit();
  EXPECT_EQ(read_file(path), "second");  // 2
  write(fourth, "fourth");
  EXPECT_EQ(read_file(path), "second");  // 1
  fourth.commit();
  EXPECT_EQ(read_file(path), "fourth");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

// A name that a writer left behind when it was killed is no obstacle.
TEST(replacing_file, passes_by_what_is_left_of_another) {
  const temporary_folder folder;
  const auto path = folder.path() / "a";
  const auto left = folder.write("a." + std::to_string(::getpid()) + ".0.partial", "left");
  replacing_file file(path);
  file.commit();
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(read_file(left), "left");
}

TEST(replacing_file, leaves_nothing_where_there_is_no_room) {
  const temporary_folder folder;
  expect_error(error_code::unreadable, {"big", "File too large", "9223372036854775808"},
               [&] { const replacing_file file(folder.path() / "big", std::uint64_t{1} << 63); });
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(safetensors_writer, reads_back_in_any_order_of_writing) {
  const temporary_folder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::vector<float> floats{1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> ids{7, 8, 9};
  const std::vector<tensor_declaration> tensors{{"z\"odd", element_type::f32, {2, 3}},
                                                {"a", element_type::i32, {3}},
                                                {"e", element_type::f64, {0}}};
  const headwise::text_map metadata{{"key", "value \n \xc3\xa9"}, {"a", ""}};
  const auto write = [&] {
    safetensors_writer writer(path, metadata, tensors);
    writer.write("a", 0, std::as_bytes(std::span(ids)));
    writer.write("z\"odd", 8, std::as_bytes(std::span(floats)).subspan(8));
    writer.write("z\"odd", 0, std::as_bytes(std::span(floats)).first(8));
    writer.finish();
  };
  write();
  const std::string first = read_file(path);
  write();
  EXPECT_EQ(read_file(path), first);
  const safetensors_reader reader(path);
  EXPECT_EQ(reader.metadata(), metadata);
  ASSERT_EQ(reader.tensors().size(), 3U);
  EXPECT_EQ(text_in(reader.find("z\"odd")->bytes), bytes_of(floats));
  EXPECT_EQ(text_in(reader.find("a")->bytes), bytes_of(ids));
  EXPECT_EQ(reader.find("a")->shape, std::vector<std::uint64_t>{3});
  EXPECT_EQ(reader.find("b"), nullptr);
  EXPECT_EQ((reader.find("z\"odd")->bytes.data() - reader.file().bytes().data()) % 8, 0);
}

TEST(safetensors_writer, refuses_and_leaves_nothing) {
  const temporary_folder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::vector<tensor_declaration> one{{"a", element_type::u8, {4}}};
  const std::vector<std::byte> bytes(5);
  expect_error(error_code::missing, {"'a'", "3 bytes written", "4 bytes"}, [&] {
    safetensors_writer writer(path, {}, one);
    writer.write("a", 0, std::span(bytes).first(3));
    writer.finish();
  });
  safetensors_writer writer(path, {}, one);
  expect_error(error_code::out_of_range, {"'a'", "5 bytes at 0"},
               [&] { writer.write("a", 0, bytes); });
  expect_error(error_code::out_of_range, {"'a'", "2 bytes at 3"},
               [&] { writer.write("a", 3, std::span(bytes).first(2)); });
  expect_error(error_code::out_of_range, {"'a'"}, [&] {
    writer.write("a", std::numeric_limits<std::uint64_t>::max(), std::span(bytes).first(2));
  });
  expect_error(error_code::missing, {"'b'"}, [&] { writer.write("b", 0, bytes); });
  const auto refused = [&](error_code code, const std::vector<tensor_declaration>& tensors) {
    expect_error(code, {"a.safetensors"}, [&] { const safetensors_writer bad(path, {}, tensors); });
  };
  refused(error_code::duplicate, {one[0], one[0]});
  refused(error_code::invalid_argument, {{"a", element_type::f64, {1ULL << 40, 1ULL << 40}}});
  refused(error_code::invalid_argument, {{"\xff", element_type::u8, {1}}});
  const std::vector<std::uint64_t> huge{1ULL << 62};  // four of them wrap to 0
  refused(error_code::invalid_argument, {{"a", element_type::u8, huge},
                                         {"b", element_type::u8, huge},
                                         {"c", element_type::u8, huge},
                                         {"d", element_type::u8, huge}});
  expect_error(error_code::invalid_argument, {"header", "100000000 bytes"}, [&] {
    const headwise::text_map metadata{
        {"a", std::string(safetensors_reader::max_header_bytes, 'x')}};
    const safetensors_writer bad(path, metadata, one);
  });
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
