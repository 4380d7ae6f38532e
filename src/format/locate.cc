// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "base/fail.h"
#include "format/iteration_folder.h"
#include "format/rank_metadata.h"
#include "format/sibling.h"
#include "layout/rank_folder.h"
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kSmallFileBytes = std::uint64_t{1} << 20;
struct Listing {
  std::vector<DirectoryEntry> entries;

  [[nodiscard]] bool has(std::string_view name) const {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const DirectoryEntry& entry) { return entry.name == name; });
  }
  [[nodiscard]] const DirectoryEntry* first_matching(auto&& matches) const {
    const auto found = std::find_if(entries.begin(), entries.end(), matches);
    return found == entries.end() ? nullptr : &*found;
  }
};

bool is_model_safetensors(const DirectoryEntry& entry) {
  return !entry.is_directory && entry.name.ends_with(".safetensors") &&
         !entry.name.starts_with("adapter_model");
}

bool is_rank_folder(const DirectoryEntry& entry) {
  return entry.is_directory && parse_rank_folder(entry.name).has_value();
}

class Locator {
 public:
  Result<Location> locate(const std::string& path, bool may_descend) {
    const std::unique_ptr<Directory> directory = SW_TRY(open_local_directory(path));
    const Listing listing{SW_TRY(directory->list(""))};
    if (listing.has(".metadata")) return dcp(path, *directory, listing);
    if (const DirectoryEntry* rank = listing.first_matching(
            [](const DirectoryEntry& entry) { return metadata_rank(entry.name).has_value(); })) {
      reasons_.push_back(fmt::format("{} lists what one rank stored", rank->name));
      return found(Container::kDcp, path);
    }
    if (listing.has("model.safetensors.index.json")) {
      reasons_.push_back("model.safetensors.index.json names the weight files");
      return found(Container::kHf, path);
    }
    if (const DirectoryEntry* file = listing.first_matching(is_model_safetensors)) {
      reasons_.push_back(fmt::format("{} holds weights", file->name));
      return found(Container::kHf, path);
    }
    if (const DirectoryEntry* rank = listing.first_matching(is_rank_folder)) {
      reasons_.push_back(fmt::format("{} holds what one rank saved", rank->name));
      return found(Container::kLegacy, path);
    }
    if (may_descend) {
      if (listing.has(kTrackerName)) return follow_tracker(path, *directory, listing);
      for (const std::string_view prefix : {"iter_", "step_"}) {
        if (const DirectoryEntry* entry = latest_folder(listing.entries, prefix))
          return descend(path, *entry);
      }
      if (const DirectoryEntry* sharded = listing.first_matching(
              [](const DirectoryEntry& entry) { return entry.name == "sharded"; })) {
        return descend(path, *sharded);
      }
      if (const DirectoryEntry* release = listing.first_matching(
              [](const DirectoryEntry& entry) { return entry.name == "release"; })) {
        return descend(path, *release);
      }
    }
    return refuse(path, listing);
  }

 private:
  Result<Location> found(Container container, const std::string& path) {
    const std::string_view name = std::string_view(path).substr(path.find_last_of('/') + 1);
    std::optional<std::int64_t> iteration = number_after(name, "iter_");
    if (!iteration) iteration = number_after(name, "step_");
    return Location{container, path, iteration, std::move(reasons_)};
  }

  Result<Location> dcp(const std::string& path, const Directory& directory,
                       const Listing& listing) {
    reasons_.push_back(".metadata lists the stored chunks");
    if (!listing.has("metadata.json")) return found(Container::kDcp, path);
    const std::string text = SW_TRY(read_whole(directory, "metadata.json", kSmallFileBytes));
    if (text.find("\"zarr\"") != std::string::npos) {
      return fail(Code::kUnsupportedFormat,
                  "{}: metadata.json names the zarr backend, expected torch_dist; "
                  "re-save it with Megatron-Core 0.15 or older",
                  path);
    }
    if (text.find("\"torch_dist\"") == std::string::npos) {
      return fail(Code::kUnsupportedFormat, "{}: metadata.json names no torch_dist backend", path);
    }
    reasons_.push_back("metadata.json names the torch_dist backend");
    return found(Container::kTorchDist, path);
  }

  Result<Location> descend(const std::string& path, const DirectoryEntry& entry) {
    reasons_.push_back(fmt::format("{} is the latest folder", entry.name));
    return locate(path + "/" + entry.name, false);
  }

  Result<Location> follow_tracker(const std::string& path, const Directory& directory,
                                  const Listing& listing) {
    const std::string text = SW_TRY(read_whole(directory, kTrackerName, kSmallFileBytes));
    const std::string_view word = tracker_word(text);
    const std::string folder = iteration_folder(word);
    if (folder.empty()) {
      return fail(Code::kTrackerBroken, "{}/{}: found '{}', expected an iteration or 'release'",
                  path, kTrackerName, word.substr(0, 40));
    }
    if (!listing.has(folder)) {
      return fail(Code::kTrackerBroken,
                  "{}/{}: names {}, which is not there; give the iteration's folder itself", path,
                  kTrackerName, folder);
    }
    reasons_.push_back(fmt::format("{} names {}", kTrackerName, folder));
    return locate(path + "/" + folder, false);
  }

  Result<Location> refuse(const std::string& path, const Listing& listing) const {
    const std::vector<SiblingMatch> siblings = recognise_siblings(listing.entries);
    if (!siblings.empty()) {
      const Sibling& sibling = *siblings.front().sibling;
      return fail(Code::kUnsupportedFormat, "{}: {} shows {}; it is read by {}", path,
                  siblings.front().entry, sibling.english, sibling.reader_english);
    }
    std::string sample;
    for (std::size_t i = 0; i < std::min<std::size_t>(listing.entries.size(), 4); ++i) {
      sample += (i > 0 ? ", " : "") + listing.entries[i].name;
    }
    return fail(Code::kUnknownFormat,
                "{}: found {}, expected .metadata, *.safetensors or iter_* folders", path,
                sample.empty() ? "nothing" : sample);
  }

  std::vector<std::string> reasons_;
};

}  // namespace

std::string_view container_name(Container container) {
  switch (container) {
    case Container::kHf:
      return "hf";
    case Container::kTorchDist:
      return "torch_dist";
    case Container::kDcp:
      return "dcp";
    case Container::kLegacy:
      return "legacy";
  }
  return "";
}

Result<Location> locate_checkpoint(std::string_view path) {
  std::string trimmed_path(path);
  while (trimmed_path.size() > 1 && trimmed_path.back() == '/') trimmed_path.pop_back();
  return Locator().locate(trimmed_path, true);
}

}  // namespace shardwright
