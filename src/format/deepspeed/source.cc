// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/source.h"

#include <fmt/format.h>

#include "format/carried_files.h"
#include "format/deepspeed/pipe_reader.h"
#include "format/deepspeed/universal_reader.h"
#include "format/deepspeed/zero_file_name.h"
#include "format/deepspeed/zero_form.h"
#include "format/deepspeed/zero_reader.h"
#include "format/near_config.h"
#include "format/sibling.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

enum class DeepSpeedKind : std::uint8_t { kZero, kUniversal, kPipe, kOther };

bool is_zero_file(const DirectoryEntry& entry) {
  return !entry.is_directory && parse_zero_file(entry.name).has_value();
}

bool is_layer_file(const DirectoryEntry& entry) {
  return !entry.is_directory && parse_layer_file(entry.name).has_value();
}

// Experts have files of their own, which nobody here puts together.
bool is_of_experts(const DirectoryEntry& entry) {
  return matches_sign(entry.name, "*expert_#_mp_rank_#_model_states.pt") ||
         matches_sign(entry.name, "expp_rank_#_mp_rank_#_optim_states.pt") ||
         matches_sign(entry.name, "module-pipe_*");
}

// The entry that shows it, and what it is.
std::pair<DeepSpeedKind, const DirectoryEntry*> deepspeed_kind_of(const Folder& folder) {
  if (folder.first(is_of_experts) != nullptr) return {DeepSpeedKind::kOther, nullptr};
  const DirectoryEntry* const zero = folder.first(is_zero_file);
  const DirectoryEntry* const universal = folder.folder(kUniversalFolder);
  if (zero != nullptr && universal != nullptr) return {DeepSpeedKind::kUniversal, universal};
  if (const DirectoryEntry* layer = folder.first(is_layer_file))
    return {DeepSpeedKind::kPipe, layer};
  return {zero == nullptr ? DeepSpeedKind::kOther : DeepSpeedKind::kZero, zero};
}

std::optional<Recognition> recognise_kind(const Folder& folder, DeepSpeedKind wanted,
                                          std::string_view what) {
  const auto [kind, entry] = deepspeed_kind_of(folder);
  if (kind != wanted) return std::nullopt;
  return Recognition{Recognition::Strength::kSure, {fmt::format("{} {}", entry->name, what)}};
}

// Parameters by the names of the module that was trained, which usually is Hugging Face's.
constexpr SourceTraits kModuleTraits = {.is_hf_model = true, .records = Records::kFiles};

class ZeroSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "deepspeed_zero"; }

  SourceTraits traits() const override { return kModuleTraits; }

  Phrase summary() const override { return phrase("format.deepspeed_zero"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    return recognise_kind(folder, DeepSpeedKind::kZero, "is a file of DeepSpeed");
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    SW_TRY(read_zero(checkpoint, defects));
    return read_near_config(checkpoint, defects);
  }

  const ModelForm& form() const override { return zero_form(); }
};

class UniversalSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "deepspeed_universal"; }

  SourceTraits traits() const override { return kModuleTraits; }

  Phrase summary() const override { return phrase("format.deepspeed_universal"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    return recognise_kind(folder, DeepSpeedKind::kUniversal, "has a folder for each parameter");
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    SW_TRY(read_universal(checkpoint, defects));
    return read_near_config(checkpoint, defects);
  }

  const ModelForm& form() const override { return zero_form(); }
};

class PipeSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "deepspeed_pipe"; }

  SourceTraits traits() const override {
    return {.is_of_ranks = true,
            .has_layers_apart = true,
            .holds_extras = false,
            .records = Records::kFiles};
  }

  Phrase summary() const override { return phrase("format.deepspeed_pipe"); }

  std::string_view usual_target() const override { return "torch_dist"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    return recognise_kind(folder, DeepSpeedKind::kPipe, "is a layer's file of DeepSpeed");
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_pipe(checkpoint, defects);
  }
};

}  // namespace

const SourceFormat& deepspeed_zero_source() {
  static const ZeroSource format;
  return format;
}

const SourceFormat& deepspeed_universal_source() {
  static const UniversalSource format;
  return format;
}

const SourceFormat& deepspeed_pipe_source() {
  static const PipeSource format;
  return format;
}

}  // namespace shardwright
