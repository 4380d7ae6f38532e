// SPDX-License-Identifier: Apache-2.0
#include "convert/shared_messages.h"

#include "exec/plan_fingerprint.h"

namespace shardwright {

Result<std::string> plan_summary(const PreparedConversion& conversion) {
  const std::string source = SW_TRY(
      source_fingerprint(conversion.plan, *conversion.source.files, SourceIdentity::kContents));
  return SHARDWRIGHT_VERSION " " + fingerprint_of(conversion.plan) + " " + source;
}

}  // namespace shardwright
