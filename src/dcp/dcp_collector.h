// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/allowance.h"
#include "dcp/dcp_metadata.h"
#include "dcp/string_pool.h"
#include "shardwright/error.h"

namespace shardwright::dcp {

/// Builds the catalog of a `.metadata` file from its entries, in whatever order they come, and
/// checks each of them. Names are numbers in strings().
class Collector {
 public:
  /// `defects` may be null: then the first one is the error.
  /// `file_bytes` is the size of the `.metadata`: it says how much may be collected.
  explicit Collector(std::uint64_t file_bytes, Defects* defects = nullptr)
      : defects_(defects), allowance_(file_bytes) {}

  /// What is left for the result. Names and chunks may be in the file once and in the result many
  /// times, so everything is counted before it is added.
  [[nodiscard]] Allowance& allowance() { return allowance_; }
  /// What a list of chunks takes for each of them.
  [[nodiscard]] static std::uint64_t chunk_bytes(int axes) {
    return 2 * sizeof(std::int64_t) * static_cast<std::uint64_t>(axes) + sizeof(std::uint32_t) +
           sizeof(ByteRange);
  }

  [[nodiscard]] StringPool& strings() { return strings_; }
  [[nodiscard]] std::string_view text(std::uint32_t id) const { return strings_.text(id); }
  /// The text for a message: control characters, which a terminal would obey, as `\x1b`.
  [[nodiscard]] std::string shown(std::uint32_t id) const;

  struct Tensor {
    std::uint32_t name;
    std::uint32_t dtype_name;
    std::uint32_t layout_name;  // or kUnknown
    Dims size;
  };
  /// Takes the chunks; their locations come with add_storage.
  Status add_tensor(const Tensor& tensor, ChunkList&& chunks);
  Status add_object(std::uint32_t name);

  struct Entry {
    std::uint32_t name;
    std::uint32_t path;
    std::uint32_t hint = kUnknown;  // number of the chunk, as the writer believed
    bool has_box = true;            // whether there is an origin
    std::span<const std::int64_t> origin;
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::span<const std::uint32_t> transforms;
  };
  Status add_storage(const Entry& entry);
  Status add_original_shape(std::uint32_t name, const Dims& shape);
  /// Notes that a size or an origin is a list, where torch compares it with tuples.
  void note_list_as_size() { has_list_as_size_ = true; }
  /// Notes what torch fails on, once.
  void note_obstacle(std::string_view obstacle);
  void add_planner_path(std::uint32_t name, std::vector<PathStep> path);
  void forget_original_shapes() { found_.original_shapes.clear(); }
  void forget_planner_paths() { found_.planner_paths.clear(); }

  /// Checks that all chunks and objects have their place and gives the result.
  Result<DcpMetadata> finish();

  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

 private:
  // What a name stands for: a tensor, an object, or nothing yet.
  struct Target {
    std::uint32_t number = kUnknown;
    bool is_tensor = false;
    bool is_set_aside = false;  // then it has no number in the catalog, whatever `number` is
  };
  struct Pending {
    Entry entry;
    std::vector<std::int64_t> origin;
    std::vector<std::uint32_t> transforms;
  };
  Target& target(std::uint32_t name);
  Status check_name(std::uint32_t name) const;
  Result<DType> dtype_of(const Tensor& tensor);
  Status set_aside(const Tensor& tensor, Error why);
  Result<std::uint32_t> file_of(std::uint32_t path, std::uint32_t name);
  Status place_chunk(StoredTensor& tensor, std::uint32_t number, const Entry& entry,
                     std::uint32_t file);
  std::optional<std::size_t> find_chunk(std::uint32_t number, const Entry& entry);
  static bool lies_at(const Box& box, const Entry& entry);
  const std::vector<std::uint32_t>& order_of(std::uint32_t number);
  static Status resolve_run(StoredTensor& tensor, std::span<const std::uint32_t> run);
  Status resolve(std::uint32_t number);

  Status report(Status status);
  Status keep_chunks_inside(const Tensor& tensor, ChunkList& chunks);

  Status take(std::uint64_t bytes, std::string_view what);

  Defects* defects_;
  Allowance allowance_;
  StringPool strings_;
  DcpMetadata found_;
  bool has_list_as_size_ = false;
  bool has_entry_without_origin_ = false;
  std::vector<Target> targets_;                     // by name
  std::vector<std::uint32_t> file_numbers_;         // by path, kUnknown where not seen
  std::vector<std::vector<std::uint32_t>> orders_;  // per tensor: chunks by origin, when needed
  std::vector<Pending> pending_;
};

}  // namespace shardwright::dcp
