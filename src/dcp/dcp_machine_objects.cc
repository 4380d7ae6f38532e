// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/fail.h"
#include "dcp/dcp_machine.h"

namespace shardwright::dcp {
namespace {

bool is_known_class(std::uint8_t n) { return static_cast<Class>(n) != Class::kOther; }

}  // namespace

std::string Machine::class_name(const Cell& object) const {
  return fmt::format("{}.{}", collector_.text(object.a), collector_.text(object.b));
}

// Sizes and offsets are torch.Size, tuples (Megatron-FSDP) or lists.
Cell Machine::dims_of(const Cell* cell) {
  if (cell == nullptr) return {};
  const Cell value = heap_.resolve(*cell);
  if (value.tag != Tag::kList) return value;
  const ListRecord& list = heap_.list(value.a);
  if (list.mixed || !list.chunks.empty() || !list.strings.empty()) return {};
  if (list.integer_count > kMaxAxes) return {Tag::kWide};
  const auto count = static_cast<std::size_t>(list.integer_count);
  const std::uint32_t place = heap_.add(std::span(list.integers).first(count));
  return {Tag::kDims, static_cast<std::uint8_t>(count), 0, place, 0, 0};
}

Cell Machine::described_dims(const Cell* cell) {
  const bool is_list = cell != nullptr && heap_.resolve(*cell).tag == Tag::kList;
  const Cell dims = dims_of(cell);
  if (is_list && dims.tag == Tag::kDims) collector_.note_list_as_size();
  return dims;
}

bool Machine::build_chunk(const DictRecord& dict, Cell& result) {
  const Cell offsets = described_dims(dict.find(kOffsets));
  const Cell sizes = described_dims(dict.find(kSizes));
  if (offsets.tag == Tag::kWide || sizes.tag == Tag::kWide) {
    return refuse(Code::kLimit, translated(": found a chunk of more than {} axes", kMaxAxes));
  }
  if (offsets.tag == Tag::kHuge || sizes.tag == Tag::kHuge) {
    return refuse(Code::kOutOfBounds, ": found a chunk with an extent beyond int64");
  }
  if (offsets.tag != Tag::kDims || sizes.tag != Tag::kDims || offsets.n != sizes.n) {
    return refuse(Code::kMetadataCorrupt,
                  ": a chunk's offsets and sizes are missing or of different lengths");
  }
  result = {Tag::kChunk, offsets.n, 0, offsets.a, sizes.a, 0};
  return true;
}

bool Machine::build_index(const DictRecord& dict, Cell& result) {
  const Cell* name = dict.find(kFqn);
  const Cell* hint = dict.find(kIndex);
  const Cell offset = described_dims(dict.find(kOffset));
  if (name == nullptr || name->tag != Tag::kString) {
    return refuse(Code::kMetadataCorrupt,
                  ": found a storage entry without an fqn, expected a string");
  }
  result = {Tag::kIndex, kNoOffset, 0, name->a, 0, kNone32};
  if (hint != nullptr && hint->tag == Tag::kInt) {
    const std::int64_t value = int_of(*hint);
    if (value >= 0 && value < kNone32) result.c = static_cast<std::uint32_t>(value);
  }
  const bool absent = dict.find(kOffset) == nullptr || offset.tag == Tag::kNone;
  if (absent) return true;
  if (offset.tag != Tag::kDims) {
    return refuse(
        Code::kMetadataCorrupt,
        translated(" tensor {}: found a storage entry whose offset is not a tuple of at most "
                   "{} integers",
                   collector_.shown(name->a), kMaxAxes));
  }
  result.n = offset.n;
  result.b = offset.a;
  return true;
}

bool Machine::build_info(const DictRecord& dict, Cell& result) {
  const Cell* path = dict.find(kRelativePath);
  const Cell* offset = dict.find(kOffset);
  const Cell* length = dict.find(kLength);
  const Cell* transforms = dict.find(kTransformDescriptors);
  if (path == nullptr || offset == nullptr || length == nullptr) return true;
  if (path->tag != Tag::kString) {
    return refuse(Code::kMetadataCorrupt, ": found a relative_path that is not a string");
  }
  if (offset->tag != Tag::kInt || length->tag != Tag::kInt) {
    return refuse(Code::kOutOfBounds,
                  translated(": found an offset or length in {} that is no 64-bit integer",
                             collector_.text(path->a)));
  }
  const std::array<std::int64_t, 2> range = {int_of(*offset), int_of(*length)};
  result = {Tag::kInfo, 0, 0, path->a, heap_.add(range), kNone32};
  if (transforms == nullptr || transforms->tag == Tag::kNone) return true;
  if (transforms->tag != Tag::kList || heap_.list(transforms->a).mixed) {
    return refuse(Code::kMetadataCorrupt,
                  ": found transform_descriptors that are not a list of strings");
  }
  if (!heap_.list(transforms->a).strings.empty()) {
    heap_.list(transforms->a).pinned = true;
    result.c = transforms->a;
  }
  return true;
}

// Both generations of torch's classes take their own memory formats only.
void Machine::compare_generations(Class known, const Cell& state) {
  const Class wanted = known == Class::kProperties ? Class::kFormat : Class::kOldFormat;
  if (state.tag != Tag::kProperties || !is_format(state)) {
    collector_.note_obstacle(
        "has TensorProperties whose state is not the five values that torch wants, the fourth one "
        "a memory format");
  } else if (static_cast<Class>(state.n) == wanted) {
    return;
  } else if (known == Class::kProperties) {
    collector_.note_obstacle(
        "mixes TensorProperties of torch 2.3 and later with memory formats of earlier ones, which "
        "only torch 2.0 to 2.2 loads");
  } else {
    collector_.note_obstacle(
        "mixes TensorProperties of torch before 2.3 with memory formats of later ones, which no "
        "torch loads");
  }
}

bool Machine::build_properties(Class known, const Cell& state, Cell& result) {
  compare_generations(known, state);
  if (state.tag == Tag::kProperties) {
    result = state;
    return true;
  }
  const Cell* dtype = state.tag == Tag::kDict ? heap_.dict(state.a).find(kDtype) : nullptr;
  if (dtype == nullptr || dtype->tag != Tag::kGlobal) {
    return refuse(Code::kMetadataCorrupt, ": found TensorProperties without a dtype");
  }
  result = {Tag::kProperties, 0, 0, dtype->b, kNone32, 0};
  return true;
}

// What an object is once its state is known. Unknown classes are opaque, except where they have
// the attributes of the outermost object or of a storage info.
bool Machine::built(const Cell& object, const Cell& state, Cell& result) {
  const Class known = static_cast<Class>(object.n);
  result = object;
  if (known == Class::kBytesStorage) {
    heap_.drop(state);
    return true;
  }
  if (known == Class::kProperties || known == Class::kOldProperties) {
    const bool fine = build_properties(known, state, result);
    heap_.drop(state);
    return fine;
  }
  if (state.tag != Tag::kDict) {
    if (known != Class::kOther) {
      return refuse(
          Code::kMetadataCorrupt,
          translated(": found {} without attributes, expected a dict of them", class_name(object)));
    }
    heap_.drop(state);
    result = {};
    return true;
  }
  const DictRecord& dict = heap_.dict(state.a);
  if (known == Class::kTensorStorage) {
    result = {Tag::kTensor, 0, 0, state.a, 0, 0};
    return true;
  }
  if (dict.find(kStateDictMetadata) != nullptr && !is_known_class(object.n)) {
    result = {Tag::kRoot, 0, 0, state.a, object.a, object.b};
    return true;
  }
  result = {};
  bool fine = true;
  if (known == Class::kChunkStorage) {
    fine = build_chunk(dict, result);
  } else if (known == Class::kIndex) {
    fine = build_index(dict, result);
  } else {
    fine = build_info(dict, result);
  }
  heap_.drop(state);
  return fine;
}

bool Machine::take_role(std::uint32_t& owner, std::uint32_t record, std::string_view what) {
  DictRecord& dict = heap_.dict(record);
  if (owner == kNone32) {
    owner = record;
    dict.pinned = true;
  } else if (owner != record) {
    return refuse(Code::kMetadataCorrupt,
                  translated(": found two dicts of {}, expected one", what));
  }
  ++dict.understood;
  return true;
}

// One pair of a dict. What it is shows in the values, so that no order of the attributes and no
// sharing through the memo can mislead.
bool Machine::store_pair(std::uint32_t record, const Cell& key_cell, const Cell& value_cell) {
  const Cell key = heap_.resolve(key_cell);
  const Cell value = heap_.resolve(value_cell);
  ++heap_.dict(record).pairs;
  if (key.tag == Tag::kIndex && value.tag == Tag::kInfo) {
    return take_role(storage_dict_, record, "storage entries") && collect_storage(key, value);
  }
  if (key.tag != Tag::kString) {
    heap_.drop(value_cell);
    return true;
  }
  const bool is_object =
      value.tag == Tag::kNew && static_cast<Class>(value.n) == Class::kBytesStorage;
  if (value.tag == Tag::kTensor) {
    if (!take_role(tensors_dict_, record, "tensors") || !collect_tensor(key.a, value)) return false;
    heap_.drop(value_cell);
    return true;
  }
  if (is_object) {
    if (!take_role(tensors_dict_, record, "tensors")) return false;
    const Status added = collector_.add_object(key.a);
    return added ? true : refuse(added);
  }
  const bool is_path = value.tag == Tag::kPath || value.tag == Tag::kText;
  if (is_path && options_.planner_paths) {
    return take_role(paths_dict_, record, "planner paths") && collect_path(key.a, value);
  }
  if (value.tag == Tag::kDict && heap_.dict(value.a).find(kOriginalShape) != nullptr) {
    const Cell dims = dims_of(heap_.dict(value.a).find(kOriginalShape));
    if (dims.tag == Tag::kDims) {
      Dims shape;
      for (std::size_t i = 0; i < dims.n; ++i) shape.push_back(heap_.integers(dims.a)[i]);
      // Each rank's plan has such a dict too; which one counts shows at the root.
      if (shapes_dict_ != kNone32 && shapes_dict_ != record) {
        collector_.forget_original_shapes();
        shapes_dict_ = kNone32;
      }
      if (!take_role(shapes_dict_, record, "original shapes")) return false;
      if (const Status added = collector_.add_original_shape(key.a, shape); !added) {
        return refuse(added);
      }
      heap_.drop(value_cell);
      return true;
    }
  }
  DictRecord& dict = heap_.dict(record);
  if (dict.stray == kNone32) dict.stray = key.a;
  if (key.a >= kKeyCount) {
    heap_.drop(value_cell);
    return true;
  }
  stored_in_slot_ = stored_in_slot_ || Heap::needs_heap(value_cell);
  const Cell stored = dict.pinned ? heap_.keep(value_cell) : value_cell;
  DictRecord& target = heap_.dict(record);
  for (std::size_t i = 0; i < target.count; ++i) {
    if (target.keys[i] == key.a) {
      target.cells[i] = stored;
      return true;
    }
  }
  if (target.count == DictRecord::kSlots) {
    return refuse(Code::kMetadataCorrupt, ": found an object with too many known attributes");
  }
  target.keys[target.count] = static_cast<std::uint8_t>(key.a);
  target.cells[target.count++] = stored;
  return true;
}

bool Machine::collect_tensor(std::uint32_t name, const Cell& tensor) {
  const DictRecord& dict = heap_.dict(tensor.a);
  const Cell* properties = dict.find(Key::kProperties);
  const Cell* chunks = dict.find(kChunks);
  const Cell size = described_dims(dict.find(Key::kSize));
  const auto refuse_tensor = [&](Code code, std::string_view found) {
    return refuse(code, translated(" tensor {}: found {}", collector_.shown(name), found));
  };
  if (properties == nullptr || heap_.resolve(*properties).tag != Tag::kProperties) {
    return refuse_tensor(Code::kMetadataCorrupt, "no properties, expected TensorProperties");
  }
  if (size.tag == Tag::kWide) {
    return refuse_tensor(Code::kLimit, translated("more than {} axes", kMaxAxes));
  }
  if (size.tag == Tag::kHuge) return refuse_tensor(Code::kOutOfBounds, "an extent beyond int64");
  if (size.tag != Tag::kDims) {
    return refuse_tensor(Code::kMetadataCorrupt, "no size, expected a torch.Size");
  }
  if (chunks == nullptr || chunks->tag != Tag::kList || heap_.list(chunks->a).mixed) {
    return refuse_tensor(Code::kMetadataCorrupt,
                         "chunks that are not a list of ChunkStorageMetadata of one axis count");
  }
  Collector::Tensor described{name, heap_.resolve(*properties).a, heap_.resolve(*properties).b, {}};
  for (std::size_t i = 0; i < size.n; ++i) described.size.push_back(heap_.integers(size.a)[i]);
  ListRecord& list = heap_.list(chunks->a);
  if (list.chunks.empty()) list.chunks = ChunkList(size.n);
  // A list that the memo can reach may be another tensor's too: each has a copy.
  if (list.pinned) {
    const Status taken =
        collector_.allowance().take(list.chunks.size() * Collector::chunk_bytes(list.chunks.axes()),
                                    "its shared lists of chunks");
    if (!taken) return refuse_tensor(taken.error().code, taken.error().message);
  }
  const Status added = list.pinned ? collector_.add_tensor(described, ChunkList(list.chunks))
                                   : collector_.add_tensor(described, std::move(list.chunks));
  return added ? true : refuse(added);
}

bool Machine::collect_storage(const Cell& index, const Cell& info) {
  Collector::Entry entry;
  entry.name = index.a;
  entry.path = info.a;
  entry.hint = index.c;
  entry.has_box = index.n != kNoOffset;
  if (entry.has_box) entry.origin = std::span(heap_.integers(index.b), index.n);
  entry.offset = heap_.integers(info.b)[0];
  entry.length = heap_.integers(info.b)[1];
  if (info.c != kNone32) entry.transforms = heap_.list(info.c).strings;
  const Status added = collector_.add_storage(entry);
  return added ? true : refuse(added);
}

bool Machine::collect_path(std::uint32_t name, const Cell& path) {
  // Texts of paths and names may be in the file once and in many paths.
  const std::span<const Cell> given =
      path.tag == Tag::kText ? std::span<const Cell>() : heap_.path(path);
  std::uint64_t bytes = sizeof(PlannerPath) + sizeof(PathStep) + collector_.text(name).size();
  if (path.tag == Tag::kText) bytes += collector_.text(path.a).size();
  for (const Cell& step : given) {
    bytes += sizeof(PathStep);
    if (step.tag == Tag::kString) bytes += collector_.text(step.a).size();
  }
  const Status taken = collector_.allowance().take(bytes, "its planner paths");
  if (!taken) return refuse(Code::kLimit, ": " + taken.error().message);
  std::vector<PathStep> steps;
  if (path.tag == Tag::kText) {
    collector_.add_planner_path(name, {std::string(collector_.text(path.a))});
    return true;
  }
  for (const Cell& step : heap_.path(path)) {
    if (step.tag == Tag::kString) {
      steps.emplace_back(std::string(collector_.text(step.a)));
    } else {
      steps.emplace_back(int_of(step));
    }
  }
  collector_.add_planner_path(name, std::move(steps));
  return true;
}

// The dict under `key` must be the one whose pairs were collected, and all of them.
Status Machine::check_dict(const DictRecord& root, Key key, std::uint32_t owner) {
  const Cell* cell = root.find(key);
  const Cell value = cell == nullptr ? Cell{Tag::kNone} : heap_.resolve(*cell);
  const std::string_view name = collector_.text(key);
  if (owner != kNone32 && (value.tag != Tag::kDict || value.a != owner)) {
    return fail(Code::kMetadataCorrupt, ": found entries of {} outside of it", name);
  }
  if (value.tag == Tag::kNone) return {};
  if (value.tag != Tag::kDict) {
    return fail(Code::kMetadataCorrupt, ": found {} that is not a dict", name);
  }
  const DictRecord& dict = heap_.dict(value.a);
  if (dict.pairs == dict.understood) return {};
  return fail(Code::kMetadataCorrupt,
              ": found {} entries of unknown classes in {} (the first: {}), expected none; "
              "the file is from an unknown writer",
              dict.pairs - dict.understood, name,
              dict.stray == kNone32 ? std::string_view("?") : collector_.text(dict.stray));
}

Result<DcpMetadata> Machine::finish(const Cell& root) {
  if (root.tag != Tag::kRoot) {
    const std::string found =
        root.tag == Tag::kNew ? class_name(root) : std::string("something else");
    return fail(Code::kMetadataCorrupt,
                ": found {}, expected a Metadata object of torch.distributed.checkpoint", found);
  }
  const DictRecord& attributes = heap_.dict(root.a);
  SW_TRY(check_dict(attributes, kStateDictMetadata, tensors_dict_));
  SW_TRY(check_dict(attributes, kStorageData, storage_dict_));
  // Look-alikes elsewhere are not what Megatron or the planner wrote.
  const auto is_at = [&](Key key, std::uint32_t owner) {
    const Cell* cell = attributes.find(key);
    return cell != nullptr && heap_.resolve(*cell).tag == Tag::kDict &&
           heap_.resolve(*cell).a == owner;
  };
  if (!is_at(kMcoreData, shapes_dict_)) collector_.forget_original_shapes();
  if (!is_at(kPlannerData, paths_dict_)) collector_.forget_planner_paths();
  const Cell* version = attributes.find(kVersion);
  const Cell* storage_meta = attributes.find(kStorageMeta);
  const std::string root_class =
      fmt::format("{}.{}", collector_.text(root.b), collector_.text(root.c));
  std::optional<std::string> version_text;
  if (version != nullptr && version->tag == Tag::kString) {
    version_text = std::string(collector_.text(version->a));
  }
  DcpMetadata found = SW_TRY(collector_.finish());
  found.root_class = root_class;
  found.version = std::move(version_text);
  found.has_storage_meta = storage_meta != nullptr && storage_meta->tag != Tag::kNone;
  return found;
}

}  // namespace shardwright::dcp
