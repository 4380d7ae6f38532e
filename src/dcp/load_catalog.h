// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dcp/dcp_metadata.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// What the ranks of a job find in a `.metadata` that one of them has read: tensors under the
/// names that models ask for, whatever copies of them are stored under which names, and objects as
/// tensors of bytes. Immutable; safe for concurrent use.
class LoadCatalog {
 public:
  /// `contents` of the file that messages call `name`. Errors: those of read_dcp_metadata, of
  /// mark_transformed.
  [[nodiscard]] static Result<LoadCatalog> read(std::string contents, std::string name);

  /// The tensors, each once, then those of them that one tensor rank stored, then the objects.
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  /// How many of the catalog's tensors are the checkpoint's: those that a job may miss.
  [[nodiscard]] std::size_t listed() const { return listed_; }

  /// The tensor that a model asks for by `name`: of `X.__tp_replica_1` what tensor rank 1 stored,
  /// where it stored all of it, else X; of X, whatever copy, with or without a name of its own.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
  /// The name of the tensor that find() finds a copy of, or all of.
  [[nodiscard]] std::optional<std::string> tensor_name(std::string_view name) const;
  /// The bytes of an object, as they are stored. Error: kItemTransformed for one that was
  /// transformed by other means than zstd.
  [[nodiscard]] Result<std::optional<std::uint32_t>> find_object(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& objects() const { return objects_; }
  /// Whether decode() has something to do for an object.
  [[nodiscard]] bool is_compressed(std::uint32_t object) const { return packed_.contains(object); }
  /// Of objects that are compressed, decodes the stored bytes; `objects` and `stored` belong
  /// together. Those of a file may expand to what Allowance gives for all that the metadata says
  /// the file has. Errors: those of decode_object.
  [[nodiscard]] Result<std::vector<std::string>> decode(std::span<const std::uint32_t> objects,
                                                        std::vector<std::string> stored) const;

 private:
  using Numbers = std::unordered_map<std::string, std::uint32_t>;

  LoadCatalog() = default;
  void add_rank_copies();
  void add_objects();
  void note_names();

  Catalog catalog_;
  std::size_t listed_ = 0;
  std::vector<std::string> objects_;
  std::vector<TransformedItem> transformed_;              // objects
  std::unordered_map<std::string, std::size_t> foreign_;  // of these, which can't be decoded
  std::unordered_set<std::uint32_t> packed_;              // by number, those that can
  Numbers tensor_numbers_;
  Numbers object_numbers_;
};

}  // namespace shardwright
