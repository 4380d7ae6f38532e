// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/source.h"

#include <algorithm>

#include "dcp/rank_metadata.h"
#include "format/dcp/dcp_reader.h"
#include "format/mlite/dist_opt_names.h"
#include "format/mlite/rank_files.h"
#include "layout/mlite_layout.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

class MliteSource : public SourceFormat {
 public:
  std::string_view name() const override { return "mlite"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true, .has_layers_apart = true, .leftover_ending = kChunkFiles};
  }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    SourceTraits found = checkpoint.location.traits;
    found.has_layers_apart = true;
    found.shares_by_name = false;
    return found;
  }

  Phrase summary() const override { return phrase("format.mlite"); }

  std::string_view usual_target() const override { return "safetensors"; }

  bool may_lie_in(const SourceTraits& files) const override {
    return files.has_chunk_list && !files.needs_common_state;
  }

  // Scripts knew it as plain DCP before it had a name.
  std::string_view shown_container() const override { return "dcp"; }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_dcp(checkpoint, defects);
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    if (has_mlite_names(checkpoint.catalog)) return true;
    const auto entries = checkpoint.directory->list("");
    return entries && std::ranges::any_of(*entries, is_mlite_rank_file);
  }
};

// What its optimizer `dist_opt`, the usual one, saves by Megatron-Core.
class MliteDistOptSource final : public MliteSource {
 public:
  std::string_view name() const override { return "mlite_dist_opt"; }

  SourceTraits traits() const override {
    SourceTraits traits = MliteSource::traits();
    traits.needs_common_state = true;
    return traits;
  }

  Phrase summary() const override { return phrase("format.mlite_dist_opt"); }

  bool may_lie_in(const SourceTraits& files) const override {
    return files.has_chunk_list && files.needs_common_state;
  }

  // Scripts knew it as that before it had a name.
  std::string_view shown_container() const override { return "torch_dist"; }

  Status open(Checkpoint& /*checkpoint*/, Defects& /*defects*/) const override {
    return {};  // it is found as what it lies in
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    return has_dist_opt_names(checkpoint.catalog);
  }

  Status settle(Checkpoint& checkpoint, Defects& /*defects*/) const override {
    name_as_mlite(checkpoint.catalog);
    return {};
  }
};

}  // namespace

const SourceFormat& mlite_source() {
  static const MliteSource format;
  return format;
}

const SourceFormat& mlite_dist_opt_source() {
  static const MliteDistOptSource format;
  return format;
}

bool is_mlite(const Checkpoint& checkpoint) {
  const std::string& format = checkpoint.location.format;
  return (format == mlite_source().name() || format == mlite_dist_opt_source().name()) &&
         has_mlite_names(checkpoint.catalog);
}

}  // namespace shardwright
