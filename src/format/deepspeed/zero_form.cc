// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_form.h"

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dcp/guarded_storage.h"
#include "format/deepspeed/model_states.h"
#include "format/deepspeed/zero_file_name.h"
#include "io/source_files.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

// The file that has the whole model. Model-parallel ranks, and those of ZeRO 3, have a file each.
std::optional<std::uint32_t> model_file_of(const Catalog& catalog) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < catalog.files.size(); ++i) {
    const auto name = parse_zero_file(catalog.files[i]);
    if (!name || name->holds != ZeroFileName::Holds::kModel) continue;
    if (found || name->data_rank) return std::nullopt;
    found = i;
  }
  return found;
}

// Names in the catalog may have lost what stood before all of them.
const StoredTensor* find_weight(
    const std::unordered_map<std::string_view, const StoredTensor*>& by_name,
    std::string_view name) {
  for (;;) {
    const auto found = by_name.find(name);
    if (found != by_name.end()) return found->second;
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return nullptr;
    name.remove_prefix(dot + 1);
  }
}

// Each weight of the model's file with the float32 one as its master weight.
Catalog pairs_of(const Catalog& catalog, const ModelStates& model, std::uint32_t file,
                 SourceFiles& files) {
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) by_name.emplace(tensor.desc.name, &tensor);
  Catalog pairs;
  for (const StateTensor& tensor : model.module) {
    const StoredTensor* const weight = find_weight(by_name, tensor.name);
    if (weight == nullptr || !(weight->desc.shape == tensor.place.shape)) continue;
    if (tensor.place.flips.any() || weight->chunks.empty() || weight->chunks.file(0) == file)
      continue;
    expect_record(files, file, tensor.place, tensor.name);
    ChunkList chunks(tensor.place.shape.size());
    chunks.push_back(
        {Box::whole(tensor.place.shape), file, tensor.place.range, tensor.place.strides});
    pairs.tensors.push_back(
        {{tensor.name, tensor.place.dtype, tensor.place.shape}, std::move(chunks), Encoding::kRaw});
    StoredTensor master = *weight;
    master.desc.name = join_state_name(kStateKinds.front(), tensor.name);
    pairs.tensors.push_back(std::move(master));
  }
  return pairs;
}

class ZeroForm final : public ModelForm {
 public:
  Result<WeightPairs> weights_stored_twice(const Checkpoint& checkpoint,
                                           const Catalog& catalog) const override {
    const auto number = model_file_of(checkpoint.catalog);
    if (!number) return WeightPairs();
    const auto file = SW_TRY(checkpoint.files->get(*number));
    const ModelStates model = SW_TRY(read_model_states(*file));
    if (model.model_ranks.value_or(1) > 1) return WeightPairs();
    return WeightPairs{pairs_of(catalog, model, *number, *checkpoint.files),
                       checkpoint.catalog.files[*number]};
  }
};

}  // namespace

const ModelForm& zero_form() {
  static const ZeroForm form;
  return form;
}

}  // namespace shardwright
