// SPDX-License-Identifier: Apache-2.0
#include "format/folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kSmallFileBytes = std::uint64_t{1} << 20;
constexpr std::string_view kMetadataJson = "metadata.json";

}  // namespace

std::string path_in(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!folder.empty() && !name.empty()) path += '/';
  return path.append(name);
}

Result<Folder> Folder::open(const Directory& directory, std::string path) {
  std::vector<DirectoryEntry> entries = SW_TRY(directory.list(path));
  return Folder(directory, std::move(path), std::move(entries));
}

const DirectoryEntry* Folder::first(
    const std::function<bool(const DirectoryEntry&)>& matches) const {
  const auto found = std::ranges::find_if(entries_, matches);
  return found == entries_.end() ? nullptr : &*found;
}

const DirectoryEntry* Folder::file(std::string_view name) const {
  return first([&](const DirectoryEntry& e) { return !e.is_directory && e.name == name; });
}

const DirectoryEntry* Folder::folder(std::string_view name) const {
  return first(
      [&](const DirectoryEntry& e) { return (e.is_directory || e.problem) && e.name == name; });
}

std::string Folder::path_of(std::string_view name) const { return path_in(path_, name); }

Result<std::vector<DirectoryEntry>> Folder::list(std::string_view name) const {
  return directory_->list(path_of(name));
}

bool Folder::exists(std::string_view path) const { return directory_->exists(path_of(path)); }

bool Folder::has(std::string_view path) const {
  return exists(path) && directory_->version(path_of(path)).has_value();
}

Result<std::string> Folder::read(std::string_view name) const {
  return read_whole(*directory_, path_of(name), kSmallFileBytes);
}

Result<std::optional<std::string>> sharded_backend(const Folder& folder) {
  if (!folder.has_file(kMetadataJson)) return std::optional<std::string>();
  const auto text = folder.read(kMetadataJson);
  // Other software has files of this name too, and large ones.
  if (!text && text.error().code == Code::kLimit) return std::optional<std::string>("");
  if (!text) return std::unexpected(text.error());
  const auto json = parse_json(*text, kMetadataJson);
  if (!json || !json->is_object()) return std::optional<std::string>("");
  const auto backend = json->find("sharded_backend");
  const bool is_named = backend != json->end() && backend->is_string();
  return std::optional<std::string>(is_named ? backend->get<std::string>() : "");
}

}  // namespace shardwright
