// SPDX-License-Identifier: Apache-2.0
#include "state/run_config.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "base/fail.h"
#include "codec/stand_in.h"
#include "state/document_names.h"
#include "state/provider_arguments.h"

namespace shardwright {
namespace {

template <class T>
std::optional<T> parse_as(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// YAML 1.1 as PyYAML reads it, for the forms that a dumped configuration has.
ArgValue scalar_of(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text.empty() || text == "null" || text == "~") return std::monostate{};
  if (text == "true" || text == "false") return text == "true";
  if (const auto integer = parse_as<std::int64_t>(text)) return *integer;
  if (const auto real = parse_as<double>(text)) return *real;
  return text;
}

std::optional<ArgValue> value_of(const YAML::Node& node) {
  if (node.IsNull()) return ArgValue{};
  if (node.IsScalar()) return scalar_of(node);
  if (!node.IsSequence()) return std::nullopt;
  std::vector<std::int64_t> numbers;
  std::vector<double> reals;
  std::vector<std::string> words;
  for (const YAML::Node& element : node) {
    if (!element.IsScalar()) return std::nullopt;
    const ArgValue value = scalar_of(element);
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      numbers.push_back(*number);
      reals.push_back(static_cast<double>(*number));
    }
    if (const auto* real = std::get_if<double>(&value)) {
      reals.push_back(*real);
      constexpr double kExact = 9007199254740992.0;
      if (std::trunc(*real) == *real && std::abs(*real) < kExact) {
        numbers.push_back(static_cast<std::int64_t>(*real));
      }
    }
    if (const auto* flag = std::get_if<bool>(&value)) numbers.push_back(*flag ? 1 : 0);
    if (const auto* word = std::get_if<std::string>(&value)) words.push_back(*word);
  }
  // Of numbers (flags are 0 and 1) or of words; others tell us nothing.
  if (numbers.size() == node.size()) return ArgValue{numbers};
  if (reals.size() == node.size()) return ArgValue{reals};
  if (words.size() == node.size()) return ArgValue{words};
  return std::nullopt;
}

// YAML lets no map have a key twice, which its parser does not hold against it.
Status check_keys(const YAML::Node& map, const std::string& prefix, std::string_view file) {
  std::set<std::string_view> keys;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar() || keys.insert(entry.first.Scalar()).second) continue;
    return fail(Code::kYamlCorrupt, "{}: it has the key {}{} twice; take out the one that is wrong",
                file, prefix, entry.first.Scalar());
  }
  return {};
}

// Nested maps by dotted name (`vision_config.depth`); what only names a class is none of ours.
Status add_values(const YAML::Node& map, const std::string& prefix, int depth,
                  std::string_view file, Arguments& arguments) {
  constexpr int kMostDepth = 3;
  SW_TRY(check_keys(map, prefix, file));
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) continue;
    const std::string name = prefix + entry.first.Scalar();
    if (entry.second.IsMap() && depth < kMostDepth) {
      SW_TRY(add_values(entry.second, name + ".", depth + 1, file, arguments));
    } else if (std::optional<ArgValue> value = value_of(entry.second)) {
      arguments[name] = std::move(*value);
    }
  }
  return {};
}

}  // namespace

Result<Arguments> read_model_section(std::string_view yaml, const std::string& section,
                                     std::string_view file) {
  SW_TRY(refuse_stand_in(Code::kYamlCorrupt, file, yaml.substr(0, kHeadBytes), "settings in YAML",
                         Contents::kText));
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    if (!root.IsMap()) return fail(Code::kYamlCorrupt, "{} is no map", file);
    SW_TRY(check_keys(root, "", file));
    const YAML::Node model = section.empty() ? root : root[section];
    Arguments arguments;
    if (!model.IsDefined() || !model.IsMap())
      return fail(Code::kYamlCorrupt, "{} has no '{}' section", file, section);
    SW_TRY(add_values(model, "", 0, file, arguments));
    return arguments;
  } catch (const YAML::Exception& error) {
    return fail(Code::kYamlCorrupt, "{}: {}", file, error.what());
  }
}

Result<Arguments> read_run_config(std::string_view yaml) {
  Arguments settings = SW_TRY(read_model_section(yaml, "model", kRunConfigFile));
  add_arguments_of_provider(settings);
  return settings;
}

Result<Arguments> read_yaml_values(std::string_view yaml, std::string_view file) {
  return read_model_section(yaml, "", file);
}

}  // namespace shardwright
