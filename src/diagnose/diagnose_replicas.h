// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// What there is to say of replicas that ranks stored under names of their own: who does that (L45,
/// L46) and which of the names make no sense (SW0415). Where `compares`, whatever is stored several
/// times is held against each other, too (SW0411), and so are files (SW0319).
void add_replicas(const Checkpoint& checkpoint, bool compares, Diagnosis& diagnosis);

/// Files that look as if somebody had copied one over another, see check_files(): SW0319.
void add_repeated_files(const Checkpoint& checkpoint, Diagnosis& diagnosis);

}  // namespace shardwright
