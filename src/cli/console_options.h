// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shardwright/diagnose.h"

namespace shardwright::cli {

enum class ProgressStyle : std::uint8_t {
  kAuto,   ///< a line that rewrites itself on a terminal, lines one below the other elsewhere
  kPlain,  ///< lines one below the other
  kJson,   ///< every message is a JSON object on a line of its own
  kNone,
};

/// What every command takes: how it tells what it is doing.
struct ConsoleOptions {
  ProgressStyle progress = ProgressStyle::kAuto;
  bool quiet = false;         ///< no progress and no notes
  std::string log_file = {};  ///< gets messages and progress too; empty: none
  Language language = Language::kEnglish;
};

}  // namespace shardwright::cli
