// SPDX-License-Identifier: Apache-2.0
#include "format/hf_dcp/source.h"

#include <algorithm>
#include <array>

#include "dcp/rank_metadata.h"
#include "format/dcp/dcp_reader.h"
#include "format/files_beside.h"
#include "format/near_config.h"
#include "layout/module_wrappers.h"
#include "layout/texts.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// Whether some tensor is called as a Hugging Face model's embedding, head or attention is, or as
// trainers of such models call it, whatever stands before its name. Enough to look for the family.
bool has_hf_names(const Catalog& catalog) {
  // The last ones are of models whose embedding is lost.
  constexpr std::array<std::string_view, 10> kEndings = {
      "embed_tokens.weight",     "tok_embeddings.weight", "wte.weight",
      "word_embeddings.weight",  "embeddings.weight",     "embed_in.weight",
      "self_attn.o_proj.weight", "attention.wo.weight",   "attn.output_proj.weight",
      "lm_head.weight"};
  return std::ranges::any_of(catalog.tensors, [&](const StoredTensor& tensor) {
    const std::string name = without_module_wrappers(tensor.desc.name);
    return std::ranges::any_of(kEndings, [&](std::string_view ending) {
      return name.ends_with(ending) &&
             (name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.');
    });
  });
}

class HfDcpSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "hf_dcp"; }

  SourceTraits traits() const override {
    return {.is_hf_model = true,
            .is_named_by_family = true,
            .has_chunk_list = true,
            .leftover_ending = kChunkFiles};
  }

  Phrase summary() const override { return phrase("format.hf_dcp"); }

  std::string_view usual_target() const override { return "hf"; }

  // Scripts knew it as plain DCP before it had a name.
  std::string_view shown_container() const override { return "dcp"; }

  bool may_lie_in(const SourceTraits& files) const override {
    return files.has_chunk_list && !files.needs_common_state;
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_dcp(checkpoint, defects);
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    return !has_megatron_names(checkpoint.catalog) && has_hf_names(checkpoint.catalog);
  }

  SourceTraits traits_of(const Checkpoint& /*checkpoint*/) const override { return traits(); }

  Status settle(Checkpoint& checkpoint, Defects& defects) const override {
    tell_optimizer_beside(checkpoint);
    return read_near_config(checkpoint, defects);
  }
};

}  // namespace

const SourceFormat& hf_dcp_source() {
  static const HfDcpSource format;
  return format;
}

}  // namespace shardwright
