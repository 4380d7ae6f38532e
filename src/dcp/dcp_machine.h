// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/pickle_token.h"
#include "dcp/dcp_collector.h"
#include "dcp/dcp_heap.h"
#include "dcp/dcp_metadata.h"
#include "dcp/dcp_references.h"

namespace shardwright::dcp {

class RawReader;

/// The second pass over a `.metadata`: a pickle machine whose values are 16 bytes and which knows
/// the few classes of the format. An object becomes what it says at its BUILD (a chunk: two places
/// in an array of integers), goes to the Collector when it lands in a dict, and is gone. All else
/// is an opaque value without contents. Nothing is imported or called.
class Machine {
 public:
  Machine(pickle::Input& input, const DcpMetadataOptions& options, const References& references);
  [[nodiscard]] Result<DcpMetadata> run();
  /// Whether the failure is due to the detour: a slot was fetched that only the part passed over
  /// sets. Reading again without a detour will tell.
  [[nodiscard]] bool missed_a_slot() const { return missed_a_slot_; }
  /// What the part that was read would do in a loader that obeys it, also when run() failed.
  [[nodiscard]] pickle::Audit audit() const;

 private:
  struct Mark {
    std::uint32_t stack_size;
    std::uint32_t heap_height;
  };

  // Opcodes. False: error_ is set.
  bool step(const pickle::Token& token);
  bool rare(const pickle::Token& token);
  bool refuse_opcode(const pickle::Token& token);
  bool push(const Cell& cell);
  bool push_string(std::string_view text);
  bool push_bytes_as_int(std::string_view little_endian);
  bool has(std::size_t count);
  Cell pop();
  bool memoize(std::uint64_t slot);
  bool fetch(std::uint64_t slot);
  bool fetch_and_begin_object(std::uint64_t slot);
  void note_slot(const Cell& cell, std::uint64_t slot);
  bool open_mark();
  bool close_mark(std::size_t& first);
  bool tuple(std::size_t first);
  bool small_tuple(std::size_t count);
  bool has_memory();
  bool empty_dict() { return has_memory() && push({Tag::kDict, 0, 0, heap_.new_dict(), 0, 0}); }
  bool empty_list() { return has_memory() && push({Tag::kList, 0, 0, heap_.new_list(), 0, 0}); }
  [[nodiscard]] std::uint64_t memory_of(std::span<const Cell> elements) const;
  std::size_t append_chunks(ListRecord& list, std::span<const Cell> elements);
  bool append_all(const Cell& target, std::span<const Cell> elements);
  bool appends();
  bool set_items();
  bool set_pair(const Cell& target, const Cell& key, const Cell& value);
  bool stack_global();
  bool push_global(std::string_view module, std::string_view name);
  bool push_known_global(std::uint32_t module, std::uint32_t name);
  void note_call(const Cell& callable);
  bool reduce();
  bool new_object();
  bool build();
  Cell tuple_of(std::span<const Cell> elements);

  // Whole objects as CPython writes them (dcp_machine_fast.cc). False: nothing was read, take the
  // opcodes one by one.
  bool fast_object(const Cell& cls);
  bool fast_chunk(RawReader& raw, Cell& result);
  bool fast_index(RawReader& raw, Cell& result);
  bool fast_info(RawReader& raw, Cell& result);
  bool fast_size(RawReader& raw, std::uint8_t& axes, std::uint32_t& place);
  bool fast_string(RawReader& raw, std::uint32_t& id);

  // What objects mean (dcp_machine_objects.cc).
  bool built(const Cell& object, const Cell& state, Cell& result);
  bool build_chunk(const DictRecord& dict, Cell& result);
  bool build_index(const DictRecord& dict, Cell& result);
  bool build_info(const DictRecord& dict, Cell& result);
  void compare_generations(Class known, const Cell& state);
  bool build_properties(Class known, const Cell& state, Cell& result);
  Cell dims_of(const Cell* cell);
  /// The same of a size or an origin in the metadata, which should be no list.
  Cell described_dims(const Cell* cell);
  bool store_pair(std::uint32_t record, const Cell& key, const Cell& value);
  bool take_role(std::uint32_t& owner, std::uint32_t record, std::string_view what);
  bool collect_tensor(std::uint32_t name, const Cell& tensor);
  bool collect_storage(const Cell& index, const Cell& info);
  bool collect_path(std::uint32_t name, const Cell& path);
  [[nodiscard]] Result<DcpMetadata> finish(const Cell& root);
  Status check_dict(const DictRecord& root, Key key, std::uint32_t owner);

  bool refuse(Code code, std::string_view message);
  bool refuse(Status status);
  [[nodiscard]] std::string class_name(const Cell& object) const;
  [[nodiscard]] Class class_of(std::uint32_t module, std::uint32_t name) const;

  pickle::Tokenizer tokens_;
  const DcpMetadataOptions& options_;
  const References& references_;
  Collector collector_;
  Heap heap_;
  std::vector<Cell> stack_;
  std::size_t fence_ = 0;  // stack size at the last open mark
  std::vector<Mark> marks_;
  std::vector<Cell> memo_;
  std::vector<bool> memo_set_;
  std::uint64_t memo_size_ = 0;
  std::array<std::uint32_t, kKeyCount> key_slots_;  // memo slots of the attributes' names
  std::uint32_t size_slot_ = kNone32;               // and of torch.Size
  std::uint32_t tensors_dict_ = kNone32;
  std::uint32_t storage_dict_ = kNone32;
  std::uint32_t shapes_dict_ = kNone32;
  std::uint32_t paths_dict_ = kNone32;
  bool stored_in_slot_ = false;  // a value with places or records, by the last SETITEMS
  bool missed_a_slot_ = false;
  std::set<std::pair<std::uint32_t, std::uint32_t>> globals_;  // module and name
  pickle::Audit audit_;                                        // of all else
  std::optional<Error> error_;
};

}  // namespace shardwright::dcp
