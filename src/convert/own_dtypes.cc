// SPDX-License-Identifier: Apache-2.0
#include "convert/own_dtypes.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/notes.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "format/config_edits.h"
#include "model/apply.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// The tensors that the family's model computes with in float32, whatever its weights are: routers'
// biases, decays of state space models. None where the family is not known. The whole model's, of
// which a part may be converted.
Result<std::set<std::string, std::less<>>> names_in_own_dtype(const Drafting& drafting) {
  std::set<std::string, std::less<>> names;
  const Mappings mappings = SW_TRY(load_named_mappings(drafting.request(), drafting.source()));
  if (mappings.empty()) return names;
  Notes told_elsewhere;
  const auto facts =
      find_model_facts(drafting.request(), drafting.source(), mappings, {}, told_elsewhere);
  if (!facts) return names;
  const Checkpoint& source = drafting.source();
  const ModelTensors model =
      SW_TRY(model_tensors(source.catalog, source.hf_config, source.files.get()));
  const auto found = map_from_hf(*facts->mapping, facts->sizes, model.tensors);
  if (!found) return names;
  for (const Block& block : found->blocks) {
    if (found->megatron[block.megatron].pinned_dtype) names.insert(found->hf[block.hf].desc.name);
  }
  for (const TensorDesc& tensor : model.tensors) {
    const auto ends = [&](const std::string& ending) { return tensor.name.ends_with(ending); };
    if (std::ranges::any_of(facts->mapping->float32_names, ends)) names.insert(tensor.name);
  }
  return names;
}

}  // namespace

// A dtype that would round them is not for those.
Status restore_own_dtypes(Drafting& drafting) {
  const DType wanted = drafting.request().dtype.value_or(DType::kF32);
  if (wanted == DType::kF32 || wanted == DType::kF64) return {};
  const auto own = SW_TRY(names_in_own_dtype(drafting));
  std::vector<std::string> kept;
  for (DraftTensor& tensor : drafting.parts.tensors) {
    const DType stored = drafting.catalog.tensors[tensor.recipe.views[0].source].desc.dtype;
    const bool is_cast = stored != tensor.desc.dtype && is_castable_float(stored);
    if (!is_cast || !own.contains(tensor.desc.name)) continue;
    tensor.desc.dtype = stored;
    kept.push_back(tensor.desc.name);
  }
  if (kept.empty()) return {};
  drafting.tell(
      translated("--dtype: {} tensors ({} the first) keep their dtype: the model computes with "
                 "them in float32",
                 kept.size(), kept.front()));
  return {};
}

Status keep_own_dtypes(Drafting& drafting) {
  if (!drafting.request().dtype || !drafting.is_from_hf()) return {};
  const Checkpoint& source = drafting.source();
  const auto model = model_tensors(source.catalog, source.hf_config, source.files.get());
  const bool is_quantised =
      model ? !model->quantised.empty() : has_quantised(drafting.parts.tensors);
  if (is_quantised) {
    return fail(
        Code::kDtypeUnsupported,
        "{}: its weights are stored as values and scales, and --to {} keeps them so: --dtype "
        "would round the scales; leave it out, or take --to hf, which multiplies them out",
        drafting.request().input, drafting.traits().name);
  }
  return restore_own_dtypes(drafting);
}

}  // namespace shardwright
