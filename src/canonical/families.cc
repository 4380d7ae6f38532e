// SPDX-License-Identifier: Apache-2.0
#include "canonical/families.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/fail.h"
#include "canonical/model_facts.h"
#include "model/built_in_models.h"
#include "remote/open_path.h"

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

struct MappingFile {
  std::string text;
  MappingHeading heading = {};  // of a built-in one
};

/// Mapping files by their names.
using MappingFiles = std::map<std::string, MappingFile, std::less<>>;

Result<MappingFiles> read_mapping_files(const FamilyChoice& choice,
                                        const RecordedMapping& recorded = {}) {
  MappingFiles files;
  if (choice.models_dir.empty()) {
    for (MappingText& model : built_in_models()) {
      files[model.name] = {std::string(model.json), std::move(model.heading)};
    }
  } else {
    const std::unique_ptr<Directory> folder = SW_TRY(open_directory(choice.models_dir));
    for (const DirectoryEntry& entry : SW_TRY(folder->list(""))) {
      if (!entry.name.ends_with(".json") || entry.name == "schema.json") continue;
      files[entry.name] = {SW_TRY(read_whole(*folder, entry.name, kMappingFileBytes))};
    }
  }
  for (const auto& [name, text] : recorded.files) {
    // Files that the user names win over those that were named once.
    if (choice.models_dir.empty() || !files.contains(name)) files[name] = {text};
  }
  // A file of the user's takes the place of a built-in one of the same name.
  std::set<std::string, std::less<>> given;
  for (const std::string& file : choice.map_files) {
    const std::string name = last_part(file);
    if (!given.insert(name).second) {
      return fail(Code::kUsage, "--map {}: two files have this name; rename one", name);
    }
    files[name] = {SW_TRY(read_named(file, kMappingFileBytes))};
  }
  return files;
}

std::vector<MappingText> texts_of(const MappingFiles& files) {
  std::vector<MappingText> texts;
  for (const auto& [name, file] : files) texts.push_back({name, file.text, file.heading});
  return texts;
}

Result<Mappings> parse_all(std::span<const MappingText> texts) {
  return Mappings(SW_TRY(parse_mappings(texts)));
}

// Read once in a process. Never freed: that would only hold up its end.
const Result<Mappings>& all_built_in() {
  static const auto& all = *new Result<Mappings>(parse_all(built_in_models()));
  return all;
}

Result<Mappings> all_of(const MappingFiles& files, const FamilyChoice& choice,
                        const RecordedMapping& recorded = {}) {
  const bool is_built_in =
      choice.models_dir.empty() && choice.map_files.empty() && recorded.files.empty();
  return is_built_in ? all_built_in() : parse_all(texts_of(files));
}

// Those that the choice, the record or the config names, and the given ones; none where none is
// named.
Result<Mappings> parse_named(const MappingFiles& files, const FamilyChoice& choice,
                             const RecordedMapping& recorded,
                             const std::optional<HfConfig>& config) {
  const auto is_named_family = [&](const Mapping& names) {
    if (!choice.family.empty()) return names.family == choice.family;
    if (!recorded.family.empty() && names.family == recorded.family) return true;
    return config && names_one_of(*config, {&names, 1});
  };
  const auto is_given = [&](const Mapping& names) {
    return std::ranges::find(recorded.files, names.file, &RecordedFile::first) !=
               recorded.files.end() ||
           std::ranges::find(choice.map_files, names.file, last_part) != choice.map_files.end();
  };
  bool is_one_named = false;
  const auto is_wanted = [&](const Mapping& names) {
    const bool is_named = is_named_family(names);
    is_one_named |= is_named;
    return is_named || is_given(names);
  };
  std::vector<Mapping> named = SW_TRY(parse_mappings(texts_of(files), is_wanted));
  return is_one_named ? Mappings(std::move(named)) : Mappings();
}

// The same; all where none is named.
Result<Mappings> load_for(const FamilyChoice& choice, const RecordedMapping& recorded,
                          const std::optional<HfConfig>& config) {
  const MappingFiles files = SW_TRY(read_mapping_files(choice, recorded));
  Mappings named = SW_TRY(parse_named(files, choice, recorded, config));
  return named.empty() ? all_of(files, choice, recorded) : std::move(named);
}

}  // namespace

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
  std::map<std::string, std::pair<std::string, MappingHeading>, std::less<>> by_family;
  for (const MappingText& text : texts_of(files)) {
    MappingHeading heading = SW_TRY(read_heading(text));
    const std::string family = heading.family;
    by_family.emplace(family, std::pair(text.name, std::move(heading)));
  }
  std::set<std::string> seen;
  std::vector<std::string> wanted = {mapping.family};
  while (!wanted.empty()) {
    const std::string family = std::move(wanted.back());
    wanted.pop_back();
    const auto found = by_family.find(family);
    if (found == by_family.end() || !seen.insert(family).second) continue;
    const auto& [name, heading] = found->second;
    std::ranges::copy(heading.extends, std::back_inserter(wanted));
    const std::string& text = files.at(name).text;
    const auto same = built_in.find(name);
    if (same == built_in.end() || same->second.text != text) record.files.emplace_back(name, text);
  }
  std::ranges::sort(record.files);
  return record;
}

Result<Mappings> load_all_mappings(const FamilyChoice& choice) {
  return all_of(SW_TRY(read_mapping_files(choice)), choice);
}

Result<Mappings> load_mappings(const FamilyChoice& choice, const Checkpoint& source) {
  return load_for(choice, SW_TRY(read_recorded_mapping(source.source_keys)),
                  readable_config(choice, source));
}

Result<Mappings> load_named_mappings(const FamilyChoice& choice, const Checkpoint& source) {
  const RecordedMapping recorded = SW_TRY(read_recorded_mapping(source.source_keys));
  const std::optional<HfConfig> config = readable_config(choice, source);
  if (choice.family.empty() && recorded.family.empty() && !config) return Mappings();
  return parse_named(SW_TRY(read_mapping_files(choice, recorded)), choice, recorded, config);
}

Result<Mappings> load_mappings(const FamilyChoice& choice, const HfConfig& config) {
  return load_for(choice, {}, config);
}

Result<const Mapping*> chosen_family(const FamilyChoice& choice, std::span<const Mapping> mappings,
                                     const HfConfig& config) {
  return choice.family.empty() ? find_family(mappings, config)
                               : find_family(mappings, choice.family);
}

Status check_family_choice(const FamilyChoice& choice, const Checkpoint& source) {
  const std::string& config = choice.hf_config_dir;
  if (!config.empty() && !is_remote_path(config) && !is_folder(config) && !is_file(config)) {
    return fail(Code::kNotFound, "--hf-config {}: no such folder", config);
  }
  if (choice.family.empty() && choice.map_files.empty()) return {};
  const Mappings mappings = SW_TRY(load_mappings(choice, source));
  if (choice.family.empty()) return {};
  SW_TRY(find_family(mappings, choice.family));
  return {};
}

bool is_about_family(Code code) {
  return code == Code::kNoFamily || code == Code::kAmbiguousFamily ||
         code == Code::kConfigMissing || code == Code::kUnmatchedSource ||
         code == Code::kUnmatchedTarget;
}

}  // namespace shardwright
