// SPDX-License-Identifier: Apache-2.0
#include "format/zarr/source.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "format/files_beside.h"
#include "format/prefixed_names.h"
#include "format/zarr/zarr_reader.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

// Each may be a request to a server.
constexpr std::size_t kMostLooks = 32;

class ZarrSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "zarr"; }

  SourceTraits traits() const override {
    return {.needs_common_state = true, .shares_by_name = true, .records = Records::kNone};
  }

  Phrase summary() const override { return phrase("format.zarr"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const auto backend = SW_TRY(sharded_backend(folder));
    if (backend == "zarr") {
      return Recognition{Recognition::Strength::kSure, {"metadata.json names the zarr backend"}};
    }
    if (backend && !backend->empty()) return std::optional<Recognition>();
    // It keeps one folder per tensor, and others of objects; a few looks are enough.
    std::size_t looks = 0;
    for (const DirectoryEntry& entry : folder.entries()) {
      if (!entry.is_directory || entry.problem || entry.name.starts_with("mp_rank_")) continue;
      if (folder.has(entry.name + "/.zarray")) {
        return Recognition{Recognition::Strength::kSure,
                           {translated("{} holds a .zarray", entry.name)}};
      }
      if (++looks == kMostLooks) break;
    }
    return std::optional<Recognition>();
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    SW_TRY(read_zarr(checkpoint, defects));
    return tell_run_beside(checkpoint);
  }

  Status settle(Checkpoint& checkpoint, Defects& /*defects*/) const override {
    if (!has_prefixed_names(checkpoint.catalog, kNemoPrefix)) return {};
    take_prefix_off(kNemoPrefix, checkpoint.catalog);
    checkpoint.torch_dist_prefix = kNemoPrefix;
    return {};
  }
};

}  // namespace

const SourceFormat& zarr_source() {
  static const ZarrSource format;
  return format;
}

}  // namespace shardwright
