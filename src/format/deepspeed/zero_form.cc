// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_form.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "codec/torch_file.h"
#include "dcp/guarded_storage.h"
#include "format/deepspeed/adam_groups.h"
#include "format/deepspeed/model_states.h"
#include "format/deepspeed/optimizer_states.h"
#include "format/deepspeed/universal_reader.h"
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

std::optional<std::uint32_t> first_file(const Catalog& catalog, ZeroFileName::Holds what) {
  for (std::uint32_t i = 0; i < catalog.files.size(); ++i) {
    const auto name = parse_zero_file(catalog.files[i]);
    if (name && name->holds == what) return i;
  }
  return std::nullopt;
}

// Newer versions make the states in the first step; one that overflows is none.
Result<bool> has_made_steps(const Checkpoint& checkpoint, std::uint32_t model) {
  const auto file = SW_TRY(checkpoint.files->get(model));
  const ModelStates states = SW_TRY(read_model_states(*file));
  return states.steps.value_or(0) > states.skipped.value_or(0);
}

// ds_to_universal keeps what is not a parameter's in a file of its own.
Result<bool> has_universal_adam(const Directory& directory) {
  const std::string path = fmt::format("{}/optimizer_state.pt", kUniversalFolder);
  const auto file = directory.open(path);
  if (!file && file.error().code == Code::kNotFound) return false;
  if (!file) return std::unexpected(file.error());
  const TorchFile torch = SW_TRY(TorchFile::open(**file));
  return are_adam_groups(torch.root().find("param_groups"));
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

  Result<bool> keeps_two_moments(const Checkpoint& checkpoint) const override {
    const auto model = first_file(checkpoint.catalog, ZeroFileName::Holds::kModel);
    if (!model || !SW_TRY(has_made_steps(checkpoint, *model))) return false;
    const auto optimizer = first_file(checkpoint.catalog, ZeroFileName::Holds::kOptimizer);
    if (!optimizer) return has_universal_adam(*checkpoint.directory);
    const auto file = SW_TRY(checkpoint.files->get(*optimizer));
    return SW_TRY(read_optimizer_states(*file)).is_adam;
  }
};

}  // namespace

const ModelForm& zero_form() {
  static const ZeroForm form;
  return form;
}

}  // namespace shardwright
