// SPDX-License-Identifier: Apache-2.0
#include "format/mimo/source.h"

#include "format/dcp/dcp_reader.h"
#include "format/mimo/component_findings.h"
#include "format/mimo/component_table.h"
#include "layout/texts.h"
#include "model/component_names.h"

namespace shardwright {
namespace {

class MimoSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "mimo"; }

  // Of what it lies in.
  SourceTraits traits() const override { return {.has_chunk_list = true, .has_components = true}; }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    SourceTraits found = checkpoint.location.traits;
    found.has_components = true;
    found.shares_by_name = false;
    return found;
  }

  Phrase summary() const override { return phrase("format.mimo"); }

  std::string_view usual_target() const override { return "hf"; }

  bool may_lie_in(const SourceTraits& files) const override { return files.has_chunk_list; }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_dcp(checkpoint, defects);
  }

  void add_findings(const Checkpoint& checkpoint, Diagnosis& diagnosis) const override {
    add_components(checkpoint, diagnosis);
  }

  std::vector<std::pair<std::string, Error>> defects_beside(
      const Checkpoint& checkpoint) const override {
    std::vector<std::pair<std::string, Error>> defects;
    for (Error& error : read_component_table(checkpoint).defects) {
      defects.emplace_back(kComponentTable, std::move(error));
    }
    return defects;
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    return has_component_names(checkpoint.catalog) || checkpoint.directory->exists(kComponentTable);
  }
};

}  // namespace

const SourceFormat& mimo_source() {
  static const MimoSource format;
  return format;
}

}  // namespace shardwright
