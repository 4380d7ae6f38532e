// SPDX-License-Identifier: Apache-2.0
#include "canonical/families.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.h"
#include "canonical/built_in_models.h"
#include "canonical/model_facts.h"
#include "io/named_file.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMappingFileBytes = std::uint64_t{4} << 20;

std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// That it can't be read is told when the model's family is looked for.
std::optional<HfConfig> readable_config(const FamilyChoice& choice, const Checkpoint& source) {
  const auto text = config_text_of(choice, source);
  if (!text || text->empty()) return std::nullopt;
  auto config = read_hf_config(*text);
  return config ? std::optional(*std::move(config)) : std::nullopt;
}

using RecordedFile = std::pair<std::string, std::string>;

struct FileText {
  std::string json;
  std::optional<MappingNames> names;  ///< of one that is built in
};

/// The texts of mapping files by the files' names.
using MappingFiles = std::map<std::string, FileText, std::less<>>;

Result<MappingFiles> read_mapping_files(const FamilyChoice& choice,
                                        const RecordedMapping& recorded = {}) {
  MappingFiles files;
  if (choice.models_dir.empty()) {
    for (const MappingText& model : built_in_models()) {
      files[model.name] = {std::string(model.json), model.names};
    }
  } else {
    const std::unique_ptr<Directory> folder = SW_TRY(open_local_directory(choice.models_dir));
    for (const DirectoryEntry& entry : SW_TRY(folder->list(""))) {
      if (!entry.name.ends_with(".json") || entry.name == "schema.json") continue;
      files[entry.name] = {SW_TRY(read_whole(*folder, entry.name, kMappingFileBytes)),
                           std::nullopt};
    }
  }
  for (const auto& [name, text] : recorded.files) {
    // Files that the user names win over those that were named once.
    if (choice.models_dir.empty() || !files.contains(name)) files[name] = {text, std::nullopt};
  }
  // A file of the user's takes the place of a built-in one of the same name.
  std::set<std::string, std::less<>> given;
  for (const std::string& file : choice.map_files) {
    const std::string name = last_part(file);
    if (!given.insert(name).second) {
      return fail(Code::kUsage, "--map {}: two files have this name; rename one", name);
    }
    files[name] = {SW_TRY(read_named_file(file, kMappingFileBytes)), std::nullopt};
  }
  return files;
}

std::vector<MappingText> texts_of(const MappingFiles& files) {
  std::vector<MappingText> texts;
  for (const auto& [name, file] : files) texts.push_back({name, file.json, file.names});
  return texts;
}

// Of a mapping file: its family, and those that it extends.
struct Lineage {
  std::string family;
  std::vector<std::string> extends;
};

Lineage lineage_of(const std::string& json) {
  Lineage lineage;
  const nlohmann::json root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) return lineage;
  lineage.family = root.value("family", nlohmann::json()).is_string()
                       ? root["family"].get<std::string>()
                       : std::string();
  const nlohmann::json extends = root.value("extends", nlohmann::json::array());
  if (extends.is_string()) lineage.extends.push_back(extends.get<std::string>());
  if (!extends.is_array()) return lineage;
  for (const nlohmann::json& family : extends) {
    if (family.is_string()) lineage.extends.push_back(family.get<std::string>());
  }
  return lineage;
}

}  // namespace

Result<std::vector<Mapping>> load_mappings(const FamilyChoice& choice, const Checkpoint& source) {
  const RecordedMapping recorded = SW_TRY(read_recorded_mapping(source.source_keys));
  const MappingFiles files = SW_TRY(read_mapping_files(choice, recorded));
  return parse_mappings(texts_of(files));
}

Result<std::string> told_family(const FamilyChoice& choice, const Checkpoint& source) {
  if (!choice.family.empty()) return choice.family;
  return SW_TRY(read_recorded_mapping(source.source_keys)).family;
}

Result<RecordedMapping> mapping_to_record(const FamilyChoice& choice, const Mapping& mapping) {
  const bool is_given = !choice.map_files.empty() || !choice.models_dir.empty();
  if (!is_given && choice.family.empty()) return RecordedMapping();
  RecordedMapping record{mapping.family, {}};
  if (!is_given) return record;
  const MappingFiles files = SW_TRY(read_mapping_files(choice));
  const MappingFiles built_in = SW_TRY(read_mapping_files({}));
  std::map<std::string, std::pair<std::string, Lineage>, std::less<>> by_family;
  for (const auto& [name, file] : files) {
    Lineage lineage = lineage_of(file.json);
    const std::string family = lineage.family;
    by_family.emplace(family, std::pair(name, std::move(lineage)));
  }
  std::set<std::string> seen;
  std::vector<std::string> wanted = {mapping.family};
  while (!wanted.empty()) {
    const std::string family = std::move(wanted.back());
    wanted.pop_back();
    const auto found = by_family.find(family);
    if (found == by_family.end() || !seen.insert(family).second) continue;
    const auto& [name, lineage] = found->second;
    std::ranges::copy(lineage.extends, std::back_inserter(wanted));
    const std::string& text = files.at(name).json;
    const auto same = built_in.find(name);
    if (same == built_in.end() || same->second.json != text) record.files.emplace_back(name, text);
  }
  std::ranges::sort(record.files);
  return record;
}

Result<std::vector<Mapping>> load_mappings(const FamilyChoice& choice) {
  const MappingFiles files = SW_TRY(read_mapping_files(choice));
  return parse_mappings(texts_of(files));
}

Result<std::vector<Mapping>> load_mappings_of(const FamilyChoice& choice, const Checkpoint& source,
                                              std::vector<std::string>* parsed) {
  const RecordedMapping recorded = SW_TRY(read_recorded_mapping(source.source_keys));
  const MappingFiles files = SW_TRY(read_mapping_files(choice, recorded));
  const std::optional<HfConfig> config = readable_config(choice, source);
  const auto may_be_of = [&](const Mapping& names) {
    if (!choice.family.empty()) return names.family == choice.family;
    if (names.family == recorded.family) return true;
    return !config || names_one_of(*config, {&names, 1});
  };
  const auto is_given = [&](const Mapping& names) {
    return std::ranges::find(recorded.files, names.file, &RecordedFile::first) !=
               recorded.files.end() ||
           std::ranges::find(choice.map_files, names.file, last_part) != choice.map_files.end();
  };
  bool is_one_named = false;
  const auto is_wanted = [&](const Mapping& names) {
    const bool may_be = may_be_of(names);
    is_one_named |= may_be;
    return may_be || is_given(names);
  };
  std::vector<Mapping> named = SW_TRY(parse_mappings(texts_of(files), is_wanted, parsed));
  if (is_one_named) return named;
  if (parsed != nullptr) parsed->clear();
  return parse_mappings(texts_of(files), {}, parsed);
}

Result<const Mapping*> chosen_family(const FamilyChoice& choice, std::span<const Mapping> mappings,
                                     const HfConfig& config) {
  return choice.family.empty() ? find_family(mappings, config)
                               : find_family(mappings, choice.family);
}

}  // namespace shardwright
