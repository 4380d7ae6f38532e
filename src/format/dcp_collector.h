// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/dcp_metadata.h"
#include "format/string_pool.h"
#include "shardwright/error.h"

namespace shardwright::dcp {

/// Builds the catalog of a `.metadata` file from its entries, in whatever order they come, and
/// checks each of them. Names are numbers in strings().
class Collector {
 public:
  /// `defects` may be null: then the first one is the error.
  explicit Collector(Defects* defects = nullptr) : defects_(defects) {}

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
  void add_original_shape(std::uint32_t name, const Dims& shape);
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
  };
  struct Pending {
    Entry entry;
    std::vector<std::int64_t> origin;
    std::vector<std::uint32_t> transforms;
  };
  Target& target(std::uint32_t name);
  Status check_name(std::uint32_t name) const;
  Result<DType> dtype_of(const Tensor& tensor);
  Result<std::uint32_t> file_of(std::uint32_t path, std::uint32_t name);
  Status place_chunk(StoredTensor& tensor, std::uint32_t number, const Entry& entry,
                     std::uint32_t file);
  std::optional<std::size_t> find_chunk(std::uint32_t number, const Entry& entry);
  static bool lies_at(const Box& box, const Entry& entry);
  const std::vector<std::uint32_t>& order_of(std::uint32_t number);
  static Status resolve_run(StoredTensor& tensor, std::span<const std::uint32_t> run);
  Status resolve(std::uint32_t number);

  Status report(Status status) const;
  Status keep_chunks_inside(const Tensor& tensor, ChunkList& chunks) const;

  Defects* defects_;
  StringPool strings_;
  DcpMetadata found_;
  std::vector<Target> targets_;                     // by name
  std::vector<std::uint32_t> file_numbers_;         // by path, kUnknown where not seen
  std::vector<std::vector<std::uint32_t>> orders_;  // per tensor: chunks by origin, when needed
  std::vector<Pending> pending_;
};

}  // namespace shardwright::dcp
