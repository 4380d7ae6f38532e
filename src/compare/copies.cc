// SPDX-License-Identifier: Apache-2.0
#include "compare/copies.h"

#include <unordered_map>

#include "base/fail.h"
#include "io/same_bytes.h"

namespace shardwright {
namespace {

// REQUIRES: one row-major chunk each, as safetensors files have.
Result<bool> are_equal(const StoredTensor& a, const StoredTensor& b, SourceFiles& files) {
  if (a.desc.dtype != b.desc.dtype || !(a.desc.shape == b.desc.shape)) return false;
  const FilePlace left{a.chunks.file(0), a.chunks.range(0).offset};
  const FilePlace right{b.chunks.file(0), b.chunks.range(0).offset};
  const auto difference = SW_TRY(first_difference(files, left, right, a.chunks.range(0).length));
  return !difference.has_value();
}

}  // namespace

Result<std::set<std::string, std::less<>>> find_differing_copies(std::span<const HfCopy> copies,
                                                                 const Catalog& catalog,
                                                                 SourceFiles& files) {
  std::set<std::string, std::less<>> differing;
  if (copies.empty()) return differing;
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) by_name.emplace(tensor.desc.name, &tensor);
  for (const HfCopy& copy : copies) {
    const auto repeated = by_name.find(copy.desc.name);
    const auto original = by_name.find(copy.original);
    if (repeated == by_name.end() || original == by_name.end()) {
      return fail(Code::kUnmatchedSource, "tensor {}: {} is not in the source checkpoint",
                  copy.desc.name, copy.original);
    }
    const bool equal = SW_TRY(are_equal(*repeated->second, *original->second, files));
    if (!equal) differing.insert(copy.desc.name);
  }
  return differing;
}

void draft_copies(std::span<const HfCopy> copies, std::vector<DraftTensor>& drafts) {
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < drafts.size(); ++i) by_name.emplace(drafts[i].desc.name, i);
  for (const HfCopy& copy : copies) {
    const auto original = by_name.find(copy.original);
    if (original == by_name.end()) continue;
    DraftTensor tensor = drafts[original->second];
    tensor.desc.name = copy.desc.name;
    drafts.push_back(std::move(tensor));
  }
}

}  // namespace shardwright
