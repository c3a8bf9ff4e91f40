// SPDX-License-Identifier: Apache-2.0
//
// save_blueprint, write_blueprint: see blueprint_json.hpp. One line for each head, each policy,
// each class and each source, in a fixed order, so that two files compare line by line; equal
// blueprints give equal bytes. No shared state.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/io/blueprint_reader.hpp"
#include "headwise/io/replacing_file.hpp"

HEADWISE_NAMESPACE_BEGIN

namespace detail {

class blueprint_printer {
 public:
  // place: in front of the JSON pointers of messages.
  blueprint_printer(const blueprint& plan, std::string place)
      : plan_(plan), place_(std::move(place) + ": ") {}

  template <class Policies>
  [[nodiscard]] std::string print() {
    check_shape();
    out_ = "{\n  \"format\": \"" + std::string(blueprint_format) +
           "\",\n  \"version\": " + std::to_string(blueprint_version) + ",\n";
    print_model();
    print_tokens();
    print_profile();
    print_policies<Policies>();
    print_heads();
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  // The deepest union of unions that is written; a reader's limit on levels lies beyond it.
  static constexpr std::size_t max_part_depth = 16;

  void check_shape() const {
    validate(plan_.shape, place_ + "/model");
    if (plan_.heads.size() != plan_.shape.heads())
      raise(error_code::shape_mismatch, place_ + "/heads",
            std::to_string(plan_.heads.size()) + " heads",
            std::to_string(plan_.shape.heads()) + " as /model says");
    if (plan_.model.vocab_size > max_vocab_size)
      raise(error_code::out_of_range, place_ + "/model/vocab_size",
            std::to_string(plan_.model.vocab_size), "at most " + std::to_string(max_vocab_size));
    check_classes(plan_.tokens.classes, plan_.model.vocab_size, place_ + "/tokens/classes");
  }

  void print_model() {
    out_ += "  \"model\": {\"name\": ";
    text(plan_.model.name, "/model/name");
    out_ += ", \"layers\": " + std::to_string(plan_.shape.layers);
    out_ += ", \"query_heads\": " + std::to_string(plan_.shape.query_heads);
    out_ += ", \"kv_heads\": " + std::to_string(plan_.shape.kv_heads);
    out_ += ", \"head_dim\": " + std::to_string(plan_.shape.head_dim);
    out_ += ", \"vocab_size\": " + std::to_string(plan_.model.vocab_size);
    out_ += ", \"fingerprint\": ";
    text(plan_.model.tokenizer, "/model/fingerprint");
    out_ += "},\n";
  }

  void print_tokens() {
    out_ += "  \"tokens\": {\n    \"sink_count\": " + std::to_string(plan_.tokens.sink_count) +
            ",\n    \"classes\": ";
    append_classes(out_, plan_.tokens.classes, "\n      ", "\n    ", place_ + "/tokens/classes");
    out_ += "\n  },\n";
  }

  void print_profile() {
    const provenance& origin = plan_.origin;
    out_ += "  \"profile\": {\n    \"recovery_target\": ";
    fraction(origin.recovery_target, "/profile/recovery_target");
    if (origin.budget) {
      out_ += ",\n    \"budget\": ";
      fraction(*origin.budget, "/profile/budget");
    }
    const auto word = [&](const char* name, std::string_view value) {
      out_ += ",\n    \"" + std::string(name) + "\": \"" + std::string(value) + "\"";
    };
    const auto number = [&](const char* name, std::uint64_t value) {
      out_ += ",\n    \"" + std::string(name) + "\": " + std::to_string(value);
    };
    word("aggregation", to_string(origin.aggregation));
    word("criterion", to_string(origin.criterion));
    word("granularity", to_string(origin.granularity));
    number("prompts", origin.prompts);
    number("queries", origin.queries);
    number("length", origin.length);
    out_ += ",\n    \"tool\": ";
    text(origin.tool, "/profile/tool");
    out_ += ",\n    \"sources\": [";
    for (const profile_source& source : origin.sources) {
      out_ += &source == origin.sources.data() ? "\n      {\"name\": " : ",\n      {\"name\": ";
      text(source.name, "/profile/sources");
      out_ += ", \"sha256\": ";
      text(source.sha256, "/profile/sources");
      out_ += '}';
    }
    out_ += origin.sources.empty() ? "]\n  },\n" : "\n    ]\n  },\n";
  }

  // Each once, in the order in which the heads use them.
  template <class Policies>
  void print_policies() {
    std::map<std::string_view, const policy_spec*> known;
    out_ += "  \"policies\": [";
    for (const head_plan& head : plan_.heads) {
      const auto [found, fresh] = known.emplace(head.name, &head.policy);
      if (!fresh && *found->second != head.policy)
        raise(error_code::duplicate, place_ + "/policies",
              "two policies of the name " + in_quotes(head.name), "a name for each policy");
      if (!fresh) continue;
      const std::string pointer = "/policies/" + std::to_string(known.size() - 1);
      static_cast<void>(make_policy<Policies>(head.policy, place_ + pointer));
      out_ += known.size() == 1 ? "\n    {\"name\": " : ",\n    {\"name\": ";
      text(head.name, pointer + "/name");
      out_ += ", ";
      print_policy(head.policy, pointer, 0);
      out_ += '}';
    }
    out_ += "\n  ],\n";
  }

  // The members of a policy's object.
  void print_policy(const policy_spec& spec, const std::string& pointer, std::size_t depth) {
    if (depth > max_part_depth)
      raise(error_code::invalid_argument, place_ + pointer, "parts nested deeper",
            "at most " + std::to_string(max_part_depth) + " levels of parts");
    out_ += "\"kind\": ";
    text(spec.kind, pointer + "/kind");
    for (const auto& [name, value] : spec.params) {
      if (name == "name" || name == "kind" || name == "ids" || name == "parts")
        raise(error_code::invalid_argument, place_ + pointer + "/" + name,
              "a parameter of that name", "another name: this one is the file's own");
      out_ += ", ";
      text(name, pointer);
      out_ += ": ";
      if (name == "classes")
        print_class_set(value, pointer + "/classes");
      else
        out_ += std::to_string(value);
    }
    if (!spec.ids.empty()) {
      for (std::size_t i = 0; i < spec.ids.size(); ++i)
        check_token_id(spec.ids[i], plan_.model.vocab_size,
                       place_ + pointer + "/ids/" + std::to_string(i));
      out_ += ", \"ids\": ";
      append_ids(out_, spec.ids);
    }
    if (!spec.parts.empty()) print_parts(spec.parts, pointer + "/parts", depth + 1);
  }

  void print_parts(std::span<const policy_spec> parts, const std::string& pointer,
                   std::size_t depth) {
    out_ += ", \"parts\": [";
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out_ += i == 0 ? "{" : ", {";
      print_policy(parts[i], pointer + "/" + std::to_string(i), depth);
      out_ += '}';
    }
    out_ += ']';
  }

  void print_class_set(std::int64_t set, const std::string& pointer) {
    std::vector<std::pair<std::string_view, token_classes>> names{{"sink", token_classes::sink}};
    for (const token_class_rule& rule : plan_.tokens.classes)
      names.emplace_back(rule.name, rule.bit);
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    out_ += '[';
    for (const auto& [name, bit] : names) {
      const auto bits = static_cast<std::int64_t>(bit);
      if ((set & bits) == 0) continue;
      set &= ~bits;
      if (out_.back() != '[') out_ += ", ";
      text(name, pointer);
    }
    out_ += ']';
    if (set != 0)
      raise(error_code::missing, place_ + pointer, "class bits " + std::to_string(set),
            "classes of /tokens/classes");
  }

  void print_heads() {
    out_ += "  \"heads\": [";
    for (std::uint32_t layer = 0; layer < plan_.shape.layers; ++layer) {
      out_ += layer == 0 ? "\n    [" : ",\n    [";
      for (std::uint32_t kv_head = 0; kv_head < plan_.shape.kv_heads; ++kv_head) {
        out_ += kv_head == 0 ? "\n      " : ",\n      ";
        print_head(plan_.head({layer, kv_head}),
                   "/heads/" + std::to_string(layer) + "/" + std::to_string(kv_head));
      }
      out_ += "\n    ]";
    }
    out_ += "\n  ]\n";
  }

  void print_head(const head_plan& head, const std::string& pointer) {
    out_ += "{\"policy\": ";
    text(head.name, pointer + "/policy");
    out_ += ", \"recovery\": ";
    fraction(head.recovery, pointer + "/recovery");
    out_ += ", \"resident_fraction\": ";
    fraction(head.resident_fraction, pointer + "/resident_fraction");
    if (head.forever_fraction) {
      out_ += ", \"forever_fraction\": ";
      fraction(*head.forever_fraction, pointer + "/forever_fraction");
    }
    out_ += ", \"candidates\": [";
    for (std::size_t i = 0; i < head.candidates.size(); ++i) {
      const candidate_recovery& candidate = head.candidates[i];
      const std::string here = pointer + "/candidates/" + std::to_string(i);
      out_ += i == 0 ? "{\"name\": " : ", {\"name\": ";
      text(candidate.name, here + "/name");
      out_ += ", \"recovery\": ";
      fraction(candidate.recovery, here + "/recovery");
      out_ += ", \"resident_fraction\": ";
      fraction(candidate.resident_fraction, here + "/resident_fraction");
      out_ += '}';
    }
    out_ += "]}";
  }

  void text(std::string_view value, const std::string& pointer) {
    append_json_text(out_, value, place_ + pointer);
  }
  void fraction(double value, const std::string& pointer) {
    append_json_real(out_, value, 0, 1, place_ + pointer);
  }

  const blueprint& plan_;
  std::string place_;
  std::string out_;
};

}  // namespace detail

// Throws error naming the JSON pointer of what the file cannot hold (a NaN, a policy that no
// Policies has, two policies of one name), before anything is written.
template <class Policies = builtin_policies>
void write_blueprint(std::ostream& out, const blueprint& plan) {
  const std::string text = detail::blueprint_printer(plan, "blueprint").print<Policies>();
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!out) raise(error_code::unreadable, "blueprint", "a write that failed", "a writable stream");
}

// The file is there whole or not at all.
template <class Policies = builtin_policies>
void save_blueprint(const std::filesystem::path& path, const blueprint& plan) {
  const std::string text = detail::blueprint_printer(plan, path.string()).print<Policies>();
  replacing_file file(path);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

HEADWISE_NAMESPACE_END
