// SPDX-License-Identifier: Apache-2.0
#include "convert/kept_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "base/translated.h"
#include "convert/own_dtypes.h"

namespace shardwright {
namespace {

// Where names stay as they are. What is done to values may need a family all the same.
void tell_unused_choice(Drafting& drafting) {
  const ConvertRequest& choice = drafting.request();
  const bool is_used =
      !drafting.mappings.empty() || !choice.adapter.empty() || !choice.averaged.empty();
  if (is_used) return;
  std::vector<std::string_view> flags;
  if (!choice.family.empty()) flags.emplace_back("--family");
  if (!choice.hf_config_dir.empty()) flags.emplace_back("--hf-config");
  if (!choice.map_files.empty()) flags.emplace_back("--map");
  if (flags.empty()) return;
  drafting.tell(translated("no use is made of {}: --to {} keeps the names that are stored",
                           fmt::join(flags, ", "), drafting.traits().name));
}

}  // namespace

Status draft_with_kept_names(Drafting& drafting) {
  SW_TRY(drafting.target->draft_stored(drafting.request(), drafting.source(), drafting.catalog,
                                       drafting.parts, drafting.result.notes));
  SW_TRY(keep_own_dtypes(drafting));
  tell_unused_choice(drafting);
  return {};
}

}  // namespace shardwright
