// SPDX-License-Identifier: Apache-2.0
#include "dcp/torch_items.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "codec/safetensors_header.h"
#include "codec/torch_item_reader.h"
#include "dcp/decoded_items.h"
#include "dcp/guarded_storage.h"
#include "dcp/resolved_views.h"
#include "io/file_window.h"
#include "layout/strided_shards.h"
#include "tensor/chunk_part.h"

namespace shardwright {
namespace {

// Small, for there may be millions.
struct Item {
  std::uint32_t file;
  std::uint32_t tensor;
  std::uint32_t chunk;
  bool is_in_safetensors;
  ByteRange range;
};

// torch gives the length of the payload and the place of the header that it shares with others; an
// archive is always longer than its payload.
bool is_in_safetensors(DType dtype, const Chunk& chunk) {
  const auto bytes = byte_count(chunk.box.shape, dtype);
  return bytes && *bytes > 0 && chunk.range.length == static_cast<std::uint64_t>(*bytes);
}

// Items of `tensors`, empty ones too where `with_empty`: an empty shard's item holds nothing, and
// may not exist.
std::vector<Item> items_in_file_order(const Catalog& catalog,
                                      std::span<const std::uint32_t> tensors, bool with_empty) {
  std::vector<Item> items;
  for (const std::uint32_t t : tensors) {
    const StoredTensor& tensor = catalog.tensors[t];
    for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
      const Chunk chunk = tensor.chunks[c];
      if (chunk.box.is_empty() != with_empty) continue;
      items.push_back({chunk.file, t, c, is_in_safetensors(tensor.desc.dtype, chunk), chunk.range});
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.file != b.file ? a.file < b.file : a.range.offset < b.range.offset;
  });
  return items;
}

// Items of one file. Its safetensors headers are read once each.
class ItemReader {
 public:
  explicit ItemReader(const ReadableFile& file) : file_(&file), archives_(file) {}

  Result<LocatedTensor> read(const std::string& name, const Item& item) {
    return item.is_in_safetensors ? read_safetensors(name, item.range.offset)
                                  : archives_.read(item.range);
  }

 private:
  Result<LocatedTensor> read_safetensors(const std::string& name, std::uint64_t offset) {
    const auto [found, is_new] = headers_.try_emplace(offset);
    if (is_new) {
      const FileWindow window(*file_, {offset, file_->size()});
      for (auto& [desc, range] : SW_TRY(read_safetensors_header(window)).tensors) {
        found->second.emplace(std::move(desc.name), Stored{desc.dtype, desc.shape, range});
      }
    }
    const auto entry = found->second.find(name);
    if (entry == found->second.end()) {
      return fail(Code::kChunkMismatch,
                  "@{}: no tensor begins there, says the file's safetensors header", offset);
    }
    LocatedTensor located;
    located.dtype = entry->second.dtype;
    located.shape = entry->second.shape;
    located.range = {offset + entry->second.range.offset, entry->second.range.length};
    return located;
  }

  struct Stored {
    DType dtype;
    Dims shape;
    ByteRange range;
  };

  const ReadableFile* file_;
  TensorItemReader archives_;
  std::map<std::uint64_t, std::unordered_map<std::string, Stored>> headers_;  // by offset
};

// Items of one file, in a row, from `begin` to `end` of all.
struct Stretch {
  std::size_t begin;
  std::size_t end;
};

std::vector<Stretch> stretches_of(const std::vector<Item>& items) {
  // What is found of some dozens of these waits in memory.
  constexpr std::size_t kMostItems = 2048;
  std::vector<Stretch> stretches;
  for (std::size_t begin = 0; begin < items.size();) {
    const std::size_t most = std::min(items.size(), begin + kMostItems);
    std::size_t end = begin + 1;
    while (end < most && items[end].file == items[begin].file) ++end;
    stretches.push_back({begin, end});
    begin = end;
  }
  return stretches;
}

// What an item holds that is not what the metadata says of it.
struct Surprise {
  std::uint32_t chunk = 0;
  DType dtype = DType::kU8;
  Dims shape;
};

std::unexpected<Error> mismatch(const Catalog& catalog, const StoredTensor& tensor,
                                const Surprise& found) {
  const Box box = tensor.chunks.box(found.chunk);
  return fail(
      Code::kChunkMismatch,
      "{}: tensor {}: the archive of chunk {} holds {} {}, expected {} {}; the metadata and "
      "the file do not belong together, or torch wrote them wrong",
      catalog.files[tensor.chunks.file(found.chunk)], tensor.desc.name, to_string(box),
      torch_name(found.dtype), to_string(found.shape), torch_name(tensor.desc.dtype),
      to_string(box.shape));
}

class Locator {
 public:
  Locator(Catalog& catalog, SourceFiles& files, Defects& defects)
      : catalog_(catalog), files_(files), defects_(defects), views_(catalog, files) {}

  Result<std::vector<std::string>> run() {
    SW_TRY(decode_items(catalog_, files_));
    std::vector<std::uint32_t> tensors;
    for (std::uint32_t t = 0; t < catalog_.tensors.size(); ++t) {
      if (catalog_.tensors[t].encoding == Encoding::kTorchItem) tensors.push_back(t);
    }
    SW_TRY(locate(items_in_file_order(catalog_, tensors, false)));
    if (!surprises_.empty()) SW_TRY(repair_tensors());
    SW_TRY(views_.finish());
    for (StoredTensor& tensor : catalog_.tensors) tensor.encoding = Encoding::kRaw;
    return std::move(notes_);
  }

 private:
  using Found = std::vector<Result<LocatedTensor>>;

  // The items' heads are read ahead, side by side; what they say is taken in order.
  Status locate(const std::vector<Item>& items) {
    const std::vector<Stretch> stretches = stretches_of(items);
    std::optional<std::uint32_t> unopened;  // the last file that is none
    const auto read = [&](std::size_t i) { return read_items(items, stretches[i]); };
    const auto take = [&](std::size_t i, Result<Found> found) -> Status {
      const auto [begin, end] = stretches[i];
      const std::uint32_t file = items[begin].file;
      if (!found && std::exchange(unopened, file) != file) {
        SW_TRY(defects_.report(std::unexpected(found.error())));
      }
      for (std::size_t item = begin; item < end; ++item) {
        const std::string& name = name_of(items[item]);
        if (found) {
          if (defects_.is_lost(name, items[item].chunk)) continue;
          Status status = locate_item(items[item], std::move((*found)[item - begin]));
          if (status) continue;
          SW_TRY(defects_.report(std::move(status)));
        }
        defects_.lose(name, items[item].chunk);
      }
      return {};
    };
    return read_ahead(stretches.size(), read, take);
  }

  [[nodiscard]] const std::string& name_of(const Item& item) const {
    return catalog_.tensors[item.tensor].desc.name;
  }

  // REQUIRES of what is taken meanwhile: that it leaves tensors and their names as they are.
  Result<Found> read_items(const std::vector<Item>& items, Stretch stretch) {
    const auto open = SW_TRY(files_.get(items[stretch.begin].file));
    ItemReader reader(*open);
    Found found;
    found.reserve(stretch.end - stretch.begin);
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      found.push_back(reader.read(name_of(items[i]), items[i]));
      if (!found.back()) reader = ItemReader(*open);
    }
    return found;
  }

  // Of a chunk that was given an axis in front its item has no axis, see Chunk::strides.
  static void lift(const Chunk& chunk, LocatedTensor& found) {
    if (chunk.strides.empty() || chunk.strides[0] != 0) return;
    if (found.shape.size() + 1 != chunk.box.axes()) return;
    found.shape = with_first(found.shape, 1);
    if (!found.strides.empty()) found.strides = with_first(found.strides, 0);
  }

  Status locate_item(const Item& item, Result<LocatedTensor> found) {
    StoredTensor& tensor = catalog_.tensors[item.tensor];
    const Chunk chunk = tensor.chunks[item.chunk];
    if (!found) {
      Error error = std::move(found).error().within(fmt::format("tensor {}", tensor.desc.name));
      return std::unexpected(std::move(error).within(catalog_.files[item.file]));
    }
    lift(chunk, *found);
    if (found->dtype != tensor.desc.dtype || !(found->shape == chunk.box.shape)) {
      surprises_[item.tensor].push_back({item.chunk, found->dtype, found->shape});
      if (found->dtype != tensor.desc.dtype) {
        return mismatch(catalog_, tensor, surprises_[item.tensor].back());
      }
    }
    expect_record(files_, item.file, *found, tensor.desc.name);
    if (found->flips.any()) {
      tensor.chunks.set_location(item.chunk, views_.file(),
                                 SW_TRY(views_.resolve(item.file, *found)));
    } else {
      tensor.chunks.set_location(item.chunk, chunk.file, found->range);
    }
    tensor.chunks.set_strides(item.chunk, found->strides);
    return {};
  }

  // Chunks whose items say another shape: those that claim to be empty may be the other half.
  Status repair_tensors() {
    std::vector<std::uint32_t> tensors;
    for (const auto& [tensor, surprises] : surprises_) tensors.push_back(tensor);
    SW_TRY(locate(items_in_file_order(catalog_, tensors, true)));
    for (const std::uint32_t tensor : tensors) {
      Status status = repair(tensor);
      if (status) continue;
      SW_TRY(defects_.report(std::move(status)));
      for (const Surprise& surprise : surprises_[tensor]) {
        defects_.lose(catalog_.tensors[tensor].desc.name, surprise.chunk);
      }
    }
    return {};
  }

  Status repair(std::uint32_t index) {
    StoredTensor& tensor = catalog_.tensors[index];
    const std::vector<Surprise>& surprises = surprises_[index];
    const std::optional<int> axis = sharded_axis(tensor, surprises);
    if (!axis) return mismatch(catalog_, tensor, surprises.front());
    std::vector<ShardClaim> claims;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Box box = tensor.chunks.box(i);
      claims.push_back({box.origin[*axis], box.shape[*axis], box.shape[*axis]});
    }
    for (const Surprise& surprise : surprises) {
      claims[surprise.chunk].stored_rows = surprise.shape[*axis];
    }
    const auto rows = true_shard_rows(tensor.desc.shape[*axis], claims);
    if (!rows) return mismatch(catalog_, tensor, surprises.front());
    ChunkList repaired(tensor.chunks.axes());
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      Chunk chunk = tensor.chunks[i];
      chunk.box.origin[*axis] = (*rows)[i].offset;
      chunk.box.shape[*axis] = (*rows)[i].rows;
      repaired.push_back(chunk);
    }
    tensor.chunks = std::move(repaired);
    notes_.push_back(translated(
        "tensor {}: the metadata describes its strided shards wrong (a fault of torch 2.12 and "
        "2.13); {} chunks are read at the rows that their items hold",
        tensor.desc.name, surprises.size()));
    return {};
  }

  // The one axis on which the chunks and their items differ.
  static std::optional<int> sharded_axis(const StoredTensor& tensor,
                                         const std::vector<Surprise>& surprises) {
    std::optional<int> found;
    for (const Surprise& surprise : surprises) {
      const Dims& claimed = tensor.chunks.box(surprise.chunk).shape;
      if (surprise.shape.size() != claimed.size()) return std::nullopt;
      for (int axis = 0; axis < claimed.size(); ++axis) {
        if (claimed[axis] == surprise.shape[axis]) continue;
        if (found && *found != axis) return std::nullopt;
        found = axis;
      }
    }
    if (!found) return std::nullopt;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Dims shape = tensor.chunks.box(i).shape;
      for (int axis = 0; axis < shape.size(); ++axis) {
        if (axis != *found && shape[axis] != tensor.desc.shape[axis]) return std::nullopt;
      }
    }
    return found;
  }

  Catalog& catalog_;
  SourceFiles& files_;
  Defects& defects_;
  ResolvedViews views_;
  std::map<std::uint32_t, std::vector<Surprise>> surprises_;  // by tensor
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::vector<std::string>> locate_items(Catalog& catalog, SourceFiles& files,
                                              Defects& defects) {
  return Locator(catalog, files, defects).run();
}

bool is_safetensors_item(const StoredTensor& tensor, std::size_t chunk) {
  return tensor.encoding == Encoding::kTorchItem &&
         is_in_safetensors(tensor.desc.dtype, tensor.chunks[chunk]);
}

Result<std::vector<std::string>> locate_items(Catalog& catalog, SourceFiles& files) {
  Defects first;
  return locate_items(catalog, files, first);
}

}  // namespace shardwright
