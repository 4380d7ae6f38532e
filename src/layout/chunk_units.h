// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "layout/load_needs.h"

namespace shardwright {

/// A unit in one of the files that have it.
struct UnitPlace {
  std::uint32_t unit = 0;
  std::uint32_t chunk = 0;  ///< index into the tensor's ChunkList
  std::uint32_t file = 0;
  std::uint32_t file_order = 0;  ///< of the file, by how much of it the group needs: most first
  std::uint64_t bytes = 0;
};

/// The stored regions that a group needs, each once, however many of its shards meet it. Borrows
/// the needs.
class ChunkUnits {
 public:
  ChunkUnits(const LoadNeeds& needs, std::uint32_t group);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(units_.size()); }
  [[nodiscard]] std::uint32_t tensor(std::uint32_t unit) const { return parts_of(unit).tensor; }
  /// A number for the members that need some of it; units with one number have the same.
  [[nodiscard]] std::uint32_t holders_number(std::uint32_t unit) const {
    return units_[unit].holders;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& holders(std::uint32_t unit) const {
    return holders_[units_[unit].holders];
  }
  /// Where it is first mentioned among the group's NeededChunks.
  [[nodiscard]] std::uint32_t mention(std::uint32_t unit) const { return parts_of(unit).mention; }

  /// The file in which `owner`, a member that needs it, stored it; nullopt for none.
  struct Own {
    UnitPlace place;
    std::uint32_t member = 0;
  };
  [[nodiscard]] std::optional<Own> own_place(std::uint32_t unit) const;
  /// The place in the member's own file, or where it has none the usual one.
  [[nodiscard]] UnitPlace place_for(std::uint32_t unit, std::uint32_t member) const;
  /// The place in the file that the group needs most of, so that few are opened.
  [[nodiscard]] UnitPlace usual_place(std::uint32_t unit) const;

  /// Whether only other groups' ranks would save it.
  [[nodiscard]] bool is_elsewhere(std::uint32_t unit) const { return units_[unit].is_elsewhere; }
  /// What others need of it where one member reads it.
  [[nodiscard]] std::uint64_t sent_by(std::uint32_t unit, std::uint32_t member) const;
  [[nodiscard]] std::uint64_t needed_bytes(std::uint32_t unit) const {
    return units_[unit].needed_bytes;
  }

 private:
  // What one shard takes of a unit.
  struct Part {
    std::uint32_t tensor = 0;
    std::uint32_t mention = 0;
    std::uint32_t holders = 0;
    bool is_elsewhere = false;
  };
  struct Unit {
    std::uint32_t first = 0;  // of its parts
    std::uint32_t parts = 0;
    std::uint32_t holders = 0;
    std::uint64_t needed_bytes = 0;
    bool is_elsewhere = true;
  };

  [[nodiscard]] const Part& parts_of(std::uint32_t unit) const {
    return parts_[units_[unit].first];
  }
  [[nodiscard]] const NeededChunk& chunk_of(const Part& part) const {
    return all_.chunks[part.mention];
  }
  [[nodiscard]] UnitPlace place(std::uint32_t unit, std::uint32_t copy) const;
  void find_units();
  void order_files();
  [[nodiscard]] std::uint32_t joined(std::uint32_t a, std::uint32_t b);

  const LoadNeeds& needs_;
  const GroupNeeds& all_;
  std::uint32_t group_;
  std::vector<Part> parts_;  // those of a unit behind each other
  std::vector<Unit> units_;
  std::vector<std::vector<std::uint32_t>> holders_;
  std::unordered_map<std::uint64_t, std::uint32_t> joined_;
  std::unordered_map<std::uint32_t, std::uint32_t> file_orders_;
};

}  // namespace shardwright
