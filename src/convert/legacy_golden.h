// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "convert/golden.h"

namespace shardwright {

/// The files of a packed legacy checkpoint of tests/golden: the pickle of each of Megatron's own
/// files (`X.pkl`), and what its storages hold (`X.storages`, a line for each): pieces of the
/// tensors of the checkpoint `truth`, which Megatron saved too, zeros, or bytes as they are.
using PackedLegacy = std::map<std::string, std::string>;
[[nodiscard]] PackedLegacy read_packed_legacy(const std::string& golden);

/// Writes the checkpoint again as Megatron had written it, but for states of random generators.
void unpack_legacy(const PackedLegacy& packed, const TensorMap& truth, const std::string& folder);

/// Of both maps only what they have in common of a tensor's rows: vocabularies are padded.
void trim_vocabulary(TensorMap& a, TensorMap& b);

}  // namespace shardwright
