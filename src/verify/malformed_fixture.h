// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <ostream>

#include "verify/planted_fixture.h"

// Checkpoints that are broken in one way each, and what verify calls it.

namespace shardwright {

enum class Base {
  kHf,         // one safetensors file
  kHfIndexed,  // several, with an index
  kHfExperts,
  kTorchDist,  // TP 2, PP 2
  kExperts,    // torch_dist of a mixture of experts, EP 2
  kLegacy,     // TP 2, PP 2
  kDcpPieces,  // an empty folder for a lone `.metadata`
};

struct Malformed {
  const char* name;
  Base base;
  void (*damage)(const Planted&);
  Code code;
  const char* message;
};

inline void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

/// Makes a sound checkpoint, damages it, and expects verify to find nothing before and to name the
/// damage after.
void expect_named(const Malformed& malformed);

}  // namespace shardwright
