// SPDX-License-Identifier: Apache-2.0
#include "verify/model_source.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/fail.h"
#include "canonical/mlite_naming.h"
#include "convert/prepared_drafts.h"
#include "io/source_files.h"
#include "plan/canonical.h"
#include "verify/option_words.h"
#include "verify/replicas_on_read.h"
#include "verify/view.h"

namespace shardwright {
namespace {

Status compare(ReplicasOnRead& replicas, std::size_t tensor) {
  const Status alike = replicas.compare(tensor);
  if (alike) return {};
  return std::unexpected(in_words_of_options(alike.error()));
}

class MegatronSource : public TensorSource {
 public:
  // `listed`: how many of the plan's tensors are those of layers.
  MegatronSource(View view, std::size_t listed)
      : view_(std::move(view)),
        lowering_(view_.plan),
        replicas_(view_.plan, *view_.checkpoint.files) {
    notes_ = view_.notes;
    list(view_.plan.target, listed);
  }
  [[nodiscard]] const Checkpoint& checkpoint() const override { return view_.checkpoint; }
  [[nodiscard]] const Catalog& stored() const override { return view_.plan.source; }

 protected:
  Status read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) override {
    SW_TRY(compare(replicas_, tensor));
    return read_box(view_.plan, lowering_, *view_.checkpoint.files, tensor, box, bytes);
  }

 private:
  View view_;
  Lowering lowering_;
  ReplicasOnRead replicas_;
};

// What torch_dist would stack is found by the names of its stacks too.
Status add_stacks(Plan& plan) {
  std::vector<DraftTensor> layers;
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorDesc& desc = plan.target.tensors[i].desc;
    names.insert(desc.name);
    if (!is_optimizer_name(desc.name)) layers.push_back({desc, plan.tensors[i], std::nullopt});
  }
  std::vector<DraftTensor> stacks = stack_layers(std::move(layers), LayerKeys::kAutomatic);
  std::erase_if(stacks,
                [&](const DraftTensor& tensor) { return names.contains(tensor.desc.name); });
  take_whole(std::move(stacks), plan);
  return check_plan(plan);
}

class HfNamesSource : public TensorSource {
 public:
  // `plan`: that of the drafts.
  HfNamesSource(Drafting drafting, Plan plan)
      : checkpoint_(std::move(drafting.result.source)),
        plan_(std::move(plan)),
        files_(std::move(drafting.parts.files)),
        artifacts_(std::move(drafting.parts.artifacts)),
        lowering_(plan_),
        replicas_(plan_, *checkpoint_.files) {
    notes_ = std::move(drafting.result.notes);
    list(plan_.target, plan_.target.tensors.size());
  }
  [[nodiscard]] const Checkpoint& checkpoint() const override { return checkpoint_; }
  [[nodiscard]] const Catalog& stored() const override { return plan_.source; }

  [[nodiscard]] std::vector<std::string> documents() const override {
    std::vector<std::string> names;
    for (const TargetFile& file : files_) names.push_back(file.path);
    for (const auto& [path, object] : artifacts_) names.push_back(path);
    std::ranges::sort(names);
    return names;
  }
  [[nodiscard]] Result<std::string> read_document(std::string_view name) const override {
    const auto file = std::ranges::find(files_, name, &TargetFile::path);
    if (file != files_.end()) return file->bytes;
    for (const auto& [path, object] : artifacts_) {
      if (path == name) return bytes_of(object);
    }
    return TensorSource::read_document(name);
  }

 protected:
  Status read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) override {
    SW_TRY(compare(replicas_, tensor));
    return read_box(plan_, lowering_, *checkpoint_.files, tensor, box, bytes);
  }

 private:
  Checkpoint checkpoint_;
  Plan plan_;
  std::vector<TargetFile> files_;
  std::vector<std::pair<std::string, StoredObject>> artifacts_;
  Lowering lowering_;
  ReplicasOnRead replicas_;
};

ConvertRequest request_of(std::string_view path, const ReadOptions& options) {
  ConvertRequest request;
  static_cast<FamilyChoice&>(request) = options.family;
  static_cast<SourceOptions&>(request) = options.source;
  request.input = path;
  request.format = "hf";
  request.as = options.format.format;
  request.dtype = options.dtype;
  request.mtp = options.mtp;
  return request;
}

}  // namespace

Result<std::unique_ptr<TensorSource>> source_by_megatron_names(std::string_view path,
                                                               const ReadOptions& options) {
  Checkpoint checkpoint = SW_TRY(open_checkpoint(path, options.format));
  if (natural_naming(checkpoint, options.family) != Naming::kCanonical) {
    return fail(Code::kNoFamily,
                "{}: the tensors have no names of Megatron or of a Hugging Face model", path);
  }
  ProofOptions proof;
  proof.choice = options.family;
  proof.source = options.source;
  // Padding rows belong to what is loaded: no row is left out, and shapes are those stored.
  const ViewUse use{
      .unfolds_convolutions = false, .compares_replicas = false, .keeps_padding = true};
  View view = SW_TRY(make_view(std::move(checkpoint), Naming::kCanonical, proof, use));
  if (tells_sizes(options.source) && !view.took_sizes) return refuse_sizes(path);
  const std::size_t listed = view.plan.tensors.size();
  SW_TRY(add_stacks(view.plan));
  return std::make_unique<MegatronSource>(std::move(view), listed);
}

Result<std::unique_ptr<TensorSource>> source_by_hf_names(std::string_view path,
                                                         const ReadOptions& options) {
  Drafting drafting = SW_TRY(draft_conversion(request_of(path, options)));
  Plan plan = std::move(drafting.result.plan);  // what is quantised
  plan.source = std::move(drafting.catalog);
  plan.source.objects.clear();
  take_whole(std::move(drafting.parts.tensors), plan);
  SW_TRY(check_plan(plan));
  return std::make_unique<HfNamesSource>(std::move(drafting), std::move(plan));
}

}  // namespace shardwright
