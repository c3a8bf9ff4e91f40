// SPDX-License-Identifier: Apache-2.0
#include "headwise/io/blueprint_json.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/files.hpp"
#include "support/made_blueprint.hpp"
#include "support/random.hpp"

namespace {

using headwise::blueprint;
using headwise::error_code;
using headwise::policy_spec;
using headwise::token_classes;
using namespace headwise_tests;

// A user's own policy: every nth token for ever.
struct every_third {
  static constexpr std::string_view kind = "every_third";
  std::int64_t offset = 0;
  [[nodiscard]] headwise::token_count lifetime(const headwise::token& t) const noexcept {
    return (t.pos + offset) % 3 == 0 ? headwise::forever : 1;
  }
  [[nodiscard]] headwise::lifetime_set lifetimes() const noexcept { return {1, headwise::forever}; }
  static every_third from_spec(const policy_spec& spec, const std::string&) {
    return {spec.params.at("offset")};
  }
  [[nodiscard]] policy_spec to_spec() const {
    return {std::string(kind), {{"offset", offset}}, {}, {}};
  }
  friend bool operator==(const every_third&, const every_third&) = default;
};
using my_policies = headwise::policy_list<headwise::global, headwise::local_window, every_third>;

policy_spec random_spec(random_source& random, const blueprint& plan) {
  using namespace headwise;
  token_classes classes = token_classes::none;
  for (const token_classes bit :
       {token_classes::sink, token_classes::special, token_classes::punctuation})
    if (random.one_in(2)) classes |= bit;
  for (const token_class_rule& rule : plan.tokens.classes)
    if (random.one_in(2)) classes |= rule.bit;
  std::vector<std::int32_t> ids;
  for (std::uint32_t i = random.below(4); i > 0; --i)
    ids.push_back(static_cast<std::int32_t>(random.below(plan.model.vocab_size)));
  const special_tokens special(classes, ids);
  const local_window window(random.between(1, random.one_in(2) ? 100 : forever));
  switch (random.below(4)) {
    case 0:
      return make_spec(global{});
    case 1:
      return make_spec(window);
    case 2:
      return make_spec(special);
    default:
      return make_spec(union_of(special, window));
  }
}

blueprint random_blueprint(random_source& random) {
  using namespace headwise;
  const auto fraction = [&] { return std::abs(static_cast<double>(random.number())) / 3; };
  blueprint plan;
  const std::uint32_t kv_heads = random.between(1, 4);
  plan.shape = {random.between(1, 5), kv_heads * random.between(1, 4), kv_heads,
                random.between(1, 256)};
  plan.model = {random.one_in(2) ? "" : "model\n\x01", random.between(50, 100), "ff"};
  plan.tokens.sink_count = random.bits();
  const std::vector<std::pair<std::string, token_classes>> classes{
      {"a", static_cast<token_classes>(1U << 16)},
      {"special", token_classes::special},
      {"sink", token_classes::sink},
      {"punctuation", token_classes::punctuation},
      {"b/~", static_cast<token_classes>(1U << 17)}};
  for (const auto& [name, bit] : classes) {
    plan.tokens.classes.push_back({name, bit, {}});
    if (bit == token_classes::sink) continue;
    for (std::int32_t id = 0; id < 50; ++id)
      if (random.one_in(7)) plan.tokens.classes.back().ids.push_back(id);
  }
  plan.origin.recovery_target = fraction();
  if (random.one_in(2)) plan.origin.budget = fraction();
  plan.origin.aggregation = static_cast<group_aggregation>(random.below(3));
  plan.origin.criterion = static_cast<recovery_criterion>(random.below(2));
  plan.origin.granularity = static_cast<plan_granularity>(random.below(2));
  plan.origin.prompts = (std::uint64_t{random.bits()} << 32) | random.bits();
  plan.origin.queries = random.bits();
  plan.origin.length = random.bits();
  plan.origin.sources.resize(random.below(3), {"file", "00"});
  std::vector<policy_spec> specs;
  for (int i = 0; i < 3; ++i) specs.push_back(random_spec(random, plan));
  for (std::size_t i = 0; i < plan.shape.heads(); ++i) {
    const std::uint32_t chosen = random.below(3);
    head_plan head{
        "policy " + std::to_string(chosen), specs[chosen], fraction(), fraction(), {}, {}};
    if (!random.one_in(3)) head.forever_fraction = fraction();
    for (std::uint32_t c = random.below(3); c > 0; --c)
      head.candidates.push_back({"candidate", fraction(), fraction()});
    plan.heads.push_back(std::move(head));
  }
  return plan;
}

TEST(blueprint_json, read_of_write_is_the_same) {
  random_source random(20);
  for (int i = 0; i < 200; ++i) {
    const blueprint plan = random_blueprint(random);
    const std::string text = text_of(plan);
    const blueprint back = blueprint_of(text);
    ASSERT_EQ(back, plan) << text;
    ASSERT_EQ(text_of(back), text);
  }
}

TEST(blueprint_json, save_and_load) {
  const temporary_folder folder;
  const auto path = folder.write("plan.json", "what was there before");
  headwise::save_blueprint(path, made_blueprint());
  EXPECT_EQ(headwise::load_blueprint(path), made_blueprint());
  EXPECT_EQ(read_file(path), text_of(made_blueprint()));

  blueprint bad = made_blueprint();
  bad.heads[3].recovery = 2;
  expect_error(error_code::out_of_range, {"plan.json: /heads/1/1/recovery", "got 2,"},
               [&] { headwise::save_blueprint(path, bad); });
  EXPECT_EQ(headwise::load_blueprint(path), made_blueprint());
  expect_error(error_code::unreadable, {"absent.json"},
               [&] { static_cast<void>(headwise::load_blueprint(folder.path() / "absent.json")); });
}

TEST(blueprint_json, policies_of_the_user) {
  blueprint plan =
      headwise::uniform_blueprint({1, 2, 2, 8}, headwise::make_spec(every_third{-2}), "thirds");
  plan.heads[1].name = "w";
  plan.heads[1].policy = headwise::make_spec(headwise::local_window(3));
  const std::string text = text_of<my_policies>(plan);
  EXPECT_EQ(blueprint_of<my_policies>(text), plan);
  expect_error(error_code::unsupported, {"/policies/0/kind", "every_third"},
               [&] { static_cast<void>(blueprint_of(text)); });
  expect_error(error_code::unsupported, {"/policies/0/kind", "every_third"},
               [&] { static_cast<void>(text_of(plan)); });
}

TEST(blueprint_json, writer_refuses_what_it_could_not_read) {
  const auto refused = [](error_code code, std::initializer_list<std::string_view> parts,
                          auto&& change) {
    blueprint plan = made_blueprint();
    change(plan);
    expect_error(code, parts, [&] { static_cast<void>(text_of(plan)); });
  };
  refused(error_code::shape_mismatch, {"/heads", "3 heads", "4"},
          [](blueprint& plan) { plan.heads.pop_back(); });
  refused(error_code::duplicate, {"/policies", "'global'"},
          [](blueprint& plan) { plan.heads[0].name = "global"; });
  refused(error_code::out_of_range, {"/policies/0/window"},
          [](blueprint& plan) { plan.heads[0].policy.params["window"] = 0; });
  refused(error_code::out_of_range, {"/policies/3/ids/1", "100"}, [](blueprint& plan) {
    plan.heads[3].policy.ids = {7, 100};
  });
  refused(error_code::missing, {"/policies/3/classes", "524288"},
          [](blueprint& plan) { plan.heads[3].policy.params["classes"] = std::int64_t{1} << 19; });
  refused(
      error_code::invalid_argument, {"/tokens/classes/digits", "131072", "65536"},
      [](blueprint& plan) { plan.tokens.classes[2].bit = static_cast<token_classes>(1U << 17); });
  refused(error_code::duplicate, {"/tokens/classes/special"},
          [](blueprint& plan) { plan.tokens.classes[1] = plan.tokens.classes[0]; });
  refused(error_code::malformed, {"/tokens/classes/special/1"}, [](blueprint& plan) {
    plan.tokens.classes[0].ids = {2, 1};
  });
  refused(error_code::out_of_range, {"/tokens/classes/special/0", "vocabulary's size 100"},
          [](blueprint& plan) { plan.tokens.classes[0].ids = {100}; });
  refused(error_code::invalid_argument, {"/model/name", "UTF-8"},
          [](blueprint& plan) { plan.model.name = "\xff"; });
  refused(error_code::out_of_range, {"/model/vocab_size", "16777217"},
          [](blueprint& plan) { plan.model.vocab_size = (1U << 24) + 1; });
  refused(error_code::invalid_argument, {"/model", "query_heads=3"},
          [](blueprint& plan) { plan.shape.query_heads = 3; });
}

TEST(blueprint_json, classes_with_ids_need_a_known_vocabulary) {
  const std::string good = text_of(made_blueprint());
  expect_error(error_code::missing, {"/tokens/classes/special", "3 ids", "vocab_size"}, [&] {
    static_cast<void>(blueprint_of(with(good, "\"vocab_size\": 100", "\"vocab_size\": 0")));
  });
  blueprint plan = made_blueprint();
  plan.model.vocab_size = 0;
  expect_error(error_code::missing, {"/tokens/classes/special", "vocab_size"},
               [&] { static_cast<void>(text_of(plan)); });
  for (headwise::token_class_rule& rule : plan.tokens.classes) rule.ids.clear();
  EXPECT_EQ(blueprint_of(text_of(plan)), plan);
}

TEST(blueprint_json, states_a_length_that_a_sequence_can_have) {
  const std::string good = text_of(made_blueprint());
  EXPECT_EQ(blueprint_of(with(good, "\"length\": 512", "\"length\": 4294967294")).origin.length,
            headwise::max_length);
  expect_error(error_code::out_of_range, {"/profile/length", "4294967295", "4294967294"}, [&] {
    static_cast<void>(blueprint_of(with(good, "\"length\": 512", "\"length\": 4294967295")));
  });
}

TEST(blueprint_json, a_policy_names_only_classes_that_are_declared) {
  const std::string good = text_of(made_blueprint());
  const auto refused = [](const std::string& text, error_code code,
                          std::initializer_list<std::string_view> parts) {
    expect_error(code, parts, [&] { static_cast<void>(blueprint_of(text)); });
  };
  refused(with(good, "[\"sink\", \"digits\"]", "[\"sink\", \"punctuations\"]"), error_code::missing,
          {"/policies/3/classes/1", "punctuations"});
  blueprint plan = made_blueprint();
  plan.tokens.classes.erase(plan.tokens.classes.begin());
  expect_error(error_code::missing, {"/policies/2/parts/0/classes", "/tokens/classes"},
               [&] { static_cast<void>(text_of(plan)); });
  plan = made_blueprint();
  plan.tokens.classes.erase(plan.tokens.classes.begin() + 1);
  refused(with(text_of(plan), "[\"sink\", \"special\"]", "[\"sink\", \"punctuation\"]"),
          error_code::missing, {"/policies/2/parts/0/classes/1", "punctuation"});
}

TEST(blueprint_json, empty_arrays_are_members_too) {
  const std::string good = text_of(made_blueprint());
  const auto refused = [&](const std::string& from, const std::string& to, std::string_view place) {
    expect_error(error_code::malformed, {place},
                 [&] { static_cast<void>(blueprint_of(with(good, from, to))); });
  };
  const std::string window = "\"window\": 4096", tokens = "\"classes\": [\"sink\", \"digits\"]";
  refused(window, window + ", \"ids\": []", "/policies/0/ids");
  refused(window, window + ", \"parts\": []", "/policies/0/parts");
  refused(tokens, tokens + ", \"parts\": []", "/policies/3/parts");
  refused("\"kind\": \"union\"", "\"kind\": \"union\", \"ids\": []", "/policies/2/ids");
}

TEST(blueprint_json, a_deep_union_is_refused_before_the_reader_would) {
  blueprint plan = made_blueprint();
  policy_spec deep = headwise::make_spec(headwise::local_window(2));
  for (int i = 0; i < 40; ++i) {
    policy_spec outer{"union", {}, {}, {}};
    outer.parts.push_back(std::move(deep));
    deep = std::move(outer);
  }
  plan.heads[0].policy = deep;
  expect_error(error_code::invalid_argument, {"/policies/0/parts/0", "nested"},
               [&] { static_cast<void>(text_of(plan)); });
}

TEST(blueprint_json, a_stream_that_fails_is_reported) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  expect_error(error_code::unreadable, {"blueprint"},
               [&] { headwise::write_blueprint(out, made_blueprint()); });
}

}  // namespace
