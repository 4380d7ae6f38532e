// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_form.h"

#include "format/fsdp_dtensor/fsdp_source.h"
#include "format/fsdp_dtensor/fsdp_state.h"
#include "format/fsdp_dtensor/fsdp_steps.h"
#include "layout/fsdp_name.h"

namespace shardwright {
namespace {

class FsdpForm final : public ModelForm {
 public:
  Result<Catalog> megatron_catalog(const Checkpoint& checkpoint, bool accepts_loss,
                                   Notes& notes) const override {
    const Catalog& stored = checkpoint.catalog;
    return accepts_loss ? named_canonically(stored, checkpoint.arguments, notes)
                        : canonical_from_fsdp(stored, checkpoint.arguments, notes);
  }

  Status to_megatron(const ConvertRequest& request, Checkpoint& checkpoint, Catalog& wanted,
                     Notes& notes) const override {
    return undo_fsdp(request, checkpoint, wanted, notes);
  }

  Result<std::string> common_state(const Checkpoint& checkpoint, Notes& notes) const override {
    return make_common_state(checkpoint.catalog, *checkpoint.files, true, notes);
  }

  Result<std::optional<std::int64_t>> iteration(const Checkpoint& checkpoint) const override {
    return read_fsdp_iteration(checkpoint.catalog, *checkpoint.files);
  }

  std::vector<Error> state_defects(const Checkpoint& checkpoint) const override {
    std::vector<Error> defects;
    const Status settings = check_fsdp_settings(checkpoint.catalog);
    if (!settings) defects.push_back(settings.error());
    const auto steps = read_fsdp_steps(checkpoint.catalog, *checkpoint.files);
    // What can't be read at all was told.
    if (!steps && steps.error().code == Code::kStateUnreadable) defects.push_back(steps.error());
    return defects;
  }

  Status check_layers(const Checkpoint& checkpoint) const override {
    return check_fsdp_stages(checkpoint.catalog, checkpoint.arguments);
  }

  ModelOutline outline(const Checkpoint& checkpoint) const override {
    return outline_of_fsdp(checkpoint.catalog, checkpoint.arguments);
  }
};

}  // namespace

ModelOutline outline_of_fsdp(const Catalog& catalog, const Arguments& arguments) {
  const Status layers = check_fsdp_stages(catalog, arguments);
  if (!layers) return {{{"layers", layers.error().message}}, std::nullopt};
  Catalog pieces;  // without their chunks, of which there may be a million
  for (const StoredTensor& tensor : catalog.tensors) {
    // What a copy may have and a model has not is told where it has to be read: such names, pieces
    // that don't go together.
    if (!split_fsdp_name(tensor.desc.name)) continue;
    pieces.tensors.push_back({tensor.desc, ChunkList(tensor.desc.shape.size())});
  }
  const Status whole = check_fsdp_pieces(pieces);
  if (!whole && whole.error().code == Code::kUnmatchedSource) {
    return {{{"pieces", whole.error().message}}, std::nullopt};
  }
  Notes left_out;
  Result<Catalog> model = named_canonically(pieces, arguments, left_out);
  if (!model) return {};
  return {{}, *std::move(model)};
}

const ModelForm& fsdp_form() {
  static const FsdpForm form;
  return form;
}

}  // namespace shardwright
