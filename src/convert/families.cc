// SPDX-License-Identifier: Apache-2.0
#include "convert/families.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "convert/built_in_models.h"
#include "convert/model_facts.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMappingFileBytes = std::uint64_t{4} << 20;

std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

Result<std::string> read_mapping_file(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::unique_ptr<Directory> directory = SW_TRY(open_local_directory(folder));
  return read_whole(*directory, name, kMappingFileBytes);
}

// That it can't be read is told when the model's family is looked for.
std::optional<HfConfig> readable_config(const ConvertRequest& request, const Checkpoint& source) {
  const auto text = config_text_of(request, source);
  if (!text || text->empty()) return std::nullopt;
  auto config = read_hf_config(*text);
  return config ? std::optional(*std::move(config)) : std::nullopt;
}

/// The texts of mapping files by the files' names.
using MappingFiles = std::map<std::string, std::string, std::less<>>;

Result<MappingFiles> read_mapping_files(const ConvertRequest& request) {
  MappingFiles files;
  if (request.models_dir.empty()) {
    for (const MappingText& model : built_in_models()) files[model.name] = model.json;
  } else {
    const std::unique_ptr<Directory> folder = SW_TRY(open_local_directory(request.models_dir));
    for (const DirectoryEntry& entry : SW_TRY(folder->list(""))) {
      if (!entry.name.ends_with(".json") || entry.name == "schema.json") continue;
      files[entry.name] = SW_TRY(read_whole(*folder, entry.name, kMappingFileBytes));
    }
  }
  // A file of the user's takes the place of a built-in one of the same name.
  std::set<std::string, std::less<>> given;
  for (const std::string& file : request.map_files) {
    const std::string name = last_part(file);
    if (!given.insert(name).second) {
      return fail(Code::kUsage, "--map {}: found two files of this name, expected one", name);
    }
    files[name] = SW_TRY(read_mapping_file(file));
  }
  return files;
}

std::vector<MappingText> texts_of(const MappingFiles& files) {
  std::vector<MappingText> texts;
  for (const auto& [name, json] : files) texts.push_back({name, json});
  return texts;
}

}  // namespace

Result<std::vector<Mapping>> load_mappings(const ConvertRequest& request) {
  const MappingFiles files = SW_TRY(read_mapping_files(request));
  return parse_mappings(texts_of(files));
}

Result<std::vector<Mapping>> load_mappings_of(const ConvertRequest& request,
                                              const Checkpoint& source) {
  const MappingFiles files = SW_TRY(read_mapping_files(request));
  const std::optional<HfConfig> config = readable_config(request, source);
  const auto may_be_of = [&](const Mapping& names) {
    if (!request.family.empty()) return names.family == request.family;
    return !config || names_one_of(*config, {&names, 1});
  };
  const auto is_given = [&request](const Mapping& names) {
    return std::ranges::find(request.map_files, names.file, last_part) != request.map_files.end();
  };
  bool is_one_named = false;
  const auto is_wanted = [&](const Mapping& names) {
    const bool may_be = may_be_of(names);
    is_one_named |= may_be;
    return may_be || is_given(names);
  };
  std::vector<Mapping> named = SW_TRY(parse_mappings(texts_of(files), is_wanted));
  if (is_one_named) return named;
  return parse_mappings(texts_of(files));
}

Result<const Mapping*> chosen_family(const ConvertRequest& request,
                                     std::span<const Mapping> mappings, const HfConfig& config) {
  return request.family.empty() ? find_family(mappings, config)
                                : find_family(mappings, request.family);
}

}  // namespace shardwright
