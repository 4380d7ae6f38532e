// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/source_files.h"
#include "plan/draft.h"
#include "shardwright/catalog.h"
#include "shardwright/mapping.h"

namespace shardwright {

// Megatron keeps some norms as w - 1. In 16 bits that rounds, so the way there and back need not
// give the same bits. Where the HF tensor is at hand it is kept beside the other one, as
// `hf_extra.<HF name>`, and given back as long as Megatron's tensor is still made of it.

/// Megatron tensors, under their hf_extra names, that keep what the offsets of `correspondence`
/// would lose. `source` is the HF catalog, `drafts` what is made of it. Tensors that change their
/// dtype are left out: their bits are lost anyway. Says in `notes` which tensors those are and by
/// how much the largest value would change.
[[nodiscard]] Result<std::vector<DraftTensor>> keep_exact_values(
    const Correspondence& correspondence, const Catalog& source,
    std::span<const DraftTensor> drafts, SourceFiles& files, std::vector<std::string>& notes);

/// The way back: HF drafts take the values kept for them if Megatron's tensor is still what import
/// made of these; else, and where none were kept, `notes` says by how much their own values round.
[[nodiscard]] Status restore_exact_values(const Correspondence& correspondence,
                                          std::span<const CanonicalTensor> canonical,
                                          const Catalog& source, std::span<DraftTensor> drafts,
                                          SourceFiles& files, std::vector<std::string>& notes);

}  // namespace shardwright
