// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "io/source_files.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A digest of everything that a plan does: two plans with the same one write the same bytes from
/// the same sources. Host and paths of the checkpoints' folders are not in it.
[[nodiscard]] std::string fingerprint_of(const Plan& plan);

/// What of a source's files must be equal.
enum class SourceIdentity : std::uint8_t {
  /// When the contents were written: copies that keep this time are alike, as nodes may have them.
  kContents,
  /// When anything of the file was changed, too: a copy, whatever times it kept, is another file.
  kFiles,
};
struct SourceSummary {
  std::string fingerprint;  ///< a digest of names, sizes and times of the files that a plan reads
  /// One of them that a later run could not tell from another of its size, see
  /// FileVersion::tells_contents; "" where there is none.
  std::string untold;
};
/// Opens nothing but an untold file. Errors: those of looking at them.
[[nodiscard]] Result<SourceSummary> summary_of_source(const Plan& plan, SourceFiles& files,
                                                      SourceIdentity identity);
/// Its fingerprint, for runs that go on at once.
[[nodiscard]] Result<std::string> source_fingerprint(const Plan& plan, SourceFiles& files,
                                                     SourceIdentity identity);

}  // namespace shardwright
