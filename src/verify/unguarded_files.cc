// SPDX-License-Identifier: Apache-2.0
#include "verify/unguarded_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/translated.h"
#include "compare/digest_file.h"
#include "compare/integrity_file.h"
#include "compare/signature_file.h"
#include "dcp/rank_metadata.h"

namespace shardwright {
namespace {

constexpr int kDeepestFolder = 3;
constexpr std::size_t kMostFiles = 10'000;
constexpr std::size_t kNamesShown = 3;

class UnguardedSearch {
 public:
  UnguardedSearch(const Checkpoint& checkpoint, const std::set<std::string, std::less<>>& guarded)
      : checkpoint_(checkpoint), guarded_(guarded), weights_(files_of_chunks(checkpoint.catalog)) {}

  std::vector<std::string> run() {
    look_into("", 0);
    std::ranges::sort(found_);
    return std::move(found_);
  }

 private:
  void look_into(const std::string& folder, int depth) {
    const auto entries = checkpoint_.directory->list(folder);
    if (!entries) return;  // whoever needs it has told why
    for (const DirectoryEntry& entry : *entries) {
      if (found_.size() >= kMostFiles) return;
      const std::string path = folder.empty() ? entry.name : folder + "/" + entry.name;
      const bool is_hidden = entry.name.starts_with(".") && entry.name != kDcpMetadata;
      if (entry.problem || is_hidden) continue;
      if (entry.is_directory) {
        if (depth < kDeepestFolder) look_into(path, depth + 1);
      } else if (!is_guarded(path)) {
        found_.push_back(path);
      }
    }
  }

  [[nodiscard]] bool is_guarded(const std::string& path) const {
    if (path == kDigestFile || path == kIntegrityFile || path == kSignatureFile ||
        guarded_.contains(path))
      return true;
    if (checkpoint_.location.traits.records == Records::kNone) return false;
    // Archives of weights, and of what lies beside them.
    return weights_.contains(path) || path.ends_with(".pt");
  }

  const Checkpoint& checkpoint_;
  const std::set<std::string, std::less<>>& guarded_;
  std::set<std::string_view> weights_;
  std::vector<std::string> found_;
};

}  // namespace

std::set<std::string_view> files_of_chunks(const Catalog& catalog) {
  std::set<std::uint32_t> numbers;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) numbers.insert(tensor.chunks.file(c));
  }
  for (const StoredObject& object : catalog.objects) numbers.insert(object.file);
  std::set<std::string_view> names;
  for (const std::uint32_t number : numbers) {
    if (number < catalog.files.size()) names.insert(catalog.files[number]);
  }
  return names;
}

std::vector<std::string> unguarded_files(const Checkpoint& checkpoint,
                                         const std::set<std::string, std::less<>>& guarded) {
  return UnguardedSearch(checkpoint, guarded).run();
}

std::string first_names(std::span<const std::string> names) {
  std::string text;
  const std::size_t shown =
      names.size() <= kNamesShown + 1 ? names.size() : kNamesShown;  // never "and 1 other"
  for (std::size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == names.size();
    text += (i == 0 ? "" : is_last ? translated(" and ") : ", ") + printable(names[i]);
  }
  if (shown < names.size()) text += translated(" and {} others", names.size() - shown);
  return text;
}

}  // namespace shardwright
