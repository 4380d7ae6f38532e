// SPDX-License-Identifier: Apache-2.0
#include "state/plain_arguments.h"

#include "base/allowance.h"
#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

// The only type among a run's arguments (`torch.float16`) that says how to read what it wrote.
constexpr std::string_view kMasterType = "main_params_dtype";

// What a value takes as an argument. A list may be in the pickle once and in many arguments.
std::uint64_t memory_of(Value value) {
  std::uint64_t bytes = sizeof(ArgValue) + value.text().size();
  for (std::size_t i = 0; i < value.size(); ++i) {
    bytes += sizeof(std::string) + value[i].text().size();
  }
  return bytes;
}

std::optional<ArgValue> text_list(Value list) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<std::string_view> text = list[i].as_string();
    if (!text) return std::nullopt;
    texts.emplace_back(*text);
  }
  return ArgValue{std::move(texts)};
}

std::optional<ArgValue> number_list(Value list) {
  std::vector<std::int64_t> whole;
  std::vector<double> reals;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<std::int64_t> number = list[i].as_int();
    const std::optional<double> real = number ? static_cast<double>(*number) : list[i].as_double();
    if (!real) return std::nullopt;
    reals.push_back(*real);
    if (number) whole.push_back(*number);
  }
  if (whole.size() == reals.size()) return ArgValue{std::move(whole)};
  return ArgValue{std::move(reals)};
}

std::optional<ArgValue> plain_value(Value value) {
  switch (value.kind()) {
    case Kind::kNone:
      return ArgValue{};
    case Kind::kBool:
      return ArgValue{*value.as_bool()};
    case Kind::kInt:
      return ArgValue{*value.as_int()};
    case Kind::kFloat:
      return ArgValue{*value.as_double()};
    case Kind::kString:
      return ArgValue{std::string(*value.as_string())};
    case Kind::kList:
    case Kind::kTuple:  // --window-size
    case Kind::kSet:    // MindSpeed's noop_layers
      return value.size() > 0 && value[0].as_string() ? text_list(value) : number_list(value);
    default:
      return std::nullopt;
  }
}

// Since 0.17 one pattern says all, `M-M|*-/MM/MM`: stages between bars, then the layers of each
// depth of multi-token prediction, which are alike. Before, two said the same without stages.
void add_older_patterns(Arguments& arguments) {
  constexpr const char* kOlder = "hybrid_override_pattern";
  const auto pattern = arguments.find("hybrid_layer_pattern");
  if (pattern == arguments.end() || !(arguments[kOlder] == ArgValue{})) return;
  const auto* text = std::get_if<std::string>(&pattern->second);
  if (text == nullptr) return;
  const std::size_t slash = text->find('/');
  std::string layers = text->substr(0, slash);
  std::erase(layers, '|');
  if (slash != std::string::npos) {
    const std::size_t begin = slash + 1;
    arguments["mtp_hybrid_override_pattern"] = text->substr(begin, text->find('/', begin) - begin);
  }
  arguments[kOlder] = std::move(layers);
}

}  // namespace

Value make_plain_value(Document& document, const ArgValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return document.boolean(*flag);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return document.integer(*number);
  if (const double* real = std::get_if<double>(&value)) return document.real(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return document.string(*text);
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    std::vector<Value> elements;
    for (const std::int64_t number : *numbers) elements.push_back(document.integer(number));
    return document.list(elements);
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    std::vector<Value> elements;
    for (const double real : *reals) elements.push_back(document.real(real));
    return document.list(elements);
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::vector<Value> elements;
    for (const std::string& text : *texts) elements.push_back(document.string(text));
    return document.list(elements);
  }
  return document.none();
}

Value argument_pairs(Value args) {
  if (!args) return {};
  const Value pairs = dict_pairs(args);
  return pairs.is(Kind::kDict) ? pairs : args.state();
}

bool set_argument(Document& document, Value args, std::string_view name, Value value) {
  if (dict_pairs(args).is(Kind::kDict)) {
    document.set(args, name, value);
    return true;
  }
  if (!args.is(Kind::kObject) && !args.is(Kind::kReduce)) return false;
  document.set_attribute(args, name, value);
  return true;
}

Result<Arguments> plain_arguments(Value args) {
  Arguments arguments;
  Allowance allowance(0);
  const Value attributes = argument_pairs(args);
  if (!attributes.is(Kind::kDict)) return arguments;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::optional<std::string_view> name = attributes.key(i).as_string();
    if (!name) continue;
    SW_TRY(allowance.take(name->size() + memory_of(attributes.value(i)), "the run's arguments"));
    if (std::optional<ArgValue> value = plain_value(attributes.value(i))) {
      arguments[std::string(*name)] = std::move(*value);
    } else if (*name == kMasterType && attributes.value(i).is(Kind::kGlobal)) {
      arguments[std::string(*name)] = std::string(attributes.value(i).name());
    }
  }
  add_older_patterns(arguments);
  return arguments;
}

}  // namespace shardwright
