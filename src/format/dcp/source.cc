// SPDX-License-Identifier: Apache-2.0
#include "format/dcp/source.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "dcp/rank_metadata.h"
#include "format/chunk_list.h"
#include "format/dcp/dcp_reader.h"
#include "format/files_beside.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

// What metadata.json may name that is a format of its own.
constexpr std::array<std::string_view, 3> kOtherBackends = {"torch_dist", "fsdp_dtensor", "zarr"};

class DcpSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "dcp"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true, .shares_by_name = true, .leftover_ending = kChunkFiles};
  }

  Phrase summary() const override { return phrase("format.dcp"); }

  std::string_view usual_target() const override { return "safetensors"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const std::optional<std::string> list = chunk_list_of(folder);
    if (!list || lacks_metadata_json(folder)) return std::optional<Recognition>();
    const auto backend = SW_TRY(sharded_backend(folder));
    const bool is_another =
        backend && std::ranges::find(kOtherBackends, *backend) != kOtherBackends.end();
    if (is_another) return std::optional<Recognition>();
    return Recognition{Recognition::Strength::kSure, {*list}};
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    const Folder folder = SW_TRY(Folder::open(*checkpoint.directory, ""));
    const auto backend = SW_TRY(sharded_backend(folder));
    if (!backend) return read_dcp(checkpoint, defects);
    const std::string text = SW_TRY(folder.read("metadata.json"));
    static_cast<void>(SW_TRY(parse_json(text, "metadata.json")));
    // Chunks of an unknown backend may lie in their files in any way.
    const std::string named =
        backend->empty() ? "no backend" : translated("the backend '{}'", printable(*backend));
    return fail(Code::kUnsupportedFormat,
                "metadata.json names {}; torch_dist and fsdp_dtensor are read; move the file away "
                "if it does not belong to this checkpoint",
                named);
  }

  Status settle(Checkpoint& checkpoint, Defects& /*defects*/) const override {
    tell_optimizer_beside(checkpoint);
    return {};
  }
};

}  // namespace

const SourceFormat& dcp_source() {
  static const DcpSource format;
  return format;
}

}  // namespace shardwright
