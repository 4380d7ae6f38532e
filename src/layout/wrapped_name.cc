// SPDX-License-Identifier: Apache-2.0
#include "layout/wrapped_name.h"

#include <algorithm>
#include <array>

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 3> kWrappers = {"llava_model.", "thinker.", "module."};
constexpr std::string_view kLanguageModel = "language_model.";

// Of Megatron's models that read, see, hear or speak.
constexpr std::array<std::string_view, 9> kModelParts = {
    "language_model.", "llava_model.", "vision_model.", "vision_tower.", "audio_tower.",
    "sound_model.",    "thinker.",     "talker.",       "dspark."};

}  // namespace

std::string_view unwrapped(std::string_view name) {
  for (const std::string_view wrapper : kWrappers) {
    if (name.starts_with(wrapper)) return name.substr(wrapper.size());
  }
  return name;
}

std::string_view language_prefix(std::string_view name) {
  const std::string_view inner = unwrapped(name);
  if (!inner.starts_with(kLanguageModel)) return {};
  return name.substr(0, name.size() - inner.size() + kLanguageModel.size());
}

std::string_view without_parts(std::string_view name) {
  const auto begins_it = [&](std::string_view part) { return name.starts_with(part); };
  for (const auto* part = std::ranges::find_if(kModelParts, begins_it); part != kModelParts.end();
       part = std::ranges::find_if(kModelParts, begins_it)) {
    name.remove_prefix(part->size());
  }
  return name;
}

}  // namespace shardwright
