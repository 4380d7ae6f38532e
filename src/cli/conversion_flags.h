// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwright/convert.h"

namespace shardwright::cli {

/// What `plan` and `convert` were given, as text, flag by flag.
struct ConversionFlags {
  using Text = std::optional<std::string>;

  Text input;
  Text output;
  Text to;
  Text tp;
  Text pp;
  Text vpp;
  Text ep;
  Text etp;
  Text encoder_tp;
  Text world_size;
  Text mtp;
  Text spec;
  Text dtype;
  Text optimizer;
  Text check_replicas;
  Text naming;
  Text max_shard_size;
  Text make_vocab_size_divisible_by;
  Text shards;
  Text source_ep;
  Text source_etp;
  Text source_tp;
  Text threads;
  Text max_memory;
  std::string hf_config;
  std::string family;
  std::string models;
  std::vector<std::string> components;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::vector<std::string> map_files;
  bool overwrite = false;
};

/// Checks everything that can be checked without a file: values, units, and flags that contradict
/// each other or mean nothing for the target. Error: kUsage, naming the flag.
[[nodiscard]] Result<ConvertRequest> to_request(const ConversionFlags& flags);

}  // namespace shardwright::cli
