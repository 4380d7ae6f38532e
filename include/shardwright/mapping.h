// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// One rectangular correspondence between a Hugging Face tensor and a canonical Megatron tensor.
/// For every t inside `shape`: megatron[megatron_origin + t] is
/// hf[h] with h[hf_axis[a]] = hf_origin[hf_axis[a]] + t[a] * hf_step[a], and h = hf_origin on the
/// axes that no a names. A block reads the same in both directions.
struct Block {
  std::uint32_t hf = 0;        ///< index into Correspondence::hf
  std::uint32_t megatron = 0;  ///< index into Correspondence::megatron
  Dims hf_origin;
  Dims megatron_origin;
  Dims shape;    ///< extents along the Megatron tensor's axes
  Dims hf_axis;  ///< per Megatron axis: the HF axis it runs along, -1 where all repeat the same
  Dims hf_step;  ///< per Megatron axis: HF elements per step (2 for interleaved rows)
  /// Megatron has these HF elements in another block too, which alone counts on the way back.
  bool repeats = false;
};

/// A tensor of one side of a correspondence.
struct MappedTensor {
  TensorDesc desc;
  /// The family fixes this tensor's dtype (a router's expert bias stays float32): never cast.
  bool pinned_dtype = false;
  /// Axis 0 counts vocabulary rows: Megatron may hold padding rows that HF does not.
  bool vocabulary = false;
  /// Added to an HF element to get the Megatron element (zero-centred norms: -1). Stated on both
  /// sides of a correspondence, applied once.
  double offset = 0.0;
  /// A Megatron tensor that HF does not have: it has no blocks, every element is this value. A
  /// reader of Megatron must check that it is, because HF has no place for anything else.
  std::optional<double> constant;
  /// What the elements of a Megatron tensor are that no block covers and HF does not have. Megatron
  /// computes nothing with them, so nobody checks them on the way back.
  std::optional<double> rest = std::nullopt;
};

/// An HF tensor that repeats another one (a tied output head, an MTP layer's embedding). It has no
/// blocks of its own while it is bit-equal to `original`.
struct HfCopy {
  TensorDesc desc;
  std::string original;
  bool emitted_by_default = false;  ///< written on export when nothing tells whether it existed
};

/// How the tensors of one model correspond, element by element.
struct Correspondence {
  std::vector<MappedTensor> hf;        ///< in the order in which the family lists them
  std::vector<MappedTensor> megatron;  ///< canonical names: one tensor per layer
  std::vector<Block> blocks;
  std::vector<HfCopy> copies;
  /// HF names that are not carried: the mapping drops them on purpose, or (towards HF) they existed
  /// once and belong to layers that the Megatron checkpoint does not have.
  std::vector<std::string> ignored;
  /// HF names that only HF stores and that this checkpoint has no place for, or lacks: towards HF
  /// those that existed once, else those that models of the family have.
  std::vector<std::string> lacking;
};

/// The numbers of one model that shapes depend on (`layers`, `heads`, `groups`, `head_dim`, ...),
/// by the names that the mapping file's `sizes` section defines.
using ModelSizes = std::map<std::string, std::int64_t, std::less<>>;

}  // namespace shardwright
