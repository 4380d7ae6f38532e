// SPDX-License-Identifier: Apache-2.0
#include "language/chinese.h"

#include <array>
#include <span>
#include <unordered_map>

#include "language/chinese_tables.h"

namespace shardwright {
namespace {

using Catalogue = std::unordered_map<std::string_view, std::string_view>;

// Made when the first sentence is looked up: who reads English does not wait for it.
const Catalogue& chinese_catalogue() {
  static const Catalogue catalogue = [] {
    const std::array tables = {chinese_of_adapters(),
                               chinese_of_arguments(),
                               chinese_of_base(),
                               chinese_of_canonical(),
                               chinese_of_cli(),
                               chinese_of_comm(),
                               chinese_of_compare(),
                               chinese_of_components(),
                               chinese_of_convert(),
                               chinese_of_dcp(),
                               chinese_of_dcp_metadata(),
                               chinese_of_deepspeed(),
                               chinese_of_diagnose(),
                               chinese_of_format(),
                               chinese_of_fsdp(),
                               chinese_of_io(),
                               chinese_of_layout(),
                               chinese_of_legacy(),
                               chinese_of_mapping(),
                               chinese_of_merge(),
                               chinese_of_mimo(),
                               chinese_of_model(),
                               chinese_of_pickle(),
                               chinese_of_plan(),
                               chinese_of_publish(),
                               chinese_of_quantisation(),
                               chinese_of_remote(),
                               chinese_of_safetensors(),
                               chinese_of_state(),
                               chinese_of_system(),
                               chinese_of_torch_archives(),
                               chinese_of_verify()};
    Catalogue all;
    for (const std::span<const Sentence> table : tables) {
      for (const Sentence& each : table) all.emplace(each.english, each.chinese);
    }
    return all;
  }();
  return catalogue;
}

}  // namespace

std::string_view chinese_sentence(std::string_view english) {
  const auto found = chinese_catalogue().find(english);
  return found == chinese_catalogue().end() ? std::string_view() : found->second;
}

}  // namespace shardwright
