// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/source_files.h"
#include "plan/draft.h"
#include "shardwright/catalog.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Which of an HF checkpoint's copies (tied heads, MTP embeddings) are not bit-equal to their
/// originals. Reads both, in small buffers, until the first difference.
[[nodiscard]] Result<std::set<std::string, std::less<>>> find_differing_copies(
    std::span<const HfCopy> copies, const Catalog& catalog, SourceFiles& files);

/// Adds the copies whose originals are among the drafts, made of the same pieces.
void draft_copies(std::span<const HfCopy> copies, std::vector<DraftTensor>& drafts);

}  // namespace shardwright
