// SPDX-License-Identifier: Apache-2.0
//
// Fault group I, blueprints: JSON and locales.
#include <array>
#include <clocale>
#include <cmath>
#include <limits>
#include <locale>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>

#include "headwise/io/safetensors_reader.hpp"
#include "support/files.hpp"
#include "support/made_blueprint.hpp"

namespace {

using headwise::blueprint;
using headwise::error_code;
using namespace headwise_tests;

const std::string good_blueprint = text_of(made_blueprint());

void expect_blueprint_refused(const std::string& text, error_code code,
                              std::initializer_list<std::string_view> parts) {
  expect_error(code, parts, [&] { static_cast<void>(blueprint_of(text)); });
}

TEST(fault_cases, I05_truncated_blueprint) {
  ASSERT_EQ(blueprint_of(good_blueprint), made_blueprint());
  const std::size_t end = good_blueprint.find_last_of('}');
  for (std::size_t bytes = 0; bytes <= end; ++bytes)
    expect_blueprint_refused(good_blueprint.substr(0, bytes), error_code::malformed,
                             {"plan.json", "byte"});
}

TEST(fault_cases, I09_key_twice) {
  expect_blueprint_refused(with(good_blueprint, "  \"heads\": [", "  \"heads\": [], \"heads\": ["),
                           error_code::duplicate, {"plan.json", "/heads"});
  expect_blueprint_refused(
      with(good_blueprint, "\"kind\": \"global\"", "\"kind\": \"global\", \"kind\": \"global\""),
      error_code::duplicate, {"/policies/1/kind"});
  expect_blueprint_refused(
      with(good_blueprint, "{\"name\": \"global\", \"kind\"", "{\"name\": \"learned\", \"kind\""),
      error_code::duplicate, {"/policies/3/name", "learned"});
}

// Both on a stack of 256 KiB.
TEST(fault_cases, I11_deep_nesting) {
  const auto body = [](void*) -> void* {
    const std::string deep(100'000, '[');
    expect_blueprint_refused(deep, error_code::malformed, {"plan.json", "nesting too deep"});
    expect_blueprint_refused(
        with(good_blueprint,
             "\"candidates\": [{\"name\": \"sinks\", \"recovery\": 0.1, "
             "\"resident_fraction\": 0.3333333333333333}, {\"name\": \"global\"",
             "\"candidates\": " + deep),
        error_code::malformed, {"/heads/0/1/candidates", "nesting too deep"});
    const temporary_folder folder;
    const auto path = folder.write("deep.safetensors", safetensors_bytes("{\"a\": " + deep, ""));
    expect_error(error_code::malformed, {"deep.safetensors", "nesting too deep"},
                 [&] { const headwise::safetensors_reader reader(path); });
    return nullptr;
  };
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, std::size_t{256} << 10), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &small, body, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&small);
}

// 2621 -> 2,621 and 0.5 -> 0,5.
class grouping_comma : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class global_locale {
 public:
  explicit global_locale(const std::locale& locale) : before_(std::locale::global(locale)) {}
  global_locale(const global_locale&) = delete;
  global_locale& operator=(const global_locale&) = delete;
  ~global_locale() { std::locale::global(before_); }

 private:
  std::locale before_;
};

TEST(fault_cases, I15_digit_grouping) {
  const global_locale set(std::locale(std::locale::classic(), new grouping_comma));
  std::ostringstream probe;
  probe << 4096 << ' ' << 0.5;
  ASSERT_EQ(probe.str(), "4.096 0,5") << "the locale does not take";
  EXPECT_EQ(text_of(made_blueprint()), good_blueprint);
  EXPECT_EQ(blueprint_of(good_blueprint), made_blueprint());
}

TEST(fault_cases, I18_decimal_comma) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool found = false;
  for (const char* const name :
       {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"})
    found = found || std::setlocale(LC_ALL, name) != nullptr;
  const std::string text = text_of(made_blueprint());
  const blueprint back = blueprint_of(good_blueprint);
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(text, good_blueprint);
  EXPECT_EQ(back, made_blueprint());
  if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed; ran in " << before;
}

TEST(fault_cases, I19_byte_order_mark) {
  EXPECT_EQ(blueprint_of("\xef\xbb\xbf" + good_blueprint), made_blueprint());
  std::string utf16 = "\xff\xfe";
  for (const char c : good_blueprint) utf16 += c, utf16 += '\0';
  expect_blueprint_refused(utf16, error_code::malformed, {"plan.json", "byte 1"});
  expect_blueprint_refused("", error_code::malformed, {"plan.json", "byte 1"});
  expect_blueprint_refused(" \n\t ", error_code::malformed, {"plan.json", "byte 5"});
}

TEST(fault_cases, I20_integers_out_of_range) {
  const auto window = [](const std::string& value) {
    return with(good_blueprint, "\"window\": 4096", "\"window\": " + value);
  };
  const std::string pointer = "/policies/0/window";
  expect_blueprint_refused(window("-1"), error_code::out_of_range, {pointer, "got -1,"});
  expect_blueprint_refused(window("0"), error_code::out_of_range, {pointer, "got 0,"});
  expect_blueprint_refused(window("17179869184"), error_code::out_of_range,
                           {pointer, "17179869184"});
  expect_blueprint_refused(window("18446744073709551617"), error_code::out_of_range,
                           {pointer, "18446744073709551617"});
  expect_blueprint_refused(window("1e3"), error_code::out_of_range, {pointer, "got 1e3,"});
  expect_blueprint_refused(window("4.7"), error_code::out_of_range, {pointer, "got 4.7,"});
  expect_blueprint_refused(window("\"4\""), error_code::malformed, {pointer, "'4'"});
  expect_blueprint_refused(window("true"), error_code::malformed, {pointer, "got true,"});
  expect_blueprint_refused(window("null"), error_code::malformed, {pointer, "got null,"});
  expect_blueprint_refused(with(good_blueprint, "\"layers\": 2", "\"layers\": 4294967298"),
                           error_code::out_of_range, {"/model/layers", "4294967298"});
  expect_blueprint_refused(with(good_blueprint, "[40, 41, 42]", "[40, 4294967337, 42]"),
                           error_code::out_of_range, {"/tokens/classes/digits/1", "4294967337"});
  expect_blueprint_refused(with(good_blueprint, "\"prompts\": 8", "\"prompts\": 1e400"),
                           error_code::malformed, {"plan.json", "1e400"});
}

TEST(fault_cases, I21_not_a_number) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -0.5, 1.5}) {
    const auto refused = [&](std::string_view pointer, auto&& change) {
      blueprint plan = made_blueprint();
      change(plan);
      expect_error(error_code::out_of_range, {pointer}, [&] { static_cast<void>(text_of(plan)); });
    };
    refused("/heads/1/0/recovery", [&](blueprint& plan) { plan.heads[2].recovery = bad; });
    refused("/heads/0/1/resident_fraction",
            [&](blueprint& plan) { plan.heads[1].resident_fraction = bad; });
    refused("/heads/0/0/candidates/1/recovery",
            [&](blueprint& plan) { plan.heads[0].candidates[1].recovery = bad; });
    refused("/profile/recovery_target",
            [&](blueprint& plan) { plan.origin.recovery_target = bad; });
  }
}

TEST(fault_cases, I22_another_model) {
  const auto refused = [](headwise::model_shape made_for, headwise::model_shape model,
                          std::initializer_list<std::string_view> parts) {
    blueprint plan = headwise::uniform_blueprint(made_for, headwise::make_spec(headwise::global{}));
    plan = blueprint_of(text_of(plan));
    expect_error(error_code::shape_mismatch, parts, [&] { headwise::require_match(plan, model); });
  };
  refused({36, 8, 8, 64}, {32, 8, 8, 64}, {"layers", "blueprint 36", "model 32"});
  refused({36, 8, 8, 64}, {36, 8, 4, 64}, {"kv_heads", "blueprint 8", "model 4"});
  refused({32, 16, 8, 64}, {32, 8, 8, 64}, {"query_heads", "blueprint 16", "model 8"});
  const blueprint plan = blueprint_of(good_blueprint);
  expect_error(error_code::shape_mismatch, {"name", "'another'"}, [&] {
    headwise::require_match(plan, plan.shape, {"another", 100, "0123abcd"});
  });
  headwise::require_match(plan, plan.shape, {});  // the explicit way out: a model that is not known

  // Heads that are not those of the file's own model.
  expect_blueprint_refused(with(good_blueprint, "\"layers\": 2", "\"layers\": 3"),
                           error_code::shape_mismatch,
                           {"/heads", "2 layers", "3 as /model/layers says"});
  expect_blueprint_refused(with(good_blueprint, "\"kv_heads\": 2", "\"kv_heads\": 4"),
                           error_code::shape_mismatch,
                           {"/heads/0", "2 kv_heads", "4 as /model/kv_heads says"});
}

TEST(fault_cases, I23_version_skew) {
  expect_blueprint_refused(with(good_blueprint, "\"version\": 1", "\"version\": 999"),
                           error_code::unsupported, {"/version", "999"});
  expect_blueprint_refused(with(good_blueprint, "\"version\": 1,", ""), error_code::missing,
                           {"/version"});
  expect_blueprint_refused(with(good_blueprint, "\"headwise-blueprint\"", "\"headwise-maps\""),
                           error_code::malformed, {"/format", "headwise-maps"});
  expect_blueprint_refused(with(good_blueprint, "\"kind\": \"global\"", "\"kind\": \"sparse_v2\""),
                           error_code::unsupported, {"/policies/1/kind", "sparse_v2"});
  expect_blueprint_refused(
      with(good_blueprint, "\"window\": 4096", "\"window\": 4096, \"windw\": 4"),
      error_code::malformed, {"/policies/0/windw"});
  expect_blueprint_refused(with(good_blueprint, "\"profile\": {", "\"profile\": {\"windw\": 4, "),
                           error_code::malformed, {"/profile/windw"});
  expect_blueprint_refused(with(good_blueprint, "{\"policy\": \"learned\", ", "{"),
                           error_code::missing, {"/heads/1/1/policy"});
  expect_blueprint_refused(
      with(good_blueprint, "{\"policy\": \"learned\"", "{\"policy\": \"learnt\""),
      error_code::missing, {"/heads/1/1/policy", "learnt"});
  expect_blueprint_refused(with(good_blueprint, "[\"sink\", \"special\"]", "[\"sink\", \"image\"]"),
                           error_code::missing, {"/policies/2/parts/0/classes/1", "image"});
}

}  // namespace
