// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "model/name_rules.h"
#include "shardwright/catalog.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// The same bytes under other names, and in other rows, as chunks of another catalog.
class RenamedCatalog {
 public:
  /// Borrows both.
  RenamedCatalog(const Catalog& source, const ModelSizes& sizes);

  /// Adds a tensor as it is. Error: kDuplicateName.
  [[nodiscard]] Status add(const StoredTensor& tensor, const std::string& name);

  /// Adds what the rule makes of a tensor: itself, with its rows in another order, or a tensor for
  /// each index of its first axis. Errors: kDuplicateName; kShapeMismatch; those of rendering.
  [[nodiscard]] Status add(const StoredTensor& tensor, const StoredNameRule& rule,
                           std::vector<Binding> numbers);

  /// Adds an empty tensor, to be given pieces of `source`; the next one may move it. Error:
  /// kDuplicateName.
  [[nodiscard]] Result<StoredTensor*> begin(const StoredTensor& source, TensorDesc desc);

  [[nodiscard]] Catalog take() { return std::move(result_); }

 private:
  [[nodiscard]] Status add_stack(const StoredTensor& tensor, const StoredNameRule& rule,
                                 std::vector<Binding> numbers);
  [[nodiscard]] Status add_rotary(const StoredTensor& tensor, const std::string& name);

  const ModelSizes& sizes_;
  Catalog result_;
  std::unordered_map<std::string, std::string> stored_by_name_;
};

}  // namespace shardwright
