// SPDX-License-Identifier: Apache-2.0
#include "convert/carried_documents.h"

#include <algorithm>

#include "base/fail.h"
#include "format/config_edits.h"
#include "format/model_config.h"
#include "format/targets.h"
#include "layout/layer_name.h"
#include "model/interleaved_gates.h"
#include "plan/canonical.h"
#include "state/document_names.h"
#include "state/run_config_edits.h"

namespace shardwright {
namespace {

class Mending {
 public:
  Mending(const ConvertRequest& request, const Checkpoint& source,
          std::span<const Component> components, TargetParts& parts,
          std::vector<std::string>& notes)
      : request_(request),
        source_(source),
        components_(components),
        parts_(parts),
        notes_(notes),
        is_from_hf_(source.location.traits.is_hf_model) {}

  Status run() {
    if (request_.upcycle) leave_dense_model();
    SW_TRY(mend_config());
    return mend_run_config();
  }

 private:
  // What Hugging Face says of the dense model is not true of one with experts.
  void leave_dense_model() {
    const std::string keys = fmt::format("{}{}", parts_.folder, kCarriedKeysFile);
    erase_artifact(keys);
    std::erase_if(parts_.files, [&](const TargetFile& file) { return file.path == keys; });
    if (erase_artifact(fmt::format("{}hf/{}", parts_.folder, kHfConfigFile))) {
      notes_.emplace_back(
          "hf/config.json is left out: it is that of the dense model; --hf-config names one of a "
          "model with experts when this is converted to hf");
    }
  }

  // A Hugging Face model that becomes Megatron's as it is keeps its config.json as it is.
  Status mend_config() {
    const std::string path = fmt::format("{}hf/{}", parts_.folder, kHfConfigFile);
    const std::optional<std::string> config = text_of(path, source_.hf_config);
    if (!config) return {};
    ConfigEdits edits;
    edits.is_dequantised = !has_quantised(parts_.tensors);
    edits.vocabulary = request_.extend_vocab;
    if (edits.is_dequantised) leave_out(fmt::format("{}hf/{}", parts_.folder, kModelOptFile));
    if (request_.dtype || !is_from_hf_) edits.dtype = written_dtype(parts_.tensors);
    edits.scope = request_.dtype ? DtypeScope::kAll : DtypeScope::kSame;
    const std::string edited = SW_TRY(edited_config(*config, edits, notes_));
    if (edited.empty()) return {};
    put(path, edited);
    return {};
  }

  Status mend_run_config() {
    const std::string path = fmt::format("{}{}", parts_.folder, kRunConfigFile);
    const std::optional<std::string> yaml = text_of(path, source_.run_config);
    if (!yaml) return {};
    if (SW_TRY(interleaved_gates(parts_.arguments)).are_any()) {
      erase_artifact(path);
      std::erase_if(parts_.files, [&](const TargetFile& file) { return file.path == path; });
      notes_.emplace_back(
          "run_config.yaml is left out: whoever reads it takes the gates of experts for "
          "contiguous, "
          "and here they lie in blocks (moe_mlp_glu_interleave_size)");
      return {};
    }
    RunConfigEdits edits;
    edits.layout = parts_.layout;
    edits.components = components_;
    edits.model = parts_.model_edits;
    edits.dtype = changed_dtype();
    edits.vocabulary = request_.extend_vocab;
    edits.vocabulary_divisor = request_.make_vocab_size_divisible_by;
    edits.format = traits_of(request_.format).backend;
    edits.has_optimizer = std::ranges::any_of(parts_.tensors, [](const DraftTensor& tensor) {
      return is_optimizer_name(tensor.desc.name);
    });
    edits.has_prediction_layers = std::ranges::any_of(
        parts_.tensors,
        [](const DraftTensor& tensor) { return is_prediction_layer(tensor.desc.name); });
    edits.has_rng = std::ranges::any_of(parts_.copied_objects, [](const StoredObject& object) {
      return object.name.starts_with("rng_state");
    });
    const Result<std::string> edited = edited_run_config(*yaml, edits);
    const bool was_carried = erase_artifact(path);
    if (!edited) {
      if (!was_carried) return {};  // made for the new one, of settings without a model
      notes_.push_back(
          translated("run_config.yaml is left out: it would not be true of the new checkpoint, ") +
          edited.error().message);
      return {};
    }
    put(path, *edited);
    if (!is_from_hf_ && *edited != *yaml) {
      notes_.emplace_back("run_config.yaml gets the sizes and types of the new checkpoint");
    }
    return {};
  }

  // The weights', where it is not the source's any more.
  [[nodiscard]] std::optional<DType> changed_dtype() const {
    return request_.dtype ? written_dtype(parts_.tensors) : std::nullopt;
  }

  // Of a file of the target that is known, or carried from what was read as `carried`.
  [[nodiscard]] std::optional<std::string> text_of(const std::string& path,
                                                   const std::string& carried) const {
    const auto file = std::ranges::find(parts_.files, path, &TargetFile::path);
    if (file != parts_.files.end()) return file->bytes;
    const bool is_carried =
        std::ranges::any_of(parts_.artifacts, [&](const auto& part) { return part.first == path; });
    return is_carried && !carried.empty() ? std::optional(carried) : std::nullopt;
  }

  bool erase_artifact(const std::string& path) {
    return std::erase_if(parts_.artifacts, [&](const auto& part) { return part.first == path; }) >
           0;
  }

  void leave_out(const std::string& path) {
    if (erase_artifact(path)) {
      notes_.push_back(translated("{} is left out: no tensor is quantised now", path));
    }
  }

  void put(const std::string& path, const std::string& bytes) {
    erase_artifact(path);
    std::erase_if(parts_.files, [&](const TargetFile& file) { return file.path == path; });
    parts_.files.push_back({path, bytes});
  }

  const ConvertRequest& request_;
  const Checkpoint& source_;
  std::span<const Component> components_;
  TargetParts& parts_;
  std::vector<std::string>& notes_;
  bool is_from_hf_;
};

}  // namespace

Status mend_documents(const ConvertRequest& request, const Checkpoint& source,
                      std::span<const Component> components, TargetParts& parts,
                      std::vector<std::string>& notes) {
  if (traits_of(request.format).names != TargetNames::kMegatron) return {};
  return Mending(request, source, components, parts, notes).run();
}

}  // namespace shardwright
