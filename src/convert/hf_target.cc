// SPDX-License-Identifier: Apache-2.0
#include "convert/hf_target.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"
#include "format/hf_reader.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostArtifactBytes = std::uint64_t{256} << 20;

// config.json with another dtype: the one field is replaced, wherever the config spells it.
Result<std::string> with_dtype(std::string_view config, DType dtype,
                               std::vector<std::string>& notes) {
  nlohmann::ordered_json document = SW_TRY(parse_ordered_json(config, "config.json"));
  if (!document.is_object()) return fail(Code::kJsonCorrupt, "config.json: expected an object");
  const char* const key = document.contains("torch_dtype") ? "torch_dtype" : "dtype";
  document[key] = torch_name(dtype);
  notes.push_back(fmt::format("config.json: {} becomes {}", key, torch_name(dtype)));
  return document.dump(2) + "\n";
}

bool has_file(const TargetParts& parts, std::string_view path) {
  return std::any_of(parts.files.begin(), parts.files.end(),
                     [&](const TargetFile& file) { return file.path == path; });
}

// Files of the user's config folder, by value: they are few and small, and no part of the source.
Status add_files_of(const std::string& folder_path, TargetParts& parts) {
  const std::unique_ptr<Directory> folder = SW_TRY(open_local_directory(folder_path));
  for (const DirectoryEntry& entry : SW_TRY(list_hf_artifacts(*folder, ""))) {
    if (has_file(parts, entry.name)) continue;
    std::string bytes = SW_TRY(read_whole(*folder, entry.name, kMostArtifactBytes));
    parts.files.push_back({entry.name, std::move(bytes)});
  }
  return {};
}

}  // namespace

Status finish_hf(const ConvertRequest& request, const Checkpoint& source, const ModelFacts* facts,
                 TargetParts& parts, std::vector<std::string>& notes) {
  const std::string config = facts != nullptr ? facts->config_text : source.hf_config;
  if (request.dtype && !config.empty()) {
    parts.files.push_back({"config.json", SW_TRY(with_dtype(config, *request.dtype, notes))});
  } else if (facts != nullptr && facts->config_is_ours) {
    parts.files.push_back({"config.json", config});
  }
  if (!request.hf_config_dir.empty()) return add_files_of(request.hf_config_dir, parts);
  for (const auto& [path, object] : source.artifacts) {
    if (!has_file(parts, path)) parts.artifacts.emplace_back(path, object);
  }
  return {};
}

}  // namespace shardwright
