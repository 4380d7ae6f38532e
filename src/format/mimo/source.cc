// SPDX-License-Identifier: Apache-2.0
#include "format/mimo/source.h"

#include <algorithm>

#include "format/dcp/dcp_reader.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

class MimoSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "mimo"; }

  // Of what it lies in.
  SourceTraits traits() const override { return {.has_chunk_list = true}; }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    SourceTraits found = checkpoint.location.traits;
    found.shares_by_name = false;
    return found;
  }

  Phrase summary() const override { return phrase("format.mimo"); }

  std::string_view usual_target() const override { return "hf"; }

  bool may_lie_in(const SourceTraits& files) const override { return files.has_chunk_list; }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_dcp(checkpoint, defects);
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    return is_mimo(checkpoint.catalog) || checkpoint.directory->exists(kComponentTable);
  }
};

}  // namespace

const SourceFormat& mimo_source() {
  static const MimoSource format;
  return format;
}

bool is_mimo(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.starts_with(kModalitySubmodules);
  });
}

}  // namespace shardwright
