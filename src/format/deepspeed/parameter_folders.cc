// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/parameter_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "codec/torch_number.h"
#include "codec/torch_tensor.h"
#include "format/deepspeed/universal_reader.h"
#include "format/model_file.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::string_view kStep = "step";

Status list_parameter(const Directory& directory, ParameterFolder& folder) {
  for (const DirectoryEntry& entry : SW_TRY(directory.list(folder.path))) {
    if (entry.problem) return std::unexpected(*entry.problem);
    if (entry.is_directory || !entry.name.ends_with(kUniversalEnding)) continue;
    std::string path = fmt::format("{}/{}", folder.path, entry.name);
    std::string kind = entry.name.substr(0, entry.name.size() - kUniversalEnding.size());
    if (kind == kStep) {
      folder.step_path = std::move(path);
    } else if (!kind.contains('.')) {
      folder.states.push_back({std::move(kind), std::move(path), 0, StoredState()});
    }
  }
  std::ranges::stable_partition(
      folder.states, [](const ParameterState& state) { return state.kind == kUniversalWeights; });
  return {};
}

Result<std::optional<std::int64_t>> read_step(const Directory& directory, const std::string& path) {
  const auto file = SW_TRY(directory.open(path));
  const TorchFile torch = SW_TRY(TorchFile::open(*file));
  return read_torch_count(*file, torch, torch.root());
}

Result<StoredState> read_stored(SourceFiles& files, const ParameterState& state) {
  const auto file = SW_TRY(files.get(state.file));
  const TorchFile torch = SW_TRY(TorchFile::open(*file));
  const bool is_bare = is_tensor(torch.root());
  const pickle::Value tensor = is_bare ? torch.root() : torch.root().find("param");
  if (!is_tensor(tensor)) {
    return fail(Code::kZeroLayout, "{}: found neither a tensor nor one under 'param'", state.path);
  }
  Result<LocatedTensor> place = torch.locate(tensor);
  if (!place) return std::unexpected(std::move(place).error().within(state.path));
  return StoredState{*std::move(place), is_bare};
}

}  // namespace

Result<std::vector<ParameterFolder>> read_parameter_folders(const std::vector<std::string>& names,
                                                            Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  std::vector<ParameterFolder> folders(names.size());
  const auto list = [&](std::size_t i) {
    folders[i].name = names[i];
    folders[i].path = fmt::format("{}/{}", kUniversalFolder, names[i]);
    folders[i].listed = list_parameter(directory, folders[i]);
    if (!folders[i].step_path.empty()) folders[i].step = read_step(directory, folders[i].step_path);
  };
  SW_TRY(prepare_ahead(names.size(), list, [](std::size_t) { return Status(); }));

  std::vector<ParameterState*> states;
  for (ParameterFolder& folder : folders) {
    for (ParameterState& state : folder.states) {
      state.file = add_model_file(state.path, *checkpoint.files, checkpoint.catalog);
      states.push_back(&state);
    }
  }
  const auto read = [&](std::size_t i) {
    states[i]->stored = read_stored(*checkpoint.files, *states[i]);
  };
  SW_TRY(prepare_ahead(states.size(), read, [](std::size_t) { return Status(); }));
  return folders;
}

}  // namespace shardwright
