// SPDX-License-Identifier: Apache-2.0
#include "format/seals.h"

#include <algorithm>
#include <array>

#include "dcp/rank_metadata.h"
#include "format/iteration_folder.h"
#include "format/peft/adapter.h"
#include "format/weight_names.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 10> kSeals = {
    kHfIndexFile,   kDiffusersIndexFile, kPeftConfigFile, kHfConfigFile,           kCommonStateFile,
    kRunConfigFile, "metadata.json",     kDcpMetadata,    "latest_train_state.pt", kTrackerName};

}  // namespace

int seal_number(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto found = std::ranges::find(kSeals, name);
  return found == kSeals.end() ? 0 : static_cast<int>(found - kSeals.begin()) + 1;
}

}  // namespace shardwright
