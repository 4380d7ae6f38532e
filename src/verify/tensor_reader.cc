// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "compare/replicas.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "exec/tile_reader.h"
#include "io/source_files.h"
#include "plan/canonical.h"
#include "shardwright/reader.h"
#include "verify/view.h"

namespace shardwright {
namespace {

Status read_tile(const Plan& plan, const Lowering& lowering, SourceFiles& files, std::size_t tensor,
                 const Box& box, std::span<std::byte> bytes) {
  if (bytes.empty()) return {};
  constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(kScratchBytes);
  TileReader reader(plan, lowering, files, std::span(scratch.get(), kScratchBytes));
  const Part part = dense_part(box, bytes.data(), bytes_of(plan.target.tensors[tensor].desc.dtype));
  return reader.read(tensor, box, bytes, std::span(&part, 1));
}

}  // namespace

// What is read from, and what to know of it.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  [[nodiscard]] virtual const Checkpoint& checkpoint() const = 0;
  [[nodiscard]] virtual const Catalog& stored() const = 0;
  [[nodiscard]] virtual Status read(std::size_t tensor, const Box& box,
                                    std::span<std::byte> bytes) = 0;

  [[nodiscard]] Status read_checked(std::size_t tensor, const Box& box,
                                    std::span<std::byte> bytes) {
    if (tensor >= descs_.size()) {
      return fail(Code::kOutOfBounds, "there is no tensor {}: the checkpoint has {}", tensor,
                  listed_);
    }
    const TensorDesc& desc = descs_[tensor];
    const Box checked = SW_TRY(make_box(box.origin, box.shape, desc.shape));
    const std::int64_t wanted = SW_TRY(byte_count(checked.shape, desc.dtype));
    if (std::cmp_not_equal(wanted, bytes.size())) {
      return fail(Code::kOutOfBounds, "{}: {} bytes of memory were given for {}, which has {}",
                  desc.name, bytes.size(), to_string(checked), wanted);
    }
    return read(tensor, checked, bytes);
  }

  [[nodiscard]] std::span<const TensorDesc> tensors() const {
    return std::span(descs_).first(listed_);
  }
  [[nodiscard]] const TensorDesc& desc(std::size_t tensor) const { return descs_[tensor]; }
  [[nodiscard]] std::span<const std::string> objects() const { return objects_; }

  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
  }

  [[nodiscard]] Result<std::string> read_object(std::size_t index) const {
    const Catalog& catalog = stored();
    if (index >= catalog.objects.size()) {
      return fail(Code::kOutOfBounds, "there is no entry {} beside the tensors: there are {}",
                  index, catalog.objects.size());
    }
    const StoredObject& object = catalog.objects[index];
    const auto file = SW_TRY(checkpoint().files->get(object.file));
    // Before memory is taken for what a hostile length says.
    if (object.range.offset > file->size() ||
        object.range.length > file->size() - object.range.offset) {
      return fail(Code::kShortRead, "{}: ends before entry {}, which lies at bytes {} to {}",
                  file->name(), object.name, object.range.offset,
                  object.range.offset + object.range.length);
    }
    std::string bytes(static_cast<std::size_t>(object.range.length), '\0');
    SW_TRY(file->read_at(object.range.offset, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  std::vector<std::string> take_notes() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(notes_, {});
  }

 protected:
  // Once everything is known.
  // `listed`: how many of the tensors are the checkpoint's; others are found by name only.
  void list(const Catalog& tensors, std::size_t listed) {
    listed_ = listed;
    for (const StoredTensor& tensor : tensors.tensors) descs_.push_back(tensor.desc);
    for (std::size_t i = 0; i < descs_.size(); ++i) numbers_.emplace(descs_[i].name, i);
    for (const StoredObject& object : stored().objects) objects_.push_back(object.name);
  }

  std::mutex mutex_;  // of what is found out while reading
  std::vector<std::string> notes_;

 private:
  std::vector<TensorDesc> descs_;
  std::size_t listed_ = 0;
  std::vector<std::string> objects_;
  std::unordered_map<std::string_view, std::size_t> numbers_;
};

namespace {

// By its own names. A tensor is located and proven whole when it is first read.
class StoredSource : public TensorSource {
 public:
  explicit StoredSource(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
    const std::size_t listed = checkpoint_.catalog.tensors.size();
    add_copies(checkpoint_.catalog);
    located_.resize(checkpoint_.catalog.tensors.size());
    notes_ = checkpoint_.notes;
    list(checkpoint_.catalog, listed);
  }
  [[nodiscard]] const Checkpoint& checkpoint() const override { return checkpoint_; }
  [[nodiscard]] const Catalog& stored() const override { return checkpoint_.catalog; }
  Status read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) override {
    const Located* located = SW_TRY(locate(tensor));
    return read_tile(located->plan, *located->lowering, *checkpoint_.files, 0, box, bytes);
  }

 private:
  struct Located {
    Plan plan;
    std::optional<Lowering> lowering;
  };

  // A name that a tensor is stored under finds the copy of that name, or the
  // tensor, of which that name has a part only.
  static void add_copies(Catalog& catalog) {
    for (std::size_t t = 0, listed = catalog.tensors.size(); t < listed; ++t) {
      for (std::size_t i = 0; i < catalog.tensors[t].copies.size(); ++i) {
        const StoredTensor& tensor = catalog.tensors[t];
        if (tensor.copies[i].name == tensor.desc.name) continue;
        StoredTensor copy = tensor_of_copy(tensor, i);
        if (!check_coverage(copy)) {
          copy = tensor;
          copy.desc.name = tensor.copies[i].name;
        }
        catalog.tensors.push_back(std::move(copy));
      }
    }
  }

  // Of one tensor, where it is stored in several places.
  Status check_copies(const Catalog& source) {
    const StoredTensor& tensor = source.tensors.front();
    if (tensor.copies.empty()) return {};
    Defects first;
    SW_TRY(check_named_replicas(checkpoint_, source, first));
    SW_TRY(check_replicas(source, ReplicaCheck::kAll, *checkpoint_.files, first));
    return {};
  }

  Result<const Located*> locate(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    if (located_[index]) return located_[index].get();
    auto located = std::make_unique<Located>();
    Catalog& source = located->plan.source;
    source.tensors.push_back(checkpoint_.catalog.tensors[index]);
    // Lent for messages: there may be as many files as tensors.
    source.files.swap(checkpoint_.catalog.files);
    Result<std::vector<std::string>> told = locate_items(source, *checkpoint_.files);
    const Status alike = told ? check_copies(source) : Status();
    source.files.swap(checkpoint_.catalog.files);
    std::ranges::move(SW_TRY(std::move(told)), std::back_inserter(notes_));
    SW_TRY(alike);
    SW_TRY(check_coverage(source.tensors.front()));
    const TensorDesc& desc = source.tensors.front().desc;
    located->plan.target.tensors.push_back({desc, ChunkList(desc.shape.size())});
    located->plan.tensors.push_back({{view_of_canonical({desc, 0, -1})}, std::nullopt, 0.0});
    located->lowering.emplace(located->plan);
    located_[index] = std::move(located);
    return located_[index].get();
  }

  Checkpoint checkpoint_;
  std::vector<std::unique_ptr<Located>> located_;
};

// By Megatron's names, one tensor per layer, whatever the format. The plan is proven when it is
// opened.
class CanonicalSource : public TensorSource {
 public:
  explicit CanonicalSource(View view) : view_(std::move(view)), lowering_(view_.plan) {
    notes_ = view_.notes;
    list(view_.plan.target, view_.plan.target.tensors.size());
  }
  [[nodiscard]] const Checkpoint& checkpoint() const override { return view_.checkpoint; }
  [[nodiscard]] const Catalog& stored() const override { return view_.plan.source; }
  Status read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) override {
    return read_tile(view_.plan, lowering_, *view_.checkpoint.files, tensor, box, bytes);
  }

 private:
  View view_;
  Lowering lowering_;
};

}  // namespace

Result<TensorReader> TensorReader::open(std::string_view path, Naming naming,
                                        const FormatChoice& choice) {
  Checkpoint checkpoint = SW_TRY(open_checkpoint(path, choice));
  if (naming == Naming::kStored) {
    return TensorReader(std::make_unique<StoredSource>(std::move(checkpoint)));
  }
  if (natural_naming(checkpoint) != Naming::kCanonical) {
    return fail(Code::kNoFamily,
                "{}: the tensors have no names of Megatron or of a Hugging Face model", path);
  }
  ProofOptions options;
  // Padding rows belong to what is loaded: no row is left out, and shapes are those stored.
  options.vocab_size = std::numeric_limits<std::int64_t>::max();
  View view =
      SW_TRY(make_view(std::move(checkpoint), naming, options, {StateUse::kAsStored, false}));
  return TensorReader(std::make_unique<CanonicalSource>(std::move(view)));
}

TensorReader::TensorReader(std::unique_ptr<TensorSource> source) : source_(std::move(source)) {}
TensorReader::TensorReader(TensorReader&& other) noexcept = default;
TensorReader& TensorReader::operator=(TensorReader&& other) noexcept = default;
TensorReader::~TensorReader() = default;

const Location& TensorReader::location() const { return source_->checkpoint().location; }
std::span<const TensorDesc> TensorReader::tensors() const { return source_->tensors(); }
std::optional<std::size_t> TensorReader::find(std::string_view name) const {
  return source_->find(name);
}
const TensorDesc& TensorReader::desc(std::size_t tensor) const { return source_->desc(tensor); }
bool TensorReader::has_megatron_names() const {
  return shardwright::has_megatron_names(source_->stored());
}
Status TensorReader::read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) {
  return source_->read_checked(tensor, box, bytes);
}
std::span<const std::string> TensorReader::objects() const { return source_->objects(); }
Result<std::string> TensorReader::read_object(std::size_t object) {
  return source_->read_object(object);
}
Status TensorReader::check_unchanged() const {
  return source_->checkpoint().files->check_unchanged();
}
std::vector<std::string> TensorReader::take_notes() { return source_->take_notes(); }

}  // namespace shardwright
