// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "format/source_format.h"

namespace shardwright {

/// A format whose entries are the modules' own tensors, as torch's DCP stores them: names tell it
/// from plain DCP. Under them it may have become safetensors files.
class ModuleSource : public SourceFormat {
 public:
  [[nodiscard]] std::string_view usual_target() const override { return "hf"; }
  [[nodiscard]] bool may_lie_in(const SourceTraits& found) const final;
  [[nodiscard]] Status open(Checkpoint& checkpoint, Defects& defects) const final;
  [[nodiscard]] bool is_spoken_in(const Checkpoint& checkpoint) const final;
  [[nodiscard]] SourceTraits traits_of(const Checkpoint& checkpoint) const final;

 private:
  /// Whether an entry of that name shows this format.
  [[nodiscard]] virtual bool is_model_name(std::string_view name) const = 0;
};

}  // namespace shardwright
