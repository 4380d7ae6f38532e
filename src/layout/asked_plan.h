// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/group_plan.h"

namespace shardwright {

/// By what a group shares out what its members asked for.
struct AskedRule {
  BytePrice price;
  /// Whatever lies in the own file of a member that needs it is that member's to read: for objects,
  /// which are small, and stored once for all.
  bool by_owner = false;
};

/// Who of the one group of `needs` reads what. Chunks go by plan_per_chunk or plan_per_name, as
/// plan_loads chooses; where a byte is cheaper to read than to send, and the heaviest member would
/// pay less if it read all that it needs, each member reads for itself alone and nothing is sent. A
/// member reads its files one after another, each from its beginning on. Pure, and the same on
/// every rank that knows the same.
[[nodiscard]] GroupPlan plan_members(const LoadNeeds& needs, const AskedRule& rule);

/// What of a chunk belongs into a box that a member asked for.
struct AskedPart {
  std::uint32_t read = 0;    ///< index into GroupPlan::reads
  std::uint32_t member = 0;  ///< who asked: another member than the reader gets it sent
  std::uint32_t asked = 0;   ///< index into what it asked for
  Box box;                   ///< of the tensor
};

/// Everything that was asked for, each part of it once, in the order of the reads.
/// REQUIRES: `asked` is what `needs` and the plan are of.
[[nodiscard]] std::vector<AskedPart> parts_of_plan(const LoadNeeds& needs,
                                                   std::span<const std::vector<AskedBox>> asked,
                                                   const GroupPlan& plan);

}  // namespace shardwright
