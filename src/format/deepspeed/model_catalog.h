// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/deepspeed/model_states.h"
#include "format/legacy/legacy_chunks.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// A piece of a tensor that flat buffers hold: elements [from, to) from byte `offset` of a file on.
struct FlatElements {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
};

/// Collects the tensors of a DeepSpeed checkpoint, each name once, and puts them into the order of
/// the model. Prefixes that wrappers gave to all names (`module.`, `_orig_mod.`) are taken off.
class ModelCatalog {
 public:
  explicit ModelCatalog(Checkpoint& checkpoint)
      : checkpoint_(checkpoint), chunks_(tensors_, *checkpoint.files) {}

  [[nodiscard]] bool has(std::string_view name) const { return seen_.contains(std::string(name)); }
  /// Null where there is none.
  [[nodiscard]] const TensorDesc* find(std::string_view name) const;
  /// A tensor that a file has whole. Error: kDuplicateName.
  [[nodiscard]] Status add_whole(const std::string& name, std::uint32_t file,
                                 const LocatedTensor& place);
  /// The same tensor in another rank's file: what is compared before anything is written. Error:
  /// kShapeMismatch.
  [[nodiscard]] Status add_replica(const std::string& name, std::uint32_t file,
                                   const LocatedTensor& place);
  /// Error: kDuplicateName.
  [[nodiscard]] Status add_flat(TensorDesc desc, std::span<const FlatElements> pieces);
  /// Another name of a tensor that is there.
  [[nodiscard]] Status add_shared(const std::string& name, std::string_view other);

  /// Moves all of it into the checkpoint's catalog, in the order of `names`; then what they lack,
  /// and states last.
  void finish(std::span<const std::string> names);

 private:
  [[nodiscard]] Status take_name(const std::string& name);
  [[nodiscard]] std::string common_prefix() const;

  Checkpoint& checkpoint_;
  Catalog tensors_;
  LegacyChunks chunks_;
  std::unordered_map<std::string, std::size_t> seen_;
};

}  // namespace shardwright
