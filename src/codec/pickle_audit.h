// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "codec/pickle_token.h"
#include "codec/pickle_value.h"
#include "shardwright/error.h"

namespace shardwright::pickle {

/// What a loader that obeys a pickle would do with it, besides making plain values and tensors.
/// Texts are short and free of control characters.
struct Audit {
  std::set<std::string> runs;        ///< what runs code: `posix.system`, "an extension (code 7)"
  std::set<std::string> unknown;     ///< names of packages that are not known here
  std::set<std::string> classes;     ///< of well-known training software: they are imported
  std::uint64_t trailing_bytes = 0;  ///< behind the pickle's end
  std::optional<Error> error;        ///< where decoding stopped; what came before is judged

  [[nodiscard]] bool is_harmless() const { return runs.empty() && unknown.empty(); }
  void merge(const Audit& other);
  /// Notes the meaning of a name.
  void add_name(std::string_view module, std::string_view name);
};

/// Judges every name, call and attribute that a pickle ever makes, also those that it drops again
/// or that nothing reaches, and pickles within its bytes. Nothing is imported or called.
[[nodiscard]] Audit audit_pickle(std::span<const std::byte> bytes, const Limits& limits = {});
/// The same of a pickle that was decoded.
[[nodiscard]] Audit audit_document(const Document& document);

/// The same of bytes within a pickle, which may be one again.
[[nodiscard]] Audit audit_bytes(std::string_view bytes);
/// What an opcode of copyreg's extension registry does.
[[nodiscard]] std::string extension_text(std::int64_t code);

/// `posix.system, builtins.eval, … 3 more`.
[[nodiscard]] std::string listed(const std::set<std::string>& names);

/// The error that names what a pickle would run: kPickleRunsCode. REQUIRES: !audit.runs.empty().
[[nodiscard]] Error refuse_code(const Audit& audit, std::string_view where);

}  // namespace shardwright::pickle
