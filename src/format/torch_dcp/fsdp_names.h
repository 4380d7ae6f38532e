// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// The entries of a torch_dcp checkpoint under the names that fsdp_dtensor has for them: weights,
/// states, each parameter's settings. States and master weights are stored under numbers, which
/// count the parameters of the optimizer's groups in the model's order; which group a parameter is
/// in follows from Megatron's rules.
class FsdpNames {
 public:
  /// Of a whole checkpoint's catalog.
  [[nodiscard]] static FsdpNames find(const Catalog& catalog, SourceFiles& files);

  /// The same of an opened checkpoint, whose catalog is as it was opened: found once.
  [[nodiscard]] static const FsdpNames& of(const Checkpoint& checkpoint);
  /// What keeps them.
  [[nodiscard]] static std::shared_ptr<FormatFindings> unfound();

  /// What some of its entries are there. States of which is not known whose they are stay out.
  [[nodiscard]] Catalog apply(const Catalog& part) const;

  /// Why it is not known whose the states are: kOptimizerUnsupported, or those of reading.
  [[nodiscard]] const std::optional<Error>& unknown_states() const { return unknown_; }
  /// Whether each weight of 16 bits that has states has its master weight, among entries that have
  /// these names: else it would be taken for one. Error: kOptimizerUnsupported.
  [[nodiscard]] Status check_masters(const Catalog& named) const;
  /// Whether states in a catalog have numbers, whose owners rules and no names say.
  [[nodiscard]] static bool has_numbers(const Catalog& catalog);

 private:
  [[nodiscard]] Status name_states(const Catalog& catalog, SourceFiles& files);

  std::unordered_map<std::string, std::vector<std::string>> names_;  // of the optimizer's entries
  std::optional<Error> unknown_;
  bool has_numbers_ = false;
};

/// Makes a Megatron source of a torch_dcp one, as undo_fsdp() does of an fsdp_dtensor one. Errors:
/// those of undo_fsdp(), and of FsdpNames where states are wanted.
[[nodiscard]] Status undo_torch_dcp(const ConvertRequest& request, Checkpoint& source,
                                    Catalog& wanted, std::vector<std::string>& notes);

}  // namespace shardwright
