// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/fail.h"
#include "model/mapping_parse.h"

namespace shardwright {
namespace {

constexpr int kMaxDepth = 8;     // of extended files, of groups inside groups
constexpr int kMaxItems = 4096;  // of one mapping after its groups were filled in

/// A mapping file before the files that it extends are folded in.
struct Source {
  const MappingText* text = nullptr;
  MappingHeading heading;
  std::optional<Json> json = std::nullopt;  ///< once it is needed
};

const std::string& family_of(const Source& source) { return source.heading.family; }

Result<const Json*> json_of(Source& source) {
  if (!source.json) source.json = SW_TRY(parse_mapping_text(*source.text));
  return &*source.json;
}

/// The parts of a family that the families extending it may change entry by entry.
bool is_merged_by_entry(std::string_view key) {
  constexpr std::array<std::string_view, 6> kKeys{"sizes",  "indices",    "groups",
                                                  "config", "components", "holds"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

bool is_own(std::string_view key) {
  constexpr std::array<std::string_view, 14> kKeys{
      "models",   "names_from",    "library",     "torch_dist_prefix", "family",       "extends",
      "abstract", "architectures", "model_types", "needs_args",        "needs_config", "inferred",
      "$schema",  "about"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

bool is_null(const JsonMember& member) {
  return member.value != nullptr && member.value->is_null();
}

bool is_object(const JsonMember& member) {
  return member.value == nullptr || member.value->is_object();
}

std::vector<JsonMember> entries_of(const JsonMember& member) {
  return member.value == nullptr ? member.members : members_of(*member.value);
}

/// Lets `child` add to `result` and change it. A null entry of the child removes; what it removes
/// from a file that does not have it is kept, for the files that this one is yet merged into.
void merge_into(std::vector<JsonMember>& result, const std::vector<JsonMember>& child,
                bool with_own) {
  for (const JsonMember& member : child) {
    if (!with_own && is_own(member.key)) continue;
    const JsonMember* const present = find_member(result, member.key);
    if (present == nullptr || !is_merged_by_entry(member.key) || !is_object(member) ||
        !is_object(*present)) {
      put_member(result, member);
      continue;
    }
    JsonMember merged{member.key, nullptr, entries_of(*present)};
    for (JsonMember& entry : entries_of(member)) {
      if (is_null(entry)) {
        std::erase_if(merged.members, [&](const auto& each) { return each.key == entry.key; });
      } else {
        put_member(merged.members, std::move(entry));
      }
    }
    put_member(result, std::move(merged));
  }
}

/// Folds into each file those that it extends, each once however many extend it.
class Resolver {
 public:
  explicit Resolver(std::span<Source> all) : all_(all) {}

  /// The file as a whole, without the null entries that removed nothing. Borrows of the sources.
  Result<JsonMember> resolve(Source& source) {
    JsonMember result{{}, nullptr, SW_TRY(whole(source, 0))->members};
    for (JsonMember& member : result.members) {
      if (!is_merged_by_entry(member.key) || !is_object(member)) continue;
      member = {member.key, nullptr, entries_of(member)};
      std::erase_if(member.members, is_null);
    }
    return result;
  }

 private:
  struct Whole {
    std::vector<JsonMember> members;
    int files_below = 0;  ///< in the longest row of files that extend each other
  };

  // What it returns lives as long as this does.
  Result<const Whole*> whole(Source& source, int above) {
    if (const auto done = done_.find(family_of(source)); done != done_.end()) {
      return &done->second;
    }
    const Json* const json = SW_TRY(json_of(source));
    const JsonNode root(*json, source.text->name + "#");
    const std::optional<JsonNode> extends = root.find("extends");
    Whole result;
    for (const std::string& family : source.heading.extends) {
      const auto base = std::ranges::find(all_, family, family_of);
      if (base == all_.end()) {
        return extends->invalid(fmt::format("'{}'", family), "a family given too");
      }
      const std::string too_many = translated("no more than {} files in a row", kMaxDepth);
      if (above >= kMaxDepth) return extends->invalid(fmt::format("'{}'", family), too_many);
      const Whole& below = *SW_TRY(whole(*base, above + 1));
      result.files_below = std::max(result.files_below, below.files_below + 1);
      if (result.files_below > kMaxDepth) {
        return extends->invalid(fmt::format("'{}'", family), too_many);
      }
      merge_into(result.members, below.members, false);
    }
    merge_into(result.members, members_of(*json), true);
    return &done_.emplace(family_of(source), std::move(result)).first->second;
  }

  std::span<Source> all_;
  std::map<std::string, Whole, std::less<>> done_;
};

/// Turns a list of rules, uses of groups and choices into items.
class ItemParser {
 public:
  ItemParser(std::optional<JsonNode> groups, const KnownNames& known)
      : groups_(std::move(groups)), known_(known) {}

  Result<std::vector<Item>> parse(const JsonNode& list, const RulePrefix& prefix, int depth) {
    if (depth > kMaxDepth) return list.invalid("groups inside groups", "at most 8 levels");
    std::vector<Item> items;
    const std::vector<JsonNode> nodes = SW_TRY(list.elements());
    for (const JsonNode& node : nodes) {
      if (++count_ > kMaxItems) {
        return node.invalid(translated("more than {} rules", kMaxItems), "fewer");
      }
      if (node.find("use")) {
        items.emplace_back().value = SW_TRY(parse_use(node, prefix, depth));
      } else if (node.find("one_of")) {
        items.emplace_back().value = SW_TRY(parse_choice(node, prefix, depth));
      } else {
        items.emplace_back().value = SW_TRY(parse_rule(node, prefix, known_));
      }
    }
    return items;
  }

 private:
  Result<Section> parse_use(const JsonNode& node, const RulePrefix& prefix, int depth) {
    SW_TRY(node.only({"use", "for", "megatron", "hf", "if", "unless"}));
    Section section;
    section.condition = SW_TRY(parse_condition(node, known_));
    RulePrefix inner = prefix;
    if (const std::optional<JsonNode> index = node.find("for")) {
      section.index = SW_TRY(index->text());
      const bool bound = std::ranges::find(prefix.loops, section.index) != prefix.loops.end();
      if (bound || !known_.indices.contains(section.index)) {
        return index->invalid(fmt::format("'{}'", section.index), "an unbound loop variable");
      }
      inner.loops.push_back(section.index);
    }
    if (const auto megatron = node.find("megatron")) inner.megatron += SW_TRY(megatron->text());
    if (const auto hf = node.find("hf")) inner.hf += SW_TRY(hf->text());
    const JsonNode used = SW_TRY(node.at("use"));
    const std::string name = SW_TRY(used.text());
    const std::optional<JsonNode> group = groups_ ? groups_->find(name) : std::nullopt;
    if (!group) return used.invalid(fmt::format("group '{}'", name), "one that 'groups' defines");
    section.items = SW_TRY(parse(*group, inner, depth + 1));
    return section;
  }

  Result<Choice> parse_choice(const JsonNode& node, const RulePrefix& prefix, int depth) {
    SW_TRY(node.only({"one_of", "told_by"}));
    const JsonNode list = SW_TRY(node.at("one_of"));
    const std::vector<JsonNode> options = SW_TRY(list.elements());
    if (options.size() < 2) {
      return list.invalid(fmt::format("{} options", options.size()), "two or more");
    }
    Choice choice;
    for (const JsonNode& option : options) {
      choice.options.push_back(SW_TRY(parse(option, prefix, depth + 1)));
    }
    const std::optional<JsonNode> told_by = node.find("told_by");
    if (!told_by) return choice;
    choice.told_by = SW_TRY(told_by->text());
    if (!known_.sizes.contains(choice.told_by)) {
      return told_by->invalid(fmt::format("size '{}'", choice.told_by), "one that 'sizes' defines");
    }
    const auto is_without_rules = [](const auto& option) { return option.empty(); };
    if (std::ranges::count_if(choice.options, is_without_rules) != 1) {
      return told_by->invalid(fmt::format("size '{}'", choice.told_by),
                              "one of the options without rules");
    }
    return choice;
  }

  std::optional<JsonNode> groups_;
  const KnownNames& known_;
  int count_ = 0;
};

/// The names that items state, each with the condition under which it is stated.
class SeenNames {
 public:
  /// False where it was there before.
  bool add(std::string name) {
    const auto [place, is_new] = names_.insert(std::move(name));
    if (is_new) added_.push_back(place);
    return is_new;
  }

  /// What `check` adds for each of `options` is taken out before the next one; then all is there.
  template <typename Check>
  Status each_alone(std::span<const std::vector<Item>> options, const Check& check) {
    std::vector<Names::node_type> aside;
    for (const std::vector<Item>& option : options) {
      const std::size_t before = added_.size();
      SW_TRY(check(option));
      for (std::size_t i = before; i < added_.size(); ++i) {
        aside.push_back(names_.extract(added_[i]));
      }
      added_.resize(before);
    }
    for (Names::node_type& name : aside) {
      const auto put = names_.insert(std::move(name));
      if (put.inserted) added_.push_back(put.position);
    }
    return {};
  }

 private:
  using Names = std::set<std::string>;
  Names names_;
  std::vector<Names::iterator> added_;
};

std::string when_also(const std::string& when, const std::optional<Condition>& condition) {
  if (!condition) return when;
  return when + (condition->non_zero ? "\nif " : "\nunless ") + condition->size;
}

Status add_names(const Rule& rule, const std::string& outside, SeenNames& seen) {
  const std::string when = when_also(outside, rule.condition);
  for (const auto* names : {&rule.megatron, &rule.hf}) {
    const std::string side = names == &rule.hf ? "hf " : "megatron ";
    for (const NameTemplate& name : *names) {
      if (seen.add(side + name.text() + when)) continue;
      return fail(Code::kMappingInvalid,
                  "{}: found a second rule for {}'{}', expected one; see models/schema.json",
                  rule.path, side, name.text());
    }
  }
  return {};
}

/// Refuses two rules for one name. The options of a choice exclude each other, so they may agree.
/// `when`: the conditions of the sections around them.
Status check_unique(std::span<const Item> items, const std::string& when, SeenNames& seen) {
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) SW_TRY(add_names(*rule, when, seen));
    if (const auto* section = std::get_if<Section>(&item.value)) {
      SW_TRY(check_unique(section->items, when_also(when, section->condition), seen));
    }
    if (const auto* choice = std::get_if<Choice>(&item.value)) {
      SW_TRY(seen.each_alone(choice->options, [&](std::span<const Item> option) {
        return check_unique(option, when, seen);
      }));
    }
  }
  return {};
}

Result<NameRule> parse_name_rule(const JsonNode& node, const KnownNames& known) {
  const std::string text = SW_TRY(node.text());
  Result<NameTemplate> name = NameTemplate::parse(text);
  if (!name) return refused(node, std::move(name).error());
  NameRule rule{*std::move(name), {}};
  for (const std::string& used : rule.hf.names()) {
    if (known.sizes.contains(used) || used == rule.index) continue;
    if (!known.indices.contains(used) || !rule.index.empty()) {
      return node.invalid(fmt::format("'{{{}}}'", used), "sizes and one loop variable");
    }
    rule.index = used;
  }
  return rule;
}

Result<CopyRule> parse_copy(const JsonNode& node, const KnownNames& known) {
  SW_TRY(node.only({"hf", "original", "emitted", "if", "unless"}));
  const JsonNode hf = SW_TRY(node.at("hf"));
  CopyRule copy{SW_TRY(parse_name_rule(hf, known)), {}, false, {}, {}};
  if (const std::optional<JsonNode> original = node.find("original")) {
    std::vector<JsonNode> names = {*original};
    if (original->is_array()) names = SW_TRY(original->elements());
    if (names.empty()) return original->invalid("no names", "one for each spelling");
    for (const JsonNode& name : names) {
      NameRule source = SW_TRY(parse_name_rule(name, known));
      if (!source.index.empty() && source.index != copy.hf.index) {
        return name.invalid(fmt::format("'{{{}}}'", source.index), "a loop variable of 'hf'");
      }
      copy.originals.push_back(std::move(source.hf));
    }
  } else if (node.find("emitted")) {
    return node.invalid("'emitted' without 'original'", "both: nothing else says what it holds");
  }
  copy.emitted_by_default = SW_TRY(flag_or(node, "emitted", false));
  copy.condition = SW_TRY(parse_condition(node, known));
  return copy;
}

Result<std::vector<ModuleWords>> parse_modules(const JsonNode& root) {
  std::vector<ModuleWords> modules;
  const std::optional<JsonNode> words = root.find("modules");
  if (!words) return modules;
  const auto nodes = SW_TRY(words->members());
  for (const auto& [files, node] : nodes) {
    const std::string module = SW_TRY(node.text());
    Result<ModuleWords> entry = parse_module_words(files, module);
    if (!entry) return refused(node, std::move(entry).error());
    modules.push_back(*std::move(entry));
  }
  return modules;
}

/// Reads `sizes` and `indices` and returns the names that the rest may use.
Result<KnownNames> parse_numbers(const JsonNode& root, Mapping& mapping) {
  KnownNames known;
  if (const std::optional<JsonNode> section = root.find("config_section")) {
    known.config_section = SW_TRY(section->text());
    mapping.config_section = known.config_section;
  }
  const JsonNode sizes = SW_TRY(root.at("sizes"));
  const auto size_nodes = SW_TRY(sizes.members());
  for (const auto& [name, node] : size_nodes) known.sizes.insert(name);
  for (const auto& [name, node] : size_nodes) {
    mapping.sizes.push_back(SW_TRY(parse_size_rule(name, node, known)));
  }
  const std::optional<JsonNode> indices = root.find("indices");
  if (!indices) return known;
  const auto index_nodes = SW_TRY(indices->members());
  for (const auto& [name, node] : index_nodes) {
    SW_TRY(node.only({"size", "observed"}));
    const JsonNode size = SW_TRY(node.at("size"));
    IndexRule rule{name, SW_TRY(size.text()), SW_TRY(flag_or(node, "observed", false))};
    if (!known.sizes.contains(rule.size) || known.sizes.contains(name)) {
      return size.invalid(translated("'{}' counted by '{}'", name, rule.size),
                          "a size, and a name that is none");
    }
    known.indices.insert(name);
    mapping.indices.push_back(std::move(rule));
  }
  return known;
}

Status parse_identity(const JsonNode& root, bool is_abstract, Mapping& mapping) {
  const JsonNode family = SW_TRY(root.at("family"));
  mapping.family = SW_TRY(family.text());
  mapping.architectures = SW_TRY(texts_or_none(root, "architectures"));
  mapping.model_types = SW_TRY(texts_or_none(root, "model_types"));
  mapping.models = SW_TRY(texts_or_none(root, "models"));
  if (const std::optional<JsonNode> from = root.find("names_from")) {
    mapping.names_from = SW_TRY(from->text());
  }
  if (const std::optional<JsonNode> library = root.find("library")) {
    const std::string name = SW_TRY(library->text());
    if (name != "diffusers") return library->invalid(fmt::format("'{}'", name), "'diffusers'");
    mapping.is_of_diffusers = true;
  }
  if (const std::optional<JsonNode> prefix = root.find("torch_dist_prefix")) {
    mapping.torch_dist_prefix = SW_TRY(prefix->text());
  }
  mapping.needs_args = SW_TRY(parse_needed_args(root));
  mapping.needs_config = SW_TRY(parse_needed_config(root));
  mapping.inferred = SW_TRY(flag_or(root, "inferred", true));
  mapping.beyond_args = SW_TRY(texts_or_none(root, "beyond_args"));
  mapping.latent_epsilon = SW_TRY(parse_epsilon(root, "latent_epsilon"));
  mapping.mixer_epsilon = SW_TRY(parse_epsilon(root, "mixer_epsilon"));
  mapping.token_tables = SW_TRY(texts_or_none(root, "token_tables"));
  mapping.float32_names = SW_TRY(texts_or_none(root, "float32"));
  if (is_abstract) return {};
  if (mapping.architectures.empty()) return root.invalid("no 'architectures'", "one or more");
  if (mapping.is_of_diffusers != mapping.model_types.empty()) {
    return mapping.is_of_diffusers
               ? root.invalid("'model_types' of a model of diffusers", "'architectures' alone")
               : root.invalid("no 'model_types'", "one or more");
  }
  return {};
}

Result<Mapping> parse_resolved(const JsonNode& root, bool is_abstract) {
  SW_TRY(root.only(
      {"$schema",        "about",          "family",     "extends",      "abstract",
       "architectures",  "model_types",    "needs_args", "needs_config", "inferred",
       "beyond_args",    "config_section", "sizes",      "indices",      "groups",
       "rules",          "copies",         "ignore",     "config",       "components",
       "alike",          "models",         "names_from", "library",      "torch_dist_prefix",
       "computed",       "token_tables",   "modules",    "float32",      "holds",
       "latent_epsilon", "mixer_epsilon"}));
  Mapping mapping;
  SW_TRY(parse_identity(root, is_abstract, mapping));
  const KnownNames known = SW_TRY(parse_numbers(root, mapping));
  const JsonNode rules = SW_TRY(root.at("rules"));
  ItemParser parser(root.find("groups"), known);
  mapping.items = SW_TRY(parser.parse(rules, RulePrefix{}, 0));
  SeenNames seen;
  SW_TRY(check_unique(mapping.items, "", seen));
  if (const std::optional<JsonNode> copies = root.find("copies")) {
    const std::vector<JsonNode> nodes = SW_TRY(copies->elements());
    for (const JsonNode& node : nodes) mapping.copies.push_back(SW_TRY(parse_copy(node, known)));
  }
  if (const std::optional<JsonNode> ignore = root.find("ignore")) {
    const std::vector<JsonNode> nodes = SW_TRY(ignore->elements());
    for (const JsonNode& node : nodes) {
      mapping.ignore.push_back(SW_TRY(parse_name_rule(node, known)));
    }
  }
  mapping.computed = SW_TRY(texts_or_none(root, "computed"));
  mapping.alike = SW_TRY(parse_alike(root));
  mapping.modules = SW_TRY(parse_modules(root));
  if (const std::optional<JsonNode> components = root.find("components");
      components && !is_abstract) {
    Components parsed = SW_TRY(parse_components(*components, known));
    mapping.components = std::move(parsed.routes);
    mapping.parts = std::move(parsed.parts);
  }
  if (const std::optional<JsonNode> config = root.find("config")) {
    const auto nodes = SW_TRY(config->members());
    for (const auto& [name, node] : nodes) {
      mapping.config.push_back(SW_TRY(parse_config_rule(name, node, known)));
    }
  }
  return mapping;
}

/// What a file says of itself.
Mapping names_of(const Source& source) {
  Mapping names;
  names.file = source.text->name;
  names.family = source.heading.family;
  names.architectures = source.heading.architectures;
  names.model_types = source.heading.model_types;
  return names;
}

}  // namespace

Result<std::vector<Mapping>> parse_mappings(std::span<const MappingText> texts,
                                            const WantedMapping& wanted) {
  std::vector<Source> sources;
  for (const MappingText& text : texts) {
    Source source{&text, SW_TRY(read_heading(text))};
    if (std::ranges::find(sources, source.heading.family, family_of) != sources.end()) {
      return fail(Code::kMappingInvalid, "{}#/family: found '{}' a second time, expected it once",
                  text.name, source.heading.family);
    }
    sources.push_back(std::move(source));
  }
  Resolver resolver(sources);
  std::vector<Mapping> mappings;
  for (Source& source : sources) {
    if (wanted && !wanted(names_of(source))) continue;
    const std::string& name = source.text->name;
    const JsonMember whole = SW_TRY(resolver.resolve(source));
    const JsonNode root(whole, name + "#");
    const bool is_abstract = SW_TRY(flag_or(root, "abstract", false));
    Mapping mapping = SW_TRY(parse_resolved(root, is_abstract));
    mapping.file = name;
    if (!is_abstract) SW_TRY(check_held(JsonNode(*source.json, name + "#"), mapping.alike));
    if (!is_abstract) mappings.push_back(std::move(mapping));
  }
  return mappings;
}

Result<Mapping> parse_mapping(std::string_view json, std::string name) {
  const std::array<MappingText, 1> texts{MappingText{std::move(name), json}};
  std::vector<Mapping> mappings = SW_TRY(parse_mappings(texts));
  if (mappings.empty()) {
    return fail(Code::kMappingInvalid, "{}#/abstract: found true, expected a family to apply",
                texts[0].name);
  }
  return std::move(mappings.front());
}

}  // namespace shardwright
