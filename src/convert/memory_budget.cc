// SPDX-License-Identifier: Apache-2.0
#include "convert/memory_budget.h"

#include <algorithm>
#include <unordered_set>

#include "base/fail.h"
#include "exec/low_rank_region.h"
#include "exec/payload_digests.h"
#include "exec/quantise_region.h"
#include "exec/sum_reader.h"
#include "exec/threads.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kDefaultBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kProgramBytes = std::uint64_t{24} << 20;  // code, libraries, stacks, files
constexpr std::uint64_t kMostBufferBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastThreadBytes = std::uint64_t{128} << 10;
constexpr std::uint64_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kAllocationBytes = 2 * kWord;  // what the allocator adds to each block

std::uint64_t bytes_of(const std::string& text) {
  // Short ones lie in the string itself.
  return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + kAllocationBytes;
}

std::uint64_t bytes_of(const Catalog& catalog) {
  std::uint64_t bytes = 0;
  for (const std::string& file : catalog.files) bytes += sizeof(std::string) + bytes_of(file);
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto axes = static_cast<std::uint64_t>(tensor.chunks.axes());
    bytes += sizeof(StoredTensor) + bytes_of(tensor.desc.name) + 3 * kAllocationBytes;
    bytes += tensor.chunks.size() * (2 * axes + 3) * kWord;
  }
  for (const StoredObject& object : catalog.objects) {
    bytes += sizeof(StoredObject) + bytes_of(object.name);
  }
  return bytes;
}

std::uint64_t bytes_of(const Plan& plan) {
  std::uint64_t bytes = bytes_of(plan.source) + bytes_of(plan.target);
  for (const TensorRecipe& recipe : plan.tensors) {
    bytes += sizeof(TensorRecipe) + recipe.views.allocated_bytes();
    if (recipe.quantising != nullptr) bytes += sizeof(Quantising) + 2 * kAllocationBytes;
  }
  std::unordered_set<const std::string*> counted;  // alike objects share their bytes
  for (const ObjectRecipe& object : plan.objects) {
    bytes += sizeof(ObjectRecipe);
    if (object.bytes == nullptr || !counted.insert(object.bytes.get()).second) continue;
    bytes += sizeof(std::string) + bytes_of(*object.bytes);
  }
  for (const Literal& literal : plan.literals) bytes += sizeof(Literal) + bytes_of(literal.bytes);
  std::unordered_set<const std::vector<ByteRange>*> counted_storages;
  for (const TargetArchive& archive : plan.archives) {
    bytes += sizeof(TargetArchive);
    for (const auto& piece : archive.pickle) {
      bytes += sizeof(piece);
      if (counted.insert(piece.get()).second) bytes += sizeof(std::string) + bytes_of(*piece);
    }
    if (counted_storages.insert(archive.storages.get()).second) {
      bytes += archive.storages->size() * sizeof(ByteRange);
    }
  }
  for (const AdaptedSource& adapted : plan.adapted) {
    bytes += sizeof(AdaptedSource);
    if (adapted.factors != nullptr) bytes += adapted.factors->size() * sizeof(float);
  }
  return bytes + plan.quantised.size() * sizeof(QuantisedSource) +
         plan.weighted.size() * sizeof(WeightedSource);
}

bool has_remote_paths(const ConvertRequest& request) {
  return is_remote_path(request.input) || is_remote_path(request.output) ||
         is_remote_path(request.adapter) || std::ranges::any_of(request.averaged, is_remote_path);
}

// What a thread has besides its buffers.
std::uint64_t bytes_per_thread(const Plan& plan) {
  std::uint64_t bytes = 0;
  if (!plan.adapted.empty()) bytes += UpdatedMatrix::kMostBytes;
  if (!plan.weighted.empty()) bytes += SumReader::kMostBytes;
  const bool quantises = std::ranges::any_of(
      plan.tensors, [](const TensorRecipe& recipe) { return recipe.quantising != nullptr; });
  if (quantises) bytes += kMostMatrixBytes;
  return bytes;
}

}  // namespace

Result<MemoryBudget> budget_of(const ConvertRequest& request, const Checkpoint& source,
                               const Plan& plan) {
  MemoryBudget budget;
  // While it is planned, drafts of what is planned lie beside it.
  budget.held_bytes = kProgramBytes + bytes_of(source.catalog) + 2 * bytes_of(plan) +
                      bytes_of(source.common_state) + bytes_of(source.hf_config);
  if (request.digests) budget.held_bytes += PayloadDigests::most_bytes(plan.target);
  const bool is_remote = has_remote_paths(request);
  if (is_remote) budget.held_bytes += kRemoteBytes;
  const std::uint64_t each = bytes_per_thread(plan) + (is_remote ? kConnectionBytes : 0);
  const std::uint64_t least = budget.held_bytes + each + kLeastThreadBytes;
  const std::uint64_t allowed = request.max_memory_bytes.value_or(kDefaultBytes);
  if (request.max_memory_bytes && allowed < least) {
    return fail(Code::kLimit,
                "--max-memory {}: this conversion needs at least {} bytes ({} MiB): {} tensors of "
                "the source and {} of the target are known by name and place",
                allowed, least, (least >> 20) + 1, plan.source.tensors.size(),
                plan.target.tensors.size());
  }
  // Of what is left, half is for buffers: files, threads' stacks and what the allocator keeps take
  // their part too.
  std::uint64_t left = std::max(allowed, least) - budget.held_bytes;
  const std::uint64_t most_threads = left / (each + 2 * kLeastThreadBytes);
  budget.threads = static_cast<int>(std::clamp<std::uint64_t>(
      most_threads, 1, static_cast<std::uint64_t>(thread_count(request.threads))));
  const std::uint64_t of_threads = each * static_cast<std::uint64_t>(budget.threads);
  budget.held_bytes += of_threads;
  left -= of_threads;
  budget.buffer_bytes = std::clamp(left / 2, kLeastThreadBytes, kMostBufferBytes);
  return budget;
}

}  // namespace shardwright
