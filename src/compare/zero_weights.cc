// SPDX-License-Identifier: Apache-2.0
#include "compare/zero_weights.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "compare/master_weights.h"
#include "dcp/guarded_storage.h"
#include "format/deepspeed/model_states.h"
#include "format/deepspeed/zero_file_name.h"
#include "io/source_files.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 2> kFormats = {"deepspeed_zero", "deepspeed_universal"};

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

}  // namespace

Status check_zero_weights(const Checkpoint& checkpoint, const Catalog& catalog, ReplicaCheck check,
                          Defects& defects, const Workers& workers) {
  const std::string& format = checkpoint.location.format;
  if (check == ReplicaCheck::kNone || std::ranges::find(kFormats, format) == kFormats.end()) {
    return {};
  }
  const auto number = model_file_of(checkpoint.catalog);
  if (!number) return {};
  const auto file = SW_TRY(checkpoint.files->get(*number));
  const ModelStates model = SW_TRY(read_model_states(*file));
  if (model.model_ranks.value_or(1) > 1) return {};
  const Catalog pairs = pairs_of(catalog, model, *number, *checkpoint.files);
  Defects differing(Defects::Policy::kCollect);
  SW_TRY(check_master_weights(pairs, *checkpoint.files, differing, workers));
  const std::vector<Error>& found = differing.found();
  if (found.empty()) return {};
  const std::string& first = found.front().message;
  return defects.report(
      fail(Code::kZeroLayout,
           "{}: {} of its {} weights are not the optimizer's, rounded (the first: {}); keep the "
           "files of one save, or take the optimizer's with convert's --check-replicas none",
           checkpoint.catalog.files[*number], found.size(), pairs.tensors.size() / 2,
           first.substr(0, first.find(": "))));
}

}  // namespace shardwright
