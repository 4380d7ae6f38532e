// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "codec/json_text.h"
#include "model/arguments.h"
#include "model/config_rules.h"
#include "model/config_values.h"
#include "model/instances.h"
#include "model/rope_settings.h"
#include "model/window_layers.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMaxConfigNesting = 24;
// Extents beyond this are no model's and would only let products overflow.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

// Where diffusers says what transformers calls an architecture.
constexpr std::string_view kDiffusersClass = "_class_name";

/// Lists of objects are kept as they are written; hf_config_text() writes such a text as a list.
constexpr std::string_view kListOfObjects = "[{";

/// A number, or the infinity that JSON has no word for: transformers writes an object in its place,
/// Python's own word is read as null, which is nothing else where a range ends.
std::optional<double> real_of(const nlohmann::json& list, std::size_t index) {
  const nlohmann::json& element = list[index];
  if (element.is_number()) return element.get<double>();
  const bool is_open_end = element.is_null() && list.size() == 2 && index == 1;
  if (is_open_end || element == nlohmann::json::object({{"__float__", "Infinity"}})) {
    return std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

/// Nothing unless all are numbers, and one of them is no whole one.
std::optional<std::vector<double>> reals_of(const nlohmann::json& list) {
  std::vector<double> numbers;
  bool has_real = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<double> number = real_of(list, i);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    has_real |= list[i].is_number_float();
  }
  return has_real ? std::optional(std::move(numbers)) : std::nullopt;
}

std::optional<ArgValue> list_value(const nlohmann::json& list) {
  const auto is_object = [](const nlohmann::json& element) { return element.is_object(); };
  if (!list.empty() && std::ranges::all_of(list, is_object)) {
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    return ArgValue{list.dump(-1, ' ', false, kReplace)};
  }
  const auto is_text = [](const nlohmann::json& element) { return element.is_string(); };
  if (!list.empty() && std::ranges::all_of(list, is_text)) {
    return ArgValue{list.get<std::vector<std::string>>()};
  }
  if (auto reals = reals_of(list)) return ArgValue{*std::move(reals)};
  std::vector<std::int64_t> numbers;  // of true and false: 1 and 0, as Megatron lists them
  for (const nlohmann::json& element : list) {
    if (element.is_boolean()) {
      numbers.push_back(element.get<bool>() ? 1 : 0);
    } else if (element.is_number_integer()) {
      numbers.push_back(element.get<std::int64_t>());
    } else {
      return std::nullopt;
    }
  }
  return ArgValue{std::move(numbers)};
}

std::optional<ArgValue> leaf_value(const nlohmann::json& value) {
  if (value.is_null()) return ArgValue{};
  if (value.is_boolean()) return ArgValue{value.get<bool>()};
  if (value.is_number_integer()) return ArgValue{value.get<std::int64_t>()};
  if (value.is_number_float()) return ArgValue{value.get<double>()};
  if (value.is_string()) return ArgValue{value.get<std::string>()};
  return value.is_array() ? list_value(value) : std::nullopt;
}

/// REQUIRES: parse_json has limited the depth.
void flatten(const nlohmann::json& object, const std::string& prefix, Arguments& values) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", values);
    } else if (std::optional<ArgValue> leaf = leaf_value(value)) {
      values[prefix + key] = *std::move(leaf);
    }
  }
}

Result<std::int64_t> whole_number(std::string_view name, const ArgValue& value, bool negated) {
  if (const auto* flag = std::get_if<bool>(&value)) return (*flag != negated) ? 1 : 0;
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 0 || *number > kMaxSize || negated) {
    return fail(Code::kConfigMissing,
                "{}: found {}, expected {}; correct it or give another "
                "configuration",
                name, to_string(value),
                negated ? std::string("True or False") : translated("0 to {}", kMaxSize));
  }
  return *number;
}

struct Found {
  std::optional<std::int64_t> value;
  bool is_doubtful = false;
};

/// How long a list or text is; nothing for anything else.
std::optional<ArgValue> length_of(const ArgValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return ArgValue{std::ssize(*text)};
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return ArgValue{std::ssize(*texts)};
  }
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value);
  return numbers == nullptr ? std::nullopt : std::optional(ArgValue{std::ssize(*numbers)});
}

/// A list of equal numbers as that number; anything else, which is no square, as it is.
ArgValue side_of(const ArgValue& value) {
  const auto* sides = std::get_if<std::vector<std::int64_t>>(&value);
  if (sides == nullptr || sides->empty()) return value;
  const bool is_square = std::ranges::count(*sides, sides->front()) == std::ssize(*sides);
  return is_square ? ArgValue{sides->front()} : value;
}

/// The entry of that number of a list of numbers.
std::optional<ArgValue> entry_of(const ArgValue& value, std::size_t number) {
  const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value);
  if (numbers == nullptr || number >= numbers->size()) return std::nullopt;
  return ArgValue{(*numbers)[number]};
}

/// What all entries `key.ANY.rest` are, for the name `key.*.rest`; nothing where they differ.
std::optional<ArgValue> common_value(const Arguments& values, std::string_view name) {
  const std::size_t star = name.find('*');
  const std::string_view before = name.substr(0, star);
  const std::string_view behind = name.substr(star + 1);
  std::optional<ArgValue> common;
  for (auto at = values.lower_bound(before); at != values.end() && at->first.starts_with(before);
       ++at) {
    const std::string_view rest = std::string_view(at->first).substr(before.size());
    if (rest.find('.') == std::string_view::npos || rest.substr(rest.find('.')) != behind) continue;
    if (common && !same_value(*common, at->second)) return std::nullopt;
    common = at->second;
  }
  return common;
}

/// The value of that name; of `key.*.rest` that of all such entries; of `name.length` how long the
/// list or text is, of `name.side` the number of a list of equal ones, of `name.1` its second
/// entry.
std::optional<ArgValue> size_value(const Arguments& values, std::string_view name) {
  if (const ArgValue* value = find_set(values, name)) return *value;
  if (name.find(".*.") != std::string_view::npos) return common_value(values, name);
  if (!is_of_a_list(name)) return std::nullopt;
  const std::size_t dot = name.rfind('.');
  const ArgValue* value = find_set(values, name.substr(0, dot));
  if (value == nullptr) return std::nullopt;
  if (const std::optional<std::size_t> number = entry_number(name)) {
    return entry_of(*value, *number);
  }
  return name.substr(dot) == ".side" ? side_of(*value) : length_of(*value);
}

/// The names of a size, and behind those of a section the same of the top level.
std::vector<std::string> with_top_level(std::span<const std::string> names,
                                        const std::string& section) {
  std::vector<std::string> all(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!section.empty() && name.starts_with(section + ".")) {
      all.push_back(name.substr(section.size() + 1));
    }
  }
  return all;
}

/// The value of the first name that is set; the others must agree.
Result<Found> find_size(const SizeRule& rule, std::span<const std::string> names,
                        const Arguments& values) {
  Found found;
  std::string_view first;
  bool is_confirmed = false;
  for (const std::string& spelled : names) {
    const FlagName flag = flag_name(spelled);
    const std::optional<ArgValue> value = size_value(values, flag.name);
    if (!value) continue;
    const std::int64_t number = SW_TRY(whole_number(flag.name, *value, flag.negated));
    if (!found.value) {
      found.value = number;
      first = flag.name;
    } else if (*found.value == number) {
      is_confirmed = true;
    } else if (!rule.first_wins) {
      return fail(Code::kConfigMissing, "{}: found {}, expected {} as {} says; make them agree",
                  flag.name, number, *found.value, first);
    }
  }
  // The first name of such a rule is an upper bound (padded rows) that another one may confirm.
  found.is_doubtful =
      rule.first_wins && !rule.flag && names.size() > 1 && first == names[0] && !is_confirmed;
  return found;
}

/// The size that the model named has; nothing for a name that is not known.
std::optional<std::int64_t> named_size(const NamedSizes& named, const Arguments& values) {
  const ArgValue* value = named.key.empty() ? nullptr : find_set(values, named.key);
  const auto* path = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (path == nullptr) return std::nullopt;
  std::string_view name = *path;
  while (name.ends_with('/')) name.remove_suffix(1);
  if (const std::size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  const auto found =
      std::ranges::find(named.sizes, name, [](const auto& entry) { return entry.first; });
  return found == named.sizes.end() ? std::nullopt : std::optional(found->second);
}

// Whether a list of numbers of layers has that one, or a list of layers' numbers one over the
// bound.
bool is_marked(const SizeRule& rule, const std::vector<std::int64_t>& list, std::int64_t layer) {
  if (rule.each_listed) return std::ranges::find(list, layer) != list.end();
  const auto at = static_cast<std::size_t>(layer);
  return at < list.size() && list[at] > *rule.each_over;
}

// A list that says a number of every layer; else all have the fallback's.
Status add_entries(const SizeRule& rule, const ArgValue* told, std::int64_t layers,
                   ModelSizes& sizes) {
  const auto* list = told == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(told);
  if (list == nullptr && rule.fallbacks.empty()) return {};
  if (list != nullptr && std::ssize(*list) != layers) {
    return fail(Code::kConfigMissing, "{}: found {} entries, expected one for each of {} layers",
                rule.hf.empty() ? rule.name : rule.hf[0], list->size(), layers);
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    sizes[layer_size_name(rule.name, layer)] =
        list != nullptr ? (*list)[static_cast<std::size_t>(layer)]
                        : SW_TRY((rule.fallbacks[0].evaluate(Scope{sizes, {}})));
  }
  return {};
}

// A number for each layer, under the name that conditions and shapes there ask for.
Status add_layer_sizes(const SizeRule& rule, const Arguments& values, bool from_args,
                       ModelSizes& sizes) {
  const std::int64_t layers = SW_TRY(layers_of(sizes));
  const ArgValue* told = first_set(values, from_args ? rule.args : rule.hf);
  if (rule.each_entry) return add_entries(rule, told, layers, sizes);
  WindowedLayers windowed;
  if (!rule.each_from.empty()) {
    const std::int64_t first = SW_TRY((Scope{sizes, {}}.value_of(rule.each_from)));
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      windowed.push_back(layer < first ? 0 : 1);
    }
  } else if (rule.each_listed || rule.each_over) {
    const auto* list = told == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(told);
    if (list == nullptr) return {};
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      windowed.push_back(is_marked(rule, *list, layer) ? 1 : 0);
    }
  } else if (told != nullptr) {
    windowed = SW_TRY(from_window_argument(*told, layers));
  } else if (!rule.fallbacks.empty()) {
    const std::int64_t period = SW_TRY((rule.fallbacks[0].evaluate(Scope{sizes, {}})));
    windowed = every_so_many_whole(std::max<std::int64_t>(period, 1), layers);
  }
  for (std::size_t layer = 0; layer < windowed.size(); ++layer) {
    sizes[layer_size_name(rule.name, static_cast<std::int64_t>(layer))] = windowed[layer];
  }
  return {};
}

bool is_switched_off(const SizeRule& rule, const Arguments& values) {
  return !rule.args_if.empty() && !find_flag(values, rule.args_if).value_or(true);
}

}  // namespace

FlagName flag_name(std::string_view name) {
  const bool negated = name.starts_with('!');
  return FlagName{negated ? name.substr(1) : name, negated};
}

Result<HfConfig> read_hf_config(std::string_view json) {
  const nlohmann::json root =
      SW_TRY(parse_json(json, "config.json", JsonLimits{kMaxConfigBytes, kMaxConfigNesting}));
  if (!root.is_object()) {
    return fail(Code::kJsonCorrupt, "config.json: found {}, expected an object", root.type_name());
  }
  HfConfig config;
  flatten(root, "", config.values);
  config.values.erase("architectures");  // a name of the file, no setting of the model
  SW_TRY(add_rope_values("", config.values));
  for (const auto& [key, value] : root.items()) {
    if (!value.is_object() || !key.ends_with("_config")) continue;
    SW_TRY(add_rope_values(key + ".", config.values));
    for (const auto& [inner, part] : value.items()) {
      if (!part.is_object() || !inner.ends_with("_config")) continue;
      SW_TRY(add_rope_values(key + "." + inner + ".", config.values));
    }
  }
  if (const auto* type = find_set(config.values, "model_type")) {
    if (const auto* text = std::get_if<std::string>(type)) config.model_type = *text;
  }
  const auto architectures = root.find("architectures");
  if (architectures != root.end() && architectures->is_array()) {
    for (const nlohmann::json& name : *architectures) {
      if (name.is_string()) config.architectures.push_back(name.get<std::string>());
    }
  }
  const auto class_name = root.find(kDiffusersClass);
  if (architectures == root.end() && class_name != root.end() && class_name->is_string()) {
    config.architectures.push_back(class_name->get<std::string>());
    config.is_of_diffusers = true;
  }
  return config;
}

Arguments in_section(const Arguments& values, const std::string& section) {
  Arguments seen = values;
  if (section.empty()) return seen;
  const std::string prefix = section + ".";
  for (const auto& [path, value] : values) {
    if (!path.starts_with(prefix)) seen.emplace(prefix + path, value);
  }
  return seen;
}

Result<SizesWithDoubts> find_sizes(const Mapping& mapping, const Arguments& values,
                                   bool from_args) {
  SizesWithDoubts result;
  for (const SizeRule& rule : mapping.sizes) {
    if (rule.is_of_layers() || (from_args && is_switched_off(rule, values))) continue;
    const std::vector<std::string> names =
        from_args ? rule.args : with_top_level(rule.hf, mapping.config_section);
    Found found = SW_TRY(find_size(rule, names, values));
    if (!found.value && !from_args) found.value = named_size(rule.named, values);
    if (!found.value) continue;
    result.sizes[rule.name] = *found.value;
    if (found.is_doubtful) result.guessed.push_back(rule.name);
  }
  for (const SizeRule& rule : mapping.sizes) {
    if (result.sizes.contains(rule.name) || rule.is_of_layers()) continue;
    const auto is_known = [&](const std::string& name) { return result.sizes.contains(name); };
    const auto usable = std::ranges::find_if(rule.fallbacks, [&](const SizeExpr& expr) {
      return std::ranges::all_of(expr.names(), is_known);
    });
    if (usable != rule.fallbacks.end()) {
      const Scope scope{result.sizes, {}};
      result.sizes[rule.name] = SW_TRY(usable->evaluate(scope));
      if (usable->names().empty()) result.guessed.push_back(rule.name);
    } else if (!rule.optional) {
      const std::vector<std::string>& names = from_args ? rule.args : rule.hf;
      return fail(
          Code::kConfigMissing,
          "{}: {} is missing, which family {} needs; give a configuration that has it",
          from_args ? "arguments" : "config.json",
          names.empty() ? rule.name : fmt::format("{}", fmt::join(names, translated(" or "))),
          mapping.family);
    }
  }
  for (const SizeRule& rule : mapping.sizes) {
    if (rule.is_of_layers()) SW_TRY(add_layer_sizes(rule, values, from_args, result.sizes));
  }
  return result;
}

Result<ModelSizes> sizes_from_hf_config(const Mapping& mapping, const HfConfig& config) {
  const Arguments values = in_section(config.values, mapping.config_section);
  SizesWithDoubts found = SW_TRY(find_sizes(mapping, values, false));
  return std::move(found.sizes);
}

Result<ModelSizes> sizes_from_args(const Mapping& mapping, const Arguments& args) {
  SizesWithDoubts found = SW_TRY(find_sizes(mapping, args, true));
  return std::move(found.sizes);
}

namespace {

struct JsonWriter {
  nlohmann::json operator()(std::monostate) const { return nullptr; }
  nlohmann::json operator()(const std::string& text) const {
    if (!text.starts_with(kListOfObjects)) return text;
    const Result<nlohmann::json> list =
        parse_json(text, "config.json", JsonLimits{kMaxConfigBytes, kMaxConfigNesting});
    return list ? *list : nlohmann::json(text);
  }
  nlohmann::json operator()(const auto& value) const { return value; }
};

}  // namespace

bool is_of_the_file(std::string_view key) {
  constexpr std::array kKeys = {
      "_name_or_path", "architectures", "attn_implementation", "auto_map",
      "dtype",         "model_type",    "torch_dtype",         "transformers_version"};
  constexpr std::array kPrefixes = {"rope_parameters", "rope_scaling", "rope_theta"};
  const auto begins = [&](std::string_view prefix) { return key.starts_with(prefix); };
  return std::ranges::find(kKeys, key) != kKeys.end() || std::ranges::any_of(kPrefixes, begins);
}

std::string hf_config_text(const Arguments& values, const std::vector<std::string>& architectures) {
  nlohmann::json root = nlohmann::json::object();
  if (!architectures.empty()) root["architectures"] = architectures;
  for (const auto& [path, value] : values) {
    std::string place = written_path(path, values);
    if (place.empty()) continue;
    std::ranges::replace(place, '.', '/');
    root[nlohmann::json::json_pointer("/" + place)] = std::visit(JsonWriter{}, value);
  }
  constexpr int kIndent = 2;
  // Names come from argument strings, which need not be UTF-8.
  return root.dump(kIndent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shardwright
