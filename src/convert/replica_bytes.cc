// SPDX-License-Identifier: Apache-2.0
#include "convert/replica_bytes.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "format/legacy_file.h"

namespace shardwright {
namespace {

struct Replica {
  std::unique_ptr<ReadableFile> file;
  ByteRange range;
};

Result<Replica> find_replica(const Directory& directory, const RankFile& rank,
                             const std::string& tensor) {
  Replica replica;
  replica.file = SW_TRY(directory.open(rank.path));
  const LegacyFile contents = SW_TRY(read_legacy_file(*replica.file, LegacyDetail::kPlaces));
  for (const LegacyModel& model : contents.models) {
    const auto found = std::ranges::find(model.tensors, tensor, &LegacyTensor::name);
    if (found == model.tensors.end()) continue;
    replica.range = found->place.range;
    return replica;
  }
  return fail(Code::kShapeMismatch, "{}: found no {}", rank.path, tensor);
}

}  // namespace

Result<ReplicaVerdict> compare_replica(const Directory& directory, const RankFile& first,
                                       const RankFile& second, const std::string& tensor) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
  const Replica a = SW_TRY(find_replica(directory, first, tensor));
  const Replica b = SW_TRY(find_replica(directory, second, tensor));
  if (a.range.length != b.range.length) {
    return fail(Code::kShapeMismatch, "{}: {} bytes in {}, {} in {}", tensor, a.range.length,
                first.folder, b.range.length, second.folder);
  }
  ReplicaVerdict verdict{first.folder, second.folder, tensor, "", 0, 0, 0};
  std::vector<std::byte> left(std::min(kBlock, a.range.length));
  std::vector<std::byte> right(left.size());
  for (std::uint64_t at = 0; at < a.range.length; at += left.size()) {
    left.resize(std::min(kBlock, a.range.length - at));
    right.resize(left.size());
    SW_TRY(a.file->read_at(a.range.offset + at, left));
    SW_TRY(b.file->read_at(b.range.offset + at, right));
    verdict.bytes += left.size() + right.size();
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == right[i]) continue;
      if (verdict.differing == 0) verdict.first_difference = at + i;
      ++verdict.differing;
    }
  }
  return verdict;
}

}  // namespace shardwright
