// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/padding_rows.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "format/legacy/legacy_file.h"

namespace shardwright {
namespace {

// A rank's rows of the word embeddings.
struct Rows {
  std::unique_ptr<ReadableFile> file;
  LocatedTensor place;

  [[nodiscard]] Result<std::vector<std::byte>> row(std::int64_t index) const {
    const auto width =
        static_cast<std::uint64_t>(place.shape[1] * std::int64_t{bytes_of(place.dtype)});
    std::vector<std::byte> bytes(static_cast<std::size_t>(width));
    SW_TRY(file->read_at(place.range.offset + static_cast<std::uint64_t>(index) * width, bytes));
    return bytes;
  }
};

Result<Rows> open_rows(const Directory& directory, const RankFile& shard) {
  Rows rows{SW_TRY(directory.open(shard.path)), {}};
  const LegacyFile contents = SW_TRY(read_legacy_file(*rows.file, LegacyDetail::kPlaces));
  for (const LegacyModel& model : contents.models) {
    for (const LegacyTensor& tensor : model.tensors) {
      if (!tensor.name.ends_with("embedding.word_embeddings.weight")) continue;
      if (tensor.place.shape.size() == 2 && tensor.place.strides.empty()) {
        rows.place = tensor.place;
        return rows;
      }
    }
  }
  return fail(Code::kShapeMismatch, "{} has no rows of word embeddings", shard.path);
}

}  // namespace

Result<PaddingRows> read_padding_rows(const Directory& directory, std::span<const RankFile> shards,
                                      std::int64_t vocabulary) {
  PaddingRows result;
  if (shards.empty() || vocabulary < 1) return result;
  const Rows last = SW_TRY(open_rows(directory, shards.back()));
  const std::int64_t height = last.place.shape[0];
  const auto count = static_cast<std::int64_t>(shards.size());
  if (height < 1 || vocabulary >= height * count) return result;
  const Rows holder =
      SW_TRY(open_rows(directory, shards[static_cast<std::size_t>((vocabulary - 1) / height)]));
  if (!(holder.place.shape == last.place.shape)) {
    return fail(Code::kShapeMismatch, "found embeddings of {} and {} rows", height,
                holder.place.shape[0]);
  }
  const std::vector<std::byte> padding = SW_TRY(last.row(height - 1));
  const std::vector<std::byte> word = SW_TRY(holder.row((vocabulary - 1) % height));
  result.bytes = padding.size() + word.size();
  const bool is_zero =
      std::ranges::all_of(padding, [](std::byte byte) { return byte == std::byte{0}; });
  result.policy = is_zero           ? PaddingPolicy::kZero
                  : padding == word ? PaddingPolicy::kLastRow
                                    : PaddingPolicy::kOther;
  return result;
}

}  // namespace shardwright
