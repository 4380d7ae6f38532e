// SPDX-License-Identifier: Apache-2.0
#include "canonical/correspondence_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/translated.h"
#include "model/apply.h"

namespace shardwright {
namespace {

// What a sentence begins with: `a.weight holds`, `a.weight and 2 more hold`.
std::string subject(const std::string& first, std::size_t count, std::string_view one_does,
                    std::string_view many_do) {
  if (count == 1) return translated("{} {}", first, one_does);
  return translated("{} and {} more {}", first, count - 1, many_do);
}

}  // namespace

void tell_kept(const Correspondence& correspondence, std::vector<std::string>& notes) {
  const auto is_extra = [](const MappedTensor& tensor) {
    return tensor.desc.name.starts_with(kHfExtraPrefix);
  };
  const auto kept = std::ranges::count_if(correspondence.megatron, is_extra);
  if (kept == 0) return;
  notes.push_back(
      translated("{} tensors have no place in Megatron and are kept as hf_extra", kept));
}

void tell_lacking(const Correspondence& correspondence, std::vector<std::string>& notes) {
  const std::vector<std::string>& names = correspondence.lacking;
  if (names.empty()) return;
  notes.push_back(
      translated("{} not in the checkpoint, which had no place for what only Hugging Face stores",
                 subject(names.front(), names.size(), "is", "are")));
}

void tell_rounded(const Correspondence& correspondence, std::vector<std::string>& notes) {
  std::set<std::uint32_t> rounded;
  for (const Block& block : correspondence.blocks) {
    const MappedTensor& hf = correspondence.hf[block.hf];
    const DType held = correspondence.megatron[block.megatron].desc.dtype;
    if (hf.pinned_dtype && hf.desc.dtype != held) rounded.insert(block.hf);
  }
  if (rounded.empty()) return;
  const TensorDesc& first = correspondence.hf[*rounded.begin()].desc;
  notes.push_back(translated("{} rounded to {}, the dtype that {} imported in",
                             subject(first.name, rounded.size(), "is", "are"),
                             torch_name(first.dtype),
                             rounded.size() == 1 ? "it was" : "they were"));
}

}  // namespace shardwright
