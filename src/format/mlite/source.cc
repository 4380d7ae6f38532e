// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/source.h"

#include <algorithm>

#include "dcp/rank_metadata.h"
#include "format/dcp/dcp_reader.h"
#include "format/mlite/rank_files.h"
#include "layout/mlite_layout.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

class MliteSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "mlite"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true, .has_layers_apart = true, .leftover_ending = kChunkFiles};
  }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    SourceTraits found = checkpoint.location.traits;
    found.has_layers_apart = true;
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
    if (is_mlite(checkpoint.catalog)) return true;
    const auto entries = checkpoint.directory->list("");
    return entries && std::ranges::any_of(*entries, is_mlite_rank_file);
  }
};

}  // namespace

const SourceFormat& mlite_source() {
  static const MliteSource format;
  return format;
}

bool is_mlite(const Checkpoint& checkpoint) {
  return checkpoint.location.format == mlite_source().name() && is_mlite(checkpoint.catalog);
}

}  // namespace shardwright
