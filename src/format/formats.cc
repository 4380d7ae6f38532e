// SPDX-License-Identifier: Apache-2.0
#include "format/formats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "format/consolidated/source.h"
#include "format/dcp/source.h"
#include "format/deepspeed/source.h"
#include "format/fsdp_dtensor/source.h"
#include "format/fsdp_ranks/source.h"
#include "format/hf/source.h"
#include "format/hf_dcp/source.h"
#include "format/legacy/source.h"
#include "format/mimo/source.h"
#include "format/mlite/source.h"
#include "format/nemo/source.h"
#include "format/peft/source.h"
#include "format/safetensors/source.h"
#include "format/torch_dcp/source.h"
#include "format/torch_dist/source.h"
#include "format/torch_files/source.h"
#include "format/zarr/source.h"

namespace shardwright {

std::span<const SourceFormat* const> source_formats() {
  static const std::array<const SourceFormat*, 21> formats = {
      &torch_dist_source(),
      &fsdp_dtensor_source(),
      &torch_dcp_source(),
      &zarr_source(),
      &legacy_source(),
      &dcp_source(),
      &hf_source(),
      &torch_files_source(),
      &fsdp_ranks_source(),
      &consolidated_source(),
      &deepspeed_zero_source(),
      &deepspeed_universal_source(),
      &deepspeed_pipe_source(),
      &nemo1_source(),
      &nemo2_source(),
      &mimo_source(),
      &mlite_source(),
      &mlite_dist_opt_source(),
      &safetensors_source(),
      &hf_dcp_source(),
      &peft_source(),
  };
  return formats;
}

Result<std::optional<Recognition>> SourceFormat::recognise(const Folder& /*folder*/) const {
  return std::optional<Recognition>();
}

bool SourceFormat::reads_file(std::string_view /*name*/) const { return false; }

bool SourceFormat::may_lie_in(const SourceTraits& /*found*/) const { return false; }

bool SourceFormat::is_spoken_in(const Checkpoint& /*checkpoint*/) const { return false; }

Status SourceFormat::settle(Checkpoint& /*checkpoint*/, Defects& /*defects*/) const { return {}; }

SourceTraits SourceFormat::traits_of(const Checkpoint& checkpoint) const {
  return checkpoint.location.traits;
}

void SourceFormat::add_findings(const Checkpoint& /*checkpoint*/, Diagnosis& /*diagnosis*/) const {}

std::vector<std::pair<std::string, Error>> SourceFormat::defects_beside(
    const Checkpoint& /*checkpoint*/) const {
  return {};
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const SourceFormat* format : source_formats()) names.push_back(format->name());
  return names;
}

const SourceFormat* find_source_format(std::string_view name) {
  for (const SourceFormat* format : source_formats()) {
    if (format->name() == name) return format;
  }
  return nullptr;
}

const ModelForm& form_of(const Checkpoint& checkpoint) {
  const SourceFormat* const format = find_source_format(checkpoint.location.format);
  return format == nullptr ? ordinary_form() : format->form();
}

Status check_format_name(const FormatChoice& choice) {
  if (choice.format.empty() || find_source_format(choice.format) != nullptr) return {};
  const std::vector<std::string_view> names = format_names();
  const std::string_view meant = nearest_of(choice.format, names);
  return fail(Code::kUsage, "{} '{}': no such format; give one of {}{}", choice.flag,
              printable(choice.format), fmt::join(names, ", "),
              meant.empty() ? "" : translated("; did you mean {}?", meant));
}

const SourceFormat& refined_format(const SourceFormat& found, const Checkpoint& checkpoint) {
  const auto formats = source_formats();
  const auto spoken = std::ranges::find_if(formats, [&](const SourceFormat* format) {
    return format->may_lie_in(checkpoint.location.traits) && format->is_spoken_in(checkpoint);
  });
  return spoken == formats.end() ? found : **spoken;
}

std::string_view shown_container(std::string_view format) {
  const SourceFormat* const known = find_source_format(format);
  return known == nullptr ? format : known->shown_container();
}

}  // namespace shardwright
