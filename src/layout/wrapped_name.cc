// SPDX-License-Identifier: Apache-2.0
#include "layout/wrapped_name.h"

#include <array>

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 3> kWrappers = {"llava_model.", "thinker.", "module."};
constexpr std::string_view kLanguageModel = "language_model.";

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

}  // namespace shardwright
