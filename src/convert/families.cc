// SPDX-License-Identifier: Apache-2.0
#include "convert/families.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "convert/built_in_models.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMappingFileBytes = std::uint64_t{4} << 20;

Result<std::string> read_mapping_file(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::unique_ptr<Directory> directory = SW_TRY(open_local_directory(folder));
  return read_whole(*directory, name, kMappingFileBytes);
}

}  // namespace

Result<std::vector<Mapping>> load_mappings(const ConvertRequest& request) {
  std::vector<std::string> owned;  // texts that the views below borrow
  std::map<std::string, std::string, std::less<>> by_name;
  if (request.models_dir.empty()) {
    for (const MappingText& model : built_in_models()) by_name[model.name] = model.json;
  } else {
    const std::unique_ptr<Directory> folder = SW_TRY(open_local_directory(request.models_dir));
    for (const DirectoryEntry& entry : SW_TRY(folder->list(""))) {
      if (!entry.name.ends_with(".json") || entry.name == "schema.json") continue;
      by_name[entry.name] = SW_TRY(read_whole(*folder, entry.name, kMappingFileBytes));
    }
  }
  // A file of the user's takes the place of a built-in one of the same name.
  std::set<std::string, std::less<>> given;
  for (const std::string& file : request.map_files) {
    const std::string name = file.substr(file.find_last_of('/') + 1);
    if (!given.insert(name).second) {
      return fail(Code::kUsage, "--map {}: found two files of this name, expected one", name);
    }
    by_name[name] = SW_TRY(read_mapping_file(file));
  }
  std::vector<MappingText> texts;
  for (const auto& [name, json] : by_name) texts.push_back({name, json});
  return parse_mappings(texts);
}

}  // namespace shardwright
