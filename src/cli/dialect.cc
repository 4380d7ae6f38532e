// SPDX-License-Identifier: Apache-2.0
#include "cli/dialect.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace shardwright::cli {
namespace {

struct Spelling {
  std::string_view name;  ///< without dashes and without `target-`
  std::string_view canonical;
};

// Megatron-LM's, Megatron-Bridge's and LoongForge's arguments, those of Megatron-LM's checkpoint
// tools (which put `target-` in front and leave `model` out), and the short names that everybody
// says.
constexpr std::array kSpellings = {
    Spelling{"tp", "tp"},
    Spelling{"tensor-model-parallel-size", "tp"},
    Spelling{"tensor-parallel-size", "tp"},
    Spelling{"tp-size", "tp"},
    Spelling{"pp", "pp"},
    Spelling{"pipeline-model-parallel-size", "pp"},
    Spelling{"pipeline-parallel-size", "pp"},
    Spelling{"pp-size", "pp"},
    Spelling{"vpp", "vpp"},
    Spelling{"num-virtual-stages-per-pipeline-rank", "vpp"},
    Spelling{"virtual-pipeline-model-parallel-size", "vpp"},
    Spelling{"virtual-pipeline-parallel-size", "vpp"},
    Spelling{"vpp-size", "vpp"},
    Spelling{"ep", "ep"},
    Spelling{"expert-model-parallel-size", "ep"},
    Spelling{"expert-parallel-size", "ep"},
    Spelling{"ep-size", "ep"},
    Spelling{"etp", "etp"},
    Spelling{"expert-tensor-parallel-size", "etp"},
    Spelling{"expert-tensor-model-parallel-size", "etp"},
    Spelling{"etp-size", "etp"},
    Spelling{"encoder-tp", "encoder-tp"},
    Spelling{"encoder-tensor-model-parallel-size", "encoder-tp"},
    Spelling{"encoder-tensor-parallel-size", "encoder-tp"},
    Spelling{"encoder-tp-size", "encoder-tp"},
};

std::string_view canonical_size(std::string_view name) {
  constexpr std::string_view kTarget = "target-";
  if (name.starts_with(kTarget)) name.remove_prefix(kTarget.size());
  for (const Spelling& spelling : kSpellings) {
    if (spelling.name == name) return spelling.canonical;
  }
  return {};
}

std::string to_canonical_flag(const std::string& argument) {
  const std::size_t dashes = argument.starts_with("--") ? 2 : 1;
  if (argument.size() <= dashes || argument[0] != '-') return argument;
  const std::size_t end = std::min(argument.find('='), argument.size());
  if (end <= dashes) return argument;
  std::string name = argument.substr(dashes, end - dashes);
  std::replace(name.begin(), name.end(), '_', '-');
  const std::string_view size = canonical_size(name);
  // A single dash is only ours in front of a size: `-3` or `-x` may be a value.
  if (dashes == 1 && size.empty()) return argument;
  return "--" + (size.empty() ? name : std::string(size)) + argument.substr(end);
}

}  // namespace

std::vector<std::string> to_canonical_flags(std::span<const std::string> arguments) {
  std::vector<std::string> canonical(arguments.begin(), arguments.end());
  const auto options_end = std::find(canonical.begin(), canonical.end(), "--");
  std::transform(canonical.begin(), options_end, canonical.begin(), to_canonical_flag);
  return canonical;
}

}  // namespace shardwright::cli
