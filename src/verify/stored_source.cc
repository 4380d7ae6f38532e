// SPDX-License-Identifier: Apache-2.0
#include "verify/stored_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "compare/replicas.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "io/source_files.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

class StoredSource : public TensorSource {
 public:
  StoredSource(Checkpoint checkpoint, std::map<std::string, Error, std::less<>> unreadable)
      : checkpoint_(std::move(checkpoint)) {
    unreadable_ = std::move(unreadable);
    const std::size_t listed = checkpoint_.catalog.tensors.size();
    add_copies(checkpoint_.catalog);
    located_.resize(checkpoint_.catalog.tensors.size());
    notes_ = checkpoint_.notes;
    list(checkpoint_.catalog, listed);
  }
  [[nodiscard]] const Checkpoint& checkpoint() const override { return checkpoint_; }
  [[nodiscard]] const Catalog& stored() const override { return checkpoint_.catalog; }
  [[nodiscard]] std::vector<std::size_t> order() const override {
    std::vector<std::size_t> order = TensorSource::order();
    std::ranges::stable_sort(order, {}, [&](std::size_t tensor) { return first_place(tensor); });
    return order;
  }

 protected:
  Status read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) override {
    const Located* located = SW_TRY(locate(tensor));
    return read_box(located->plan, *located->lowering, *checkpoint_.files, 0, box, bytes);
  }

 private:
  struct Located {
    Plan plan;
    std::optional<Lowering> lowering;
  };

  // File and offset of the first piece; of a tensor without elements, the end.
  [[nodiscard]] std::pair<std::size_t, std::uint64_t> first_place(std::size_t tensor) const {
    const ChunkList& chunks = checkpoint_.catalog.tensors[tensor].chunks;
    std::pair<std::size_t, std::uint64_t> first{checkpoint_.catalog.files.size(), 0};
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Chunk chunk = chunks[i];
      first = std::min(first, {std::size_t{chunk.file}, chunk.range.offset});
    }
    return first;
  }

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

}  // namespace

std::unique_ptr<TensorSource> source_by_stored_names(
    Checkpoint checkpoint, std::map<std::string, Error, std::less<>> unreadable) {
  return std::make_unique<StoredSource>(std::move(checkpoint), std::move(unreadable));
}

}  // namespace shardwright
