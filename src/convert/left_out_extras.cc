// SPDX-License-Identifier: Apache-2.0
#include "convert/left_out_extras.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/translated.h"
#include "model/apply.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

// By name while they are few; a part that Megatron lacks (a talker) may have hundreds.
void tell_extras_left_out(const std::vector<std::string>& names, Drafting& drafting) {
  constexpr std::size_t kMostNamed = 8;
  if (names.size() > kMostNamed) {
    drafting.tell(translated("{} and {} more are left out: the target has no place for them",
                             names.front(), names.size() - 1));
    return;
  }
  for (const std::string& name : names) {
    drafting.tell(translated("{} is left out: the target has no place for it", name));
  }
}

}  // namespace

// A Megatron model that loads strictly has no place for what Hugging Face stores beyond it, and a
// legacy file no other.
void leave_extras_out(Drafting& drafting) {
  if (drafting.traits().holds_extras) return;
  TargetParts& parts = drafting.parts;
  std::vector<std::string> left_out;
  std::erase_if(parts.tensors, [&](const DraftTensor& tensor) {
    if (!tensor.desc.name.starts_with(kHfExtraPrefix)) return false;
    left_out.push_back(tensor.desc.name.substr(kHfExtraPrefix.size()));
    return true;
  });
  tell_extras_left_out(left_out, drafting);
  parts.left_out = std::move(left_out);
}

Status list_left_out(Drafting& drafting) {
  TargetParts& parts = drafting.parts;
  if (drafting.traits().holds_extras) return {};
  for (TargetFile& file : parts.files) {
    if (!file.path.ends_with(kSourceKeysFile)) continue;
    file.bytes = SW_TRY(with_left_out(std::move(file.bytes), parts.left_out));
  }
  return {};
}

}  // namespace shardwright
