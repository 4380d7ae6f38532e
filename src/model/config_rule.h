// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/arguments.h"
#include "model/name_template.h"
#include "model/size_expr.h"

namespace shardwright {

/// One correspondence between config.json and Megatron's arguments that shapes do not need.
struct ConfigRule {
  enum class Kind : std::uint8_t {
    kPair,             ///< `hf` and `args` hold the same value, `map`ped
    kWindow,           ///< HF counts the tokens of a sliding window, Megatron those before the last
    kDenseFirst,       ///< HF counts leading dense layers, Megatron lists every layer
    kExpertRange,      ///< HF gives first, last and interval of the layers with experts
    kExpertNumbers,    ///< HF lists the numbers of the layers with experts, Megatron lists every
                       ///< layer
    kExpertTypes,      ///< HF names every layer's MLP, Megatron says which have experts
    kIndexerLayers,    ///< HF names every layer's indexer, Megatron has a frequency and an offset
    kInverted,         ///< a list of 0 and 1, exchanged; of layer types 1 for whole attention
    kListed,           ///< HF has numbers under keys of their own, Megatron lists them
    kSparseStep,       ///< HF gives a step and exceptions, Megatron lists every layer
    kAlike,            ///< the values of `hf` must be the same: Megatron cannot tell them apart
    kLinearAttention,  ///< HF lists every layer's attention or an interval, Megatron likewise
    kBlockPattern,     ///< HF lists every layer's block, Megatron has a letter for each
    kWindowLayers,     ///< HF names every layer's attention, Megatron says which have the window
    kWindowPattern,    ///< the same, and Megatron says how the two kinds alternate
    kInverseSqrt,      ///< Megatron has one over the square root of HF's number
    kFraction,         ///< Megatron has HF's number as a fraction of `size`
    kEncoded,          ///< Megatron has JSON text of an object with HF's list of objects
  };
  std::string name;
  Kind kind = Kind::kPair;
  std::vector<std::string> hf;
  std::vector<std::string> args;
  std::optional<ArgValue> value;                   ///< a constant of the family
  std::optional<SizeExpr> size;                    ///< computed from sizes
  std::optional<ArgValue> fallback;                ///< the HF value where nothing says it
  std::vector<std::pair<ArgValue, ArgValue>> map;  ///< HF value, argument
  std::optional<ArgValue> otherwise;               ///< the argument for HF values that `map` lacks
  std::optional<ArgValue> when_set;  ///< the HF value that a non-null argument implies
  std::optional<ArgValue> unset;     ///< the HF value that an argument which is None implies
  std::vector<std::pair<std::string, ArgValue>> conditions;  ///< HF key, value it must have
  bool integer = false;                                      ///< Megatron wants a whole number
  bool flag = false;  ///< `size` is written as whether it is not zero
  /// Of rules that list layers: by kind HF names of which exactly the layers of that kind have one.
  /// They count layers as `layer`.
  std::vector<std::pair<std::string, std::vector<NameTemplate>>> shown_by;
  bool inert = false;  ///< Megatron-Core computes nothing with the argument
};

}  // namespace shardwright
