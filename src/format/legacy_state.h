// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/pickle_value.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Of a rank's file what Megatron-Core's common.pt would hold: arguments, iteration, version and
/// scheduler, without tensors, optimizer and random states. Bytes of a torch.save archive.
[[nodiscard]] Result<std::string> read_legacy_state(const ReadableFile& file);

/// The same of any torch.save archive of a state, to be completed: its root is a dict.
[[nodiscard]] Result<pickle::Document> plain_state(const ReadableFile& file);

}  // namespace shardwright
