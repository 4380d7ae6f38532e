// SPDX-License-Identifier: Apache-2.0
#include "format/peft/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/translated.h"
#include "format/peft/adapter.h"
#include "format/peft/weights.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

bool holds_other_weights(const DirectoryEntry& entry) {
  constexpr std::array<std::string_view, 5> kEndings = {".safetensors", ".bin", ".pt", ".pth",
                                                        ".distcp"};
  const bool has_ending = std::ranges::any_of(
      kEndings, [&](std::string_view ending) { return entry.name.ends_with(ending); });
  // Trainers save their arguments as training_args.bin, optimizers as optimizer.pt.
  const bool is_state = entry.name.starts_with("training_args") ||
                        entry.name.starts_with("optimizer") ||
                        entry.name.starts_with("scheduler") || entry.name.starts_with("rng_state");
  return !entry.is_directory && has_ending && !is_state && !entry.name.starts_with("adapter_model");
}

class PeftSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "peft"; }

  SourceTraits traits() const override {
    return {.has_layers_apart = true,
            .is_adapter = true,
            .holds_extras = false,
            .records = Records::kNone};
  }

  Phrase summary() const override { return phrase("format.peft"); }

  std::string_view usual_target() const override { return "torch_dist"; }

  // Trainers leave adapters beside whole models too, and then those are meant.
  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const std::string_view weights =
        peft_weights_in([&](std::string_view name) { return folder.has_file(name); });
    const bool has_both = folder.has_file(kPeftConfigFile) && !weights.empty();
    if (!has_both || folder.first(holds_other_weights) != nullptr) {
      return std::optional<Recognition>();
    }
    Recognition found;
    found.facts.push_back(translated("{} lies beside {}", kPeftConfigFile, weights));
    return found;
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    SW_TRY(read_peft_weights(*checkpoint.directory, checkpoint, defects));
    const Result<LoraConfig> config = read_peft_config(*checkpoint.directory);
    return config ? Status() : defects.report(std::unexpected(config.error()));
  }

  // Whether it can be merged: what its config says of the tensors, and halves of modules.
  std::vector<std::pair<std::string, Error>> defects_beside(
      const Checkpoint& checkpoint) const override {
    if (!read_peft_config(*checkpoint.directory)) return {};  // told when it was opened
    const Result<PeftAdapter> adapter = open_peft_adapter(checkpoint.location.path);
    if (adapter) return {};
    return {{std::string(kPeftConfigFile), adapter.error()}};
  }
};

}  // namespace

const SourceFormat& peft_source() {
  static const PeftSource format;
  return format;
}

bool is_peft(const Checkpoint& checkpoint) {
  return checkpoint.location.format == peft_source().name();
}

}  // namespace shardwright
