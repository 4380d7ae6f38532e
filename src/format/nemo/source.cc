// SPDX-License-Identifier: Apache-2.0
#include "format/nemo/source.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "dcp/rank_metadata.h"
#include "format/nemo/nemo_context.h"
#include "format/nemo/nemo_reader.h"
#include "format/prefixed_names.h"
#include "layout/texts.h"
#include "state/listed_optimizer.h"

namespace shardwright {
namespace {

class NemoOneSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "nemo1"; }

  SourceTraits traits() const override {
    return {.is_of_ranks = true,
            .has_layers_apart = true,
            .holds_extras = false,
            .records = Records::kFiles};
  }

  Phrase summary() const override { return phrase("format.nemo1"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const std::string weights = nemo_weights_in(folder);
    if (weights.empty()) return std::optional<Recognition>();
    return Recognition{Recognition::Strength::kSure,
                       {translated("{} holds weights of NeMo 1", weights)}};
  }

  bool reads_file(std::string_view name) const override { return name.ends_with(".nemo"); }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_nemo_one(checkpoint, defects);
  }
};

class NemoTwoSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "nemo2"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true, .needs_common_state = true, .leftover_ending = kChunkFiles};
  }

  Phrase summary() const override { return phrase("format.nemo2"); }

  std::string_view usual_target() const override { return "hf"; }

  // Scripts knew it as what it lies in before it had a name.
  std::string_view shown_container() const override { return "torch_dist"; }

  bool may_lie_in(const SourceTraits& found) const override { return found.has_chunk_list; }

  Status open(Checkpoint& /*checkpoint*/, Defects& /*defects*/) const override {
    return {};  // it is found as what it lies in
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    // Megatron-Bridge, whose Wan has such names too, keeps its own configuration beside them.
    return checkpoint.run_config.empty() && has_prefixed_names(checkpoint.catalog, kNemoPrefix);
  }

  Status settle(Checkpoint& checkpoint, Defects& defects) const override {
    take_prefix_off(kNemoPrefix, checkpoint.catalog);
    checkpoint.notes.push_back(
        translated("all names begin with {}, as NeMo 2's do; it is taken off", kNemoPrefix));
    std::string& state = checkpoint.common_state;
    if (!state.empty()) state = SW_TRY(without_optimizer_list(std::move(state)));
    return read_nemo_context(checkpoint, defects);
  }
};

}  // namespace

const SourceFormat& nemo1_source() {
  static const NemoOneSource format;
  return format;
}

const SourceFormat& nemo2_source() {
  static const NemoTwoSource format;
  return format;
}

}  // namespace shardwright
