// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/pickle_writer.h"
#include "dcp/dcp_metadata.h"

namespace shardwright {
namespace {

using pickle::Op;

constexpr std::size_t kBatch = 1000;  // of SETITEMS and APPENDS, as CPython
constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();
// What a chunk takes in both parts of the file, generously: saves the doublings of a big string.
constexpr std::size_t kBytesPerChunk = 128;
constexpr std::size_t kBytesPerTensor = 256;

constexpr std::string_view kMetadata = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kFilesystem = "torch.distributed.checkpoint.filesystem";
constexpr std::string_view kTensorModule = "torch.distributed._shard.sharded_tensor.metadata";

/// Chunks (tensor, chunk) whose box an earlier chunk of the tensor has too. One storage entry
/// stands for them all, because its key is the box's origin.
using Repeats = std::set<std::pair<std::size_t, std::size_t>>;

/// Writes one Metadata object. Names and classes are memoised, other objects are not: nothing
/// refers to them again.
class MetadataWriter {
 public:
  MetadataWriter(const Catalog& catalog, const Repeats& repeats)
      : catalog_(catalog),
        repeats_(repeats),
        names_(catalog.tensors.size() + catalog.objects.size(), kNoSlot),
        files_(catalog.files.size(), kNoSlot),
        names_seen_(kNameCount, kNoSlot),
        dtypes_(kDTypeCount, kNoSlot) {}

  std::string write(const DcpMetadataWriteOptions& options);

 private:
  enum Name : std::uint8_t {
    kMetadataClass,
    kTensorClass,
    kBytesClass,
    kChunkClass,
    kIndexClass,
    kInfoClass,
    kPropertiesClass,
    kSizeClass,
    kMetadataModule,
    kLayout,
    kMemoryFormat,
    kProperties,
    kSize,
    kChunks,
    kOffsets,
    kSizes,
    kFqn,
    kIndex,
    kOffset,
    kRelativePath,
    kLength,
    kNameCount
  };

  void key(Name name, std::string_view text);
  void global(Name name, std::string_view module, std::string_view text);
  void begin_object(Name name, std::string_view module, std::string_view text);
  void end_object();
  void size(const Dims& dims);
  void properties(DType dtype);
  void dtype_global(DType dtype);
  void tensor(const StoredTensor& tensor);
  void chunks(const ChunkList& chunks);
  void storage(std::size_t name, std::size_t hint, const Box* box, std::uint32_t file,
               const ByteRange& range);
  void storage_data();
  void planner_data(const std::vector<PlannerPath>& paths);
  void next_in_batch(std::size_t& count, Op close);
  void text_once(std::uint32_t& slot, std::string_view text);

  const Catalog& catalog_;
  const Repeats& repeats_;
  pickle::Writer out_{pickle::Protocol::kFour};
  std::vector<std::uint32_t> names_;  // memo slots: tensors' names, then objects'
  std::vector<std::uint32_t> files_;
  std::vector<std::uint32_t> names_seen_;
  std::vector<std::uint32_t> dtypes_;
};

void MetadataWriter::text_once(std::uint32_t& slot, std::string_view text) {
  if (slot != kNoSlot) return out_.get(slot);
  out_.text(text);
  slot = out_.put();
}

void MetadataWriter::key(Name name, std::string_view text) { text_once(names_seen_[name], text); }

void MetadataWriter::global(Name name, std::string_view module, std::string_view text) {
  if (names_seen_[name] != kNoSlot) return out_.get(names_seen_[name]);
  if (module == kMetadata) {
    key(kMetadataModule, module);
  } else {
    out_.text(module);
  }
  out_.text(text);
  out_.op(Op::kStackGlobal);
  names_seen_[name] = out_.put();
}

void MetadataWriter::begin_object(Name name, std::string_view module, std::string_view text) {
  global(name, module, text);
  out_.op(Op::kEmptyTuple);
  out_.op(Op::kNewObj);
  out_.op(Op::kEmptyDict);
  out_.op(Op::kMark);
}

void MetadataWriter::end_object() {
  out_.op(Op::kSetItems);
  out_.op(Op::kBuild);
}

void MetadataWriter::size(const Dims& dims) {
  global(kSizeClass, "torch", "Size");
  out_.integer_tuple(dims.begin(), static_cast<std::size_t>(dims.size()));
  out_.op(Op::kTuple1);
  out_.op(Op::kReduce);
}

void MetadataWriter::dtype_global(DType dtype) {
  std::uint32_t& slot = dtypes_[static_cast<std::size_t>(dtype)];
  if (slot != kNoSlot) return out_.get(slot);
  out_.text("torch");
  out_.text(torch_name(dtype));
  out_.op(Op::kStackGlobal);
  slot = out_.put();
}

// TensorProperties by the names of torch 2.0, which later versions still have; its state is
// (dtype, layout, requires_grad, memory format, pinned).
void MetadataWriter::properties(DType dtype) {
  global(Name::kPropertiesClass, kTensorModule, "TensorProperties");
  out_.op(Op::kEmptyTuple);
  out_.op(Op::kNewObj);
  out_.op(Op::kMark);
  dtype_global(dtype);
  if (names_seen_[kLayout] != kNoSlot) {
    out_.get(names_seen_[kLayout]);
  } else {
    out_.text("torch.serialization");
    out_.text("_get_layout");
    out_.op(Op::kStackGlobal);
    out_.text("torch.strided");
    out_.op(Op::kTuple1);
    out_.op(Op::kReduce);
    names_seen_[kLayout] = out_.put();
  }
  out_.op(Op::kNewFalse);
  if (names_seen_[kMemoryFormat] != kNoSlot) {
    out_.get(names_seen_[kMemoryFormat]);
  } else {
    out_.text(kTensorModule);
    out_.text("MEM_FORMAT_ENCODING");
    out_.op(Op::kStackGlobal);
    out_.integer(0);  // TORCH_CONTIGUOUS_FORMAT
    out_.op(Op::kTuple1);
    out_.op(Op::kReduce);
    names_seen_[kMemoryFormat] = out_.put();
  }
  out_.op(Op::kNewFalse);
  out_.op(Op::kTuple);
  out_.op(Op::kBuild);
}

void MetadataWriter::next_in_batch(std::size_t& count, Op close) {
  if (count == kBatch) {
    out_.op(close);
    out_.op(Op::kMark);
    count = 0;
  }
  ++count;
}

void MetadataWriter::chunks(const ChunkList& chunks) {
  out_.op(Op::kEmptyList);
  out_.op(Op::kMark);
  std::size_t in_batch = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    next_in_batch(in_batch, Op::kAppends);
    const Box box = chunks.box(i);
    begin_object(kChunkClass, kMetadata, "ChunkStorageMetadata");
    key(kOffsets, "offsets");
    size(box.origin);
    key(kSizes, "sizes");
    size(box.shape);
    end_object();
  }
  out_.op(Op::kAppends);
}

void MetadataWriter::tensor(const StoredTensor& tensor) {
  begin_object(kTensorClass, kMetadata, "TensorStorageMetadata");
  key(kProperties, "properties");
  properties(tensor.desc.dtype);
  key(kSize, "size");
  size(tensor.desc.shape);
  key(kChunks, "chunks");
  chunks(tensor.chunks);
  end_object();
}

// torch finds an item by (name, offsets); `index` is only a hint. Objects have no offset at all.
void MetadataWriter::storage(std::size_t name, std::size_t hint, const Box* box, std::uint32_t file,
                             const ByteRange& range) {
  begin_object(kIndexClass, kMetadata, "MetadataIndex");
  key(kFqn, "fqn");
  out_.get(names_[name]);
  key(kIndex, "index");
  if (box == nullptr) {
    out_.op(Op::kNone);
  } else {
    out_.integer(static_cast<std::int64_t>(hint));
    key(kOffset, "offset");
    size(box->origin);
  }
  end_object();
  begin_object(kInfoClass, kFilesystem, "_StorageInfo");
  key(kRelativePath, "relative_path");
  text_once(files_[file], catalog_.files[file]);
  key(kOffset, "offset");
  out_.integer(static_cast<std::int64_t>(range.offset));
  key(kLength, "length");
  out_.integer(static_cast<std::int64_t>(range.length));
  end_object();
}

void MetadataWriter::storage_data() {
  out_.op(Op::kEmptyDict);
  out_.op(Op::kMark);
  std::size_t in_batch = 0;
  for (std::size_t number = 0; number < catalog_.tensors.size(); ++number) {
    const ChunkList& chunks = catalog_.tensors[number].chunks;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (repeats_.contains({number, i})) continue;
      next_in_batch(in_batch, Op::kSetItems);
      const Box box = chunks.box(i);
      storage(number, i, &box, chunks.file(i), chunks.range(i));
    }
  }
  for (std::size_t i = 0; i < catalog_.objects.size(); ++i) {
    const StoredObject& object = catalog_.objects[i];
    next_in_batch(in_batch, Op::kSetItems);
    storage(catalog_.tensors.size() + i, 0, nullptr, object.file, object.range);
  }
  out_.op(Op::kSetItems);
}

void MetadataWriter::planner_data(const std::vector<PlannerPath>& paths) {
  if (paths.empty()) return out_.op(Op::kNone);
  out_.op(Op::kEmptyDict);
  out_.op(Op::kMark);
  std::size_t in_batch = 0;
  for (const PlannerPath& path : paths) {
    next_in_batch(in_batch, Op::kSetItems);
    out_.text(path.name);
    out_.op(Op::kMark);
    for (const PathStep& step : path.path) {
      if (const auto* key = std::get_if<std::string>(&step)) {
        out_.text(*key);
      } else {
        out_.integer(std::get<std::int64_t>(step));
      }
    }
    out_.op(Op::kTuple);
  }
  out_.op(Op::kSetItems);
}

std::string MetadataWriter::write(const DcpMetadataWriteOptions& options) {
  std::size_t expected = 4096;
  for (const StoredTensor& tensor : catalog_.tensors) {
    expected += kBytesPerTensor + tensor.desc.name.size() + tensor.chunks.size() * kBytesPerChunk;
  }
  for (const StoredObject& object : catalog_.objects) {
    expected += kBytesPerTensor + object.name.size();
  }
  out_.reserve(expected);
  begin_object(kMetadataClass, kMetadata, "Metadata");
  out_.text("state_dict_metadata");
  out_.op(Op::kEmptyDict);
  out_.op(Op::kMark);
  std::size_t in_batch = 0;
  for (std::size_t i = 0; i < catalog_.tensors.size(); ++i) {
    next_in_batch(in_batch, Op::kSetItems);
    text_once(names_[i], catalog_.tensors[i].desc.name);
    tensor(catalog_.tensors[i]);
  }
  for (std::size_t i = 0; i < catalog_.objects.size(); ++i) {
    next_in_batch(in_batch, Op::kSetItems);
    text_once(names_[catalog_.tensors.size() + i], catalog_.objects[i].name);
    global(kBytesClass, kMetadata, "BytesStorageMetadata");
    out_.op(Op::kEmptyTuple);
    out_.op(Op::kNewObj);
  }
  out_.op(Op::kSetItems);
  out_.text("planner_data");
  planner_data(options.planner_paths);
  out_.text("storage_data");
  storage_data();
  if (options.version) {
    out_.text("version");
    out_.text(*options.version);
  }
  end_object();
  return std::move(out_).finish();
}

Status check_place(const Catalog& catalog, std::string_view name, std::uint32_t file,
                   const ByteRange& range) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool fits = range.offset <= kMost && range.length <= kMost - range.offset;
  if (file < catalog.files.size() && fits) return {};
  return fail(
      Code::kInternal,
      ".metadata tensor {}: found file {} at {}+{}, expected one of the {} files and a range "
      "below 2^63",
      name, file, range.offset, range.length, catalog.files.size());
}

// Tensors and objects are values of one dict: the later of two of a name would be all that is read.
Status check_names(const Catalog& catalog) {
  std::unordered_set<std::string_view> names;
  names.reserve(catalog.tensors.size() + catalog.objects.size());
  const auto add = [&](std::string_view name) -> Status {
    if (names.insert(name).second) return {};
    return fail(Code::kInternal, ".metadata: found two entries {}, expected one of each name",
                name);
  };
  for (const StoredTensor& tensor : catalog.tensors) SW_TRY(add(tensor.desc.name));
  for (const StoredObject& object : catalog.objects) SW_TRY(add(object.name));
  return {};
}

bool begins_before(const Box& a, const Box& b) {
  return std::ranges::lexicographical_compare(a.origin, b.origin);
}

Status find_repeats(const StoredTensor& tensor, std::size_t number, Repeats& repeats) {
  const ChunkList& chunks = tensor.chunks;
  std::size_t ascending = 1;
  while (ascending < chunks.size() &&
         begins_before(chunks.box(ascending - 1), chunks.box(ascending))) {
    ++ascending;
  }
  if (ascending >= chunks.size()) return {};
  std::vector<std::size_t> order(chunks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return begins_before(chunks.box(a), chunks.box(b));
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Chunk first = chunks[order[i - 1]];
    const Chunk second = chunks[order[i]];
    if (first.box.origin != second.box.origin) continue;
    const bool same = first.box == second.box && first.file == second.file &&
                      first.range.offset == second.range.offset &&
                      first.range.length == second.range.length;
    if (!same) {
      return fail(Code::kOverlap,
                  ".metadata tensor {}: found two chunks that begin at {}, expected one item there",
                  tensor.desc.name, to_string(first.box.origin));
    }
    repeats.emplace(number, order[i]);
  }
  return {};
}

}  // namespace

Result<std::string> encode_dcp_metadata(const Catalog& catalog,
                                        const DcpMetadataWriteOptions& options) {
  SW_TRY(check_names(catalog));
  Repeats repeats;
  for (std::size_t number = 0; number < catalog.tensors.size(); ++number) {
    const StoredTensor& tensor = catalog.tensors[number];
    SW_TRY(find_repeats(tensor, number, repeats));
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      SW_TRY(check_place(catalog, tensor.desc.name, tensor.chunks.file(i), tensor.chunks.range(i)));
    }
  }
  for (const StoredObject& object : catalog.objects) {
    SW_TRY(check_place(catalog, object.name, object.file, object.range));
  }
  return MetadataWriter(catalog, repeats).write(options);
}

}  // namespace shardwright
