// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dist/source.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "dcp/rank_metadata.h"
#include "format/chunk_list.h"
#include "format/dcp/dcp_reader.h"
#include "format/files_beside.h"
#include "format/near_config.h"
#include "format/prefixed_names.h"
#include "format/torch_dist/single_shards.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

constexpr std::string_view kTorchDistBackend = "torch_dist";

class TorchDistSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "torch_dist"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true,
            .needs_common_state = true,
            .shares_by_name = true,
            .leftover_ending = kChunkFiles};
  }

  Phrase summary() const override { return phrase("format.torch_dist"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    if (lacks_metadata_json(folder)) {
      return Recognition{
          Recognition::Strength::kSure,
          {translated("common.pt beside {} shows Megatron-Core's {}, but metadata.json is missing",
                      kDcpMetadata, kTorchDistBackend)}};
    }
    const auto backend = SW_TRY(sharded_backend(folder));
    if (backend != kTorchDistBackend) return std::optional<Recognition>();
    const std::optional<std::string> list = chunk_list_of(folder);
    Recognition found;
    if (!list) found.strength = Recognition::Strength::kRemains;
    if (list) found.facts.push_back(*list);
    found.facts.push_back(translated("metadata.json names the {} backend", kTorchDistBackend));
    return found;
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    SW_TRY(read_dcp(checkpoint, defects));
    return tell_run_beside(checkpoint);
  }

  Status settle(Checkpoint& checkpoint, Defects& defects) const override {
    if (has_prefixed_names(checkpoint.catalog, kNemoPrefix)) {
      take_prefix_off(kNemoPrefix, checkpoint.catalog);
      checkpoint.torch_dist_prefix = kNemoPrefix;
    }
    const Result<bool> joined = join_single_shards(checkpoint.catalog);
    if (!joined) SW_TRY(defects.report(std::unexpected(joined.error())));
    checkpoint.location.traits.has_layers_apart = joined.value_or(false);
    // verl keeps no arguments, but config.json beside it.
    const bool says_nothing = checkpoint.arguments.empty() && checkpoint.run_config.empty();
    return says_nothing ? read_near_config(checkpoint, defects) : Status();
  }
};

}  // namespace

const SourceFormat& torch_dist_source() {
  static const TorchDistSource format;
  return format;
}

}  // namespace shardwright
