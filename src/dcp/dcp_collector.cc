// SPDX-License-Identifier: Apache-2.0
#include "dcp/dcp_collector.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/fail.h"
#include "codec/pickle_text.h"

namespace shardwright::dcp {
namespace {

constexpr std::uint32_t kNotStored = Collector::kUnknown;
constexpr std::size_t kFewChunks = 8;

// A path comes from the file and will be opened: it may only lead into the checkpoint.
Status check_path(std::string_view path, std::string_view shown, std::string_view name) {
  const auto refuse = [&](std::string_view what) {
    return fail(Code::kPathEscapes,
                " tensor {}: found relative_path '{}' {}, expected a file inside the "
                "checkpoint; do not use this checkpoint",
                name, shown, what);
  };
  if (path.empty()) return refuse("which is empty");
  if (path.find('\0') != std::string_view::npos) return refuse("with a NUL");
  if (path.find('\\') != std::string_view::npos) return refuse("with a backslash");
  if (path.front() == '/') return refuse("which is absolute");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == ".." || part == "." || part.empty()) return refuse("with a part '..', '.' or ''");
    begin = end + 1;
  }
  return {};
}

// make_box's rule; a million chunks are checked, so without a Result for each.
bool lies_inside(const Box& box, const Dims& outer) {
  for (int axis = 0; axis < outer.size(); ++axis) {
    const std::int64_t origin = box.origin[axis];
    const std::int64_t extent = box.shape[axis];
    if (origin < 0 || extent < 0 || origin > outer[axis] || extent > outer[axis] - origin) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string Collector::shown(std::uint32_t id) const {
  std::string shown;
  for (char c : text(id)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return shown;
}

Collector::Target& Collector::target(std::uint32_t name) {
  if (name >= targets_.size())
    targets_.resize(std::max<std::size_t>(name + 1, targets_.size() * 2));
  return targets_[name];
}

Status Collector::take(std::uint64_t bytes, std::string_view what) {
  Status taken = allowance_.take(bytes, what);
  if (taken) return taken;
  return fail(taken.error().code, ": {}", taken.error().message);
}

Result<DType> Collector::dtype_of(const Tensor& tensor) {
  const auto dtype = dtype_from_torch(text(tensor.dtype_name));
  if (!dtype) {
    return fail(Code::kDtypeUnsupported,
                " tensor {}: found dtype torch.{}, expected a plain number type; quantised "
                "tensors are not supported, save them dequantised",
                shown(tensor.name), text(tensor.dtype_name));
  }
  if (tensor.layout_name != kUnknown && text(tensor.layout_name) != "torch.strided") {
    return fail(Code::kMetadataCorrupt, " tensor {}: found layout {}, expected torch.strided",
                shown(tensor.name), text(tensor.layout_name));
  }
  return *dtype;
}

Status Collector::check_name(std::uint32_t name) const {
  if (pickle::is_utf8(text(name))) return {};
  return fail(Code::kMetadataCorrupt, " tensor {}: found a name that is no UTF-8, expected UTF-8",
              shown(name));
}

Status Collector::report(Status status) {
  if (status || defects_ == nullptr || !defects_->collects()) return status;
  Error error = std::move(status).error();
  if (error.code == Code::kLimit) return std::unexpected(std::move(error));
  error.message.insert(0, ".metadata:");
  // More than the message takes: thousands of them are no report, and each is compared with all.
  constexpr std::uint64_t kDefectBytes = std::uint64_t{16} << 10;
  SW_TRY(take(kDefectBytes + error.message.size(), "what is wrong with its entries"));
  return defects_->report(std::unexpected(std::move(error)));
}

// A chunk outside of its tensor has no use, and its numbers may overflow.
Status Collector::keep_chunks_inside(const Tensor& tensor, ChunkList& chunks) {
  bool are_inside = true;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Box box = chunks.box(i);
    if (lies_inside(box, tensor.size)) continue;
    are_inside = false;
    SW_TRY(report(fail(Code::kOutOfBounds,
                       " tensor {}: found chunk {} at {} of shape {}, expected it inside {}; the "
                       "file was damaged, restore it",
                       shown(tensor.name), i, to_string(box.origin), to_string(box.shape),
                       to_string(tensor.size))));
  }
  if (are_inside) return {};
  ChunkList kept(chunks.axes());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (lies_inside(chunks.box(i), tensor.size)) kept.push_back(chunks[i]);
  }
  chunks = std::move(kept);
  return {};
}

// It hinders nobody who does not ask for that tensor.
Status Collector::set_aside(const Tensor& tensor, Error why) {
  const bool may_be = why.code == Code::kDtypeUnsupported && defects_ && defects_->sets_aside();
  if (!may_be) return std::unexpected(std::move(why));
  why.message.insert(0, ".metadata:");
  SW_TRY(take(sizeof(Error) + why.message.size(), "its tensors"));
  target(tensor.name) = {.number = 0, .is_set_aside = true};
  defects_->set_aside(text(tensor.name), std::move(why));
  return {};
}

Status Collector::add_tensor(const Tensor& tensor, ChunkList&& chunks) {
  SW_TRY(check_name(tensor.name));
  SW_TRY(take(sizeof(StoredTensor) + text(tensor.name).size(), "its tensors"));
  Target& named = target(tensor.name);
  if (named.number != kUnknown) {
    return fail(Code::kDuplicateName, " tensor {}: found the name twice, expected it once",
                shown(tensor.name));
  }
  const Result<DType> known = dtype_of(tensor);
  if (!known) return set_aside(tensor, known.error());
  const DType dtype = *known;
  const auto bytes = byte_count(tensor.size, dtype);
  if (!bytes) {
    Error error = bytes.error();
    return std::unexpected(std::move(error).within(translated(" tensor {}", shown(tensor.name))));
  }
  if (!chunks.empty() && chunks.axes() != tensor.size.size()) {
    return fail(Code::kMetadataCorrupt,
                " tensor {}: found chunks of {} axes in a tensor of {}, expected the same",
                shown(tensor.name), chunks.axes(), tensor.size.size());
  }
  SW_TRY(keep_chunks_inside(tensor, chunks));
  named = {static_cast<std::uint32_t>(found_.catalog.tensors.size()), true};
  found_.catalog.tensors.push_back({{std::string(text(tensor.name)), dtype, tensor.size},
                                    std::move(chunks),
                                    Encoding::kTorchItem});
  return {};
}

Status Collector::add_object(std::uint32_t name) {
  SW_TRY(check_name(name));
  SW_TRY(take(sizeof(StoredObject) + text(name).size(), "its entries"));
  Target& named = target(name);
  if (named.number != kUnknown) {
    return fail(Code::kDuplicateName, " object {}: found the name twice, expected it once",
                shown(name));
  }
  named = {static_cast<std::uint32_t>(found_.catalog.objects.size()), false};
  found_.catalog.objects.push_back({std::string(text(name)), kNotStored, {}});
  return {};
}

Result<std::uint32_t> Collector::file_of(std::uint32_t path, std::uint32_t name) {
  if (path >= file_numbers_.size()) file_numbers_.resize(path + 1, kUnknown);
  if (file_numbers_[path] == kUnknown) {
    SW_TRY(check_name(path));
    SW_TRY(check_path(text(path), shown(path), shown(name)));
    file_numbers_[path] = static_cast<std::uint32_t>(found_.catalog.files.size());
    found_.catalog.files.emplace_back(text(path));
  }
  return file_numbers_[path];
}

Status Collector::add_storage(const Entry& entry) {
  const Target named = target(entry.name);
  if (named.number == kUnknown) {
    // The storage part may come before the tensors: then its entries wait.
    SW_TRY(take(sizeof(Pending) + entry.origin.size_bytes() + entry.transforms.size_bytes(),
                "its storage entries"));
    Pending waiting{entry,
                    {entry.origin.begin(), entry.origin.end()},
                    {entry.transforms.begin(), entry.transforms.end()}};
    pending_.push_back(std::move(waiting));
    return {};
  }
  if (named.is_set_aside) return {};
  const auto end = checked_add(entry.offset, entry.length);
  if (entry.offset < 0 || entry.length < 0 || !end) {
    return fail(Code::kOutOfBounds,
                " tensor {}: found offset {} and length {} in {}, expected a range of bytes",
                shown(entry.name), entry.offset, entry.length, shown(entry.path));
  }
  const std::uint32_t file = SW_TRY(file_of(entry.path, entry.name));
  if (named.is_tensor) {
    has_entry_without_origin_ |= !entry.has_box;
    SW_TRY(report(place_chunk(found_.catalog.tensors[named.number], named.number, entry, file)));
  } else {
    StoredObject& object = found_.catalog.objects[named.number];
    if (object.file != kNotStored) {
      return fail(Code::kMetadataCorrupt, " object {}: found two storage entries, expected one",
                  shown(entry.name));
    }
    object.file = file;
    object.range = {static_cast<std::uint64_t>(entry.offset),
                    static_cast<std::uint64_t>(entry.length)};
  }
  if (!entry.transforms.empty()) {
    std::uint64_t bytes = sizeof(TransformedItem) + text(entry.name).size();
    for (std::uint32_t id : entry.transforms) bytes += sizeof(std::string) + text(id).size();
    SW_TRY(take(bytes, "its transform_descriptors"));
    TransformedItem item{file, std::string(text(entry.name)), {}};
    for (std::uint32_t id : entry.transforms) item.descriptors.emplace_back(text(id));
    found_.transformed.push_back(std::move(item));
  }
  return {};
}

bool Collector::lies_at(const Box& box, const Entry& entry) {
  return std::equal(box.origin.begin(), box.origin.end(), entry.origin.begin(), entry.origin.end());
}

// The chunks of a tensor ordered by origin, made when the hints do not help.
const std::vector<std::uint32_t>& Collector::order_of(std::uint32_t number) {
  if (orders_.size() <= number) orders_.resize(found_.catalog.tensors.size());
  std::vector<std::uint32_t>& order = orders_[number];
  const ChunkList& chunks = found_.catalog.tensors[number].chunks;
  if (order.empty()) {
    order.resize(chunks.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const Box left = chunks.box(a);
      const Box right = chunks.box(b);
      if (left.origin == right.origin) {
        return std::ranges::lexicographical_compare(left.shape, right.shape);
      }
      return std::ranges::lexicographical_compare(left.origin, right.origin);
    });
  }
  return order;
}

// The chunk at the entry's origin. Of several, the first with elements that has no place yet: an
// empty chunk of an older torch may lie where another one begins.
std::optional<std::size_t> Collector::find_chunk(std::uint32_t number, const Entry& entry) {
  const ChunkList& chunks = found_.catalog.tensors[number].chunks;
  if (!entry.has_box) return chunks.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  if (entry.origin.size() != static_cast<std::size_t>(chunks.axes())) return std::nullopt;
  if (entry.hint < chunks.size()) {
    const Box box = chunks.box(entry.hint);
    if (lies_at(box, entry) && !box.is_empty()) return entry.hint;
  }
  std::optional<std::size_t> found;
  const auto consider = [&](std::size_t index) {
    if (!found || chunks.box(*found).is_empty()) found = index;
  };
  if (chunks.size() <= kFewChunks) {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (lies_at(chunks.box(i), entry)) consider(i);
    }
    return found;
  }
  const std::vector<std::uint32_t>& order = order_of(number);
  const auto first = std::ranges::lower_bound(
      order, entry.origin,
      [](const auto& a, const auto& b) { return std::ranges::lexicographical_compare(a, b); },
      [&](std::uint32_t index) { return chunks.box(index).origin; });
  for (auto at = first; at != order.end() && lies_at(chunks.box(*at), entry); ++at) consider(*at);
  return found;
}

Status Collector::place_chunk(StoredTensor& tensor, std::uint32_t number, const Entry& entry,
                              std::uint32_t file) {
  const auto chunk = find_chunk(number, entry);
  if (!chunk) {
    Dims origin;
    for (std::int64_t value : entry.origin) origin.push_back(value);
    return fail(Code::kMetadataCorrupt,
                " tensor {}: found a storage entry for a chunk at {}, expected it among its "
                "{} chunks; the file was damaged, restore it",
                shown(entry.name), to_string(origin), tensor.chunks.size());
  }
  if (tensor.chunks.file(*chunk) != kNotStored) {
    return fail(Code::kMetadataCorrupt,
                " tensor {}: found two storage entries for chunk {}, expected one",
                tensor.desc.name, to_string(tensor.chunks.box(*chunk)));
  }
  tensor.chunks.set_location(
      *chunk, file,
      {static_cast<std::uint64_t>(entry.offset), static_cast<std::uint64_t>(entry.length)});
  return {};
}

Status Collector::add_original_shape(std::uint32_t name, const Dims& shape) {
  SW_TRY(take(sizeof(std::pair<std::string, Dims>) + text(name).size(), "its original shapes"));
  found_.original_shapes.emplace_back(text(name), shape);
  return {};
}

void Collector::add_planner_path(std::uint32_t name, std::vector<PathStep> path) {
  found_.planner_paths.push_back({std::string(text(name)), std::move(path)});
}

// Chunks without a storage entry: one that repeats another chunk has that one's place, one without
// elements need not be stored, any other is an error. Equal boxes are neighbours in `order`.
Status Collector::resolve_run(StoredTensor& tensor, std::span<const std::uint32_t> run) {
  ChunkList& chunks = tensor.chunks;
  const auto stored =
      std::ranges::find_if(run, [&](std::uint32_t i) { return chunks.file(i) != kNotStored; });
  const Box box = chunks.box(run.front());
  if (stored == run.end() && !box.is_empty()) {
    return fail(Code::kMetadataCorrupt,
                " tensor {}: no storage entry says in which file chunk {} lies; the file is "
                "damaged, restore it",
                tensor.desc.name, to_string(box));
  }
  if (stored == run.end()) return {};
  for (std::uint32_t i : run) {
    if (chunks.file(i) == kNotStored) {
      chunks.set_location(i, chunks.file(*stored), chunks.range(*stored));
    }
  }
  return {};
}

Status Collector::resolve(std::uint32_t number) {
  StoredTensor& tensor = found_.catalog.tensors[number];
  ChunkList& chunks = tensor.chunks;
  const auto count_missing = [&] {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) missing += chunks.file(i) == kNotStored;
    return missing;
  };
  if (count_missing() == 0) return {};
  const std::vector<std::uint32_t> order = order_of(number);
  for (std::size_t begin = 0; begin < order.size();) {
    const Box box = chunks.box(order[begin]);
    std::size_t end = begin + 1;
    while (end < order.size() && chunks.box(order[end]) == box) ++end;
    SW_TRY(report(resolve_run(tensor, std::span(order).subspan(begin, end - begin))));
    begin = end;
  }
  if (count_missing() == 0) return {};
  ChunkList kept(chunks.axes());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (chunks.file(i) != kNotStored) kept.push_back(chunks[i]);
  }
  chunks = std::move(kept);
  return {};
}

void Collector::note_obstacle(std::string_view obstacle) {
  std::vector<std::string>& known = found_.torch_obstacles;
  if (std::ranges::find(known, obstacle) == known.end()) known.emplace_back(obstacle);
}

Result<DcpMetadata> Collector::finish() {
  const std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  for (const Pending& waiting : pending) {
    if (target(waiting.entry.name).number == kUnknown) {
      SW_TRY(report(fail(Code::kMetadataCorrupt,
                         " tensor {}: found a storage entry for a name without a description, "
                         "expected it in state_dict_metadata; the file was damaged, restore it",
                         shown(waiting.entry.name))));
      continue;
    }
    Entry entry = waiting.entry;
    entry.origin = waiting.origin;
    entry.transforms = waiting.transforms;
    SW_TRY(add_storage(entry));
  }
  for (std::size_t i = 0; i < found_.catalog.tensors.size(); ++i) {
    SW_TRY(resolve(static_cast<std::uint32_t>(i)));
  }
  for (const StoredObject& object : found_.catalog.objects) {
    if (object.file != kNotStored) continue;
    SW_TRY(
        report(fail(Code::kMetadataCorrupt,
                    " object {}: no storage entry says in which file it lies; the file is damaged",
                    object.name)));
  }
  std::erase_if(found_.catalog.objects,
                [](const StoredObject& object) { return object.file == kNotStored; });
  if (has_list_as_size_) {
    found_.torch_obstacles.emplace_back(
        "has lists for sizes or offsets, where torch wants torch.Size or tuples");
  }
  if (has_entry_without_origin_) {
    found_.torch_obstacles.emplace_back(
        "has storage entries of tensors without an offset, by which torch looks them up");
  }
  return std::move(found_);
}

}  // namespace shardwright::dcp
