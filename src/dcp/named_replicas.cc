// SPDX-License-Identifier: Apache-2.0
#include "dcp/named_replicas.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "dcp/replica_name.h"
#include "layout/shard_contents.h"
#include "tensor/coverage.h"

namespace shardwright {
namespace {

constexpr std::string_view kWayOut =
    "--exclude leaves tensors out by name, and --replica N takes the copies of tensor rank N";

// What is stored of one tensor: its number in the catalog, and what its name says.
struct Member {
  std::size_t index = 0;
  std::optional<std::int64_t> replica;
  bool is_shadow = false;
};

// By the tensor's name, which is a part of a name in the catalog. The tensor itself comes first,
// then the copies of tensor ranks, then shadows: what is first is read.
using Groups = std::map<std::string_view, std::vector<Member>>;

Groups groups_in(const Catalog& catalog) {
  Groups groups;
  const std::vector<StoredTensor>& tensors = catalog.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].copies.empty()) continue;  // it was folded
    const auto name = parse_replica_name(tensors[i].desc.name);
    if (name) groups[name->tensor].push_back({i, name->replica, name->is_shadow});
  }
  if (groups.empty()) return groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto own = groups.find(tensors[i].desc.name);
    if (own != groups.end()) own->second.push_back({i, std::nullopt, false});
  }
  for (auto& [tensor, members] : groups) {
    std::ranges::sort(members, {}, [](const Member& member) {
      return std::tuple(member.is_shadow, member.replica, member.index);
    });
  }
  return groups;
}

using Corners = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;

Corners corners_of(const Box& box) {
  return {{box.origin.begin(), box.origin.end()}, {box.shape.begin(), box.shape.end()}};
}

std::set<Corners> boxes_of(const ChunkList& chunks) {
  std::set<Corners> boxes;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!chunks.box(i).is_empty()) boxes.insert(corners_of(chunks.box(i)));
  }
  return boxes;
}

void append_chunks(const ChunkList& from, ChunkList& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to.push_back(from[i]);
}

std::string kind_of(const StoredTensor& tensor) {
  return fmt::format("{} {}", torch_name(tensor.desc.dtype), to_string(tensor.desc.shape));
}

// Why pieces of one cut across pieces of another; empty where equal boxes and disjoint ones are all
// there are. Mostly each has the boxes of the first.
std::string crossing(const Catalog& catalog, const std::vector<Member>& members) {
  const StoredTensor& first = catalog.tensors[members.front().index];
  const std::set<Corners> boxes = boxes_of(first.chunks);
  const bool are_alike = std::ranges::all_of(members, [&](const Member& member) {
    const ChunkList& chunks = catalog.tensors[member.index].chunks;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (!chunks.box(i).is_empty() && !boxes.contains(corners_of(chunks.box(i)))) return false;
    }
    return true;
  });
  if (are_alike) return {};
  StoredTensor all{first.desc, ChunkList(first.chunks.axes())};
  std::vector<std::size_t> whose;
  for (const Member& member : members) {
    append_chunks(catalog.tensors[member.index].chunks, all.chunks);
    whose.resize(all.chunks.size(), member.index);
  }
  const auto defects = coverage_defects(all, Replicas::kAllowed, 1);
  if (!defects || defects->empty() || defects->front().code != Code::kOverlap) return {};
  const CoverageDefect& defect = defects->front();
  return translated("its piece {} is cut otherwise than {} of {}",
                    to_string(all.chunks.box(defect.other)), to_string(defect.box),
                    catalog.tensors[whose[defect.chunk]].desc.name);
}

// Why they are not one tensor; empty where they are.
std::string misfit(const Catalog& catalog, const std::vector<Member>& members) {
  const StoredTensor& first = catalog.tensors[members.front().index];
  for (const Member& member : members) {
    const StoredTensor& copy = catalog.tensors[member.index];
    if (copy.desc.dtype != first.desc.dtype || !(copy.desc.shape == first.desc.shape)) {
      return translated("tensor {}: it is {}, and {} is {}", copy.desc.name, kind_of(copy),
                        first.desc.name, kind_of(first));
    }
    if (copy.encoding != first.encoding) {
      return translated("tensor {}: only one of it and {} is compressed", copy.desc.name,
                        first.desc.name);
    }
  }
  std::string why = crossing(catalog, members);
  if (why.empty()) return why;
  return fmt::format("tensor {}: {}", catalog.tensors[members.back().index].desc.name, why);
}

void erase_tensors(Catalog& catalog, const std::vector<bool>& is_gone) {
  std::vector<StoredTensor> kept;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    if (!is_gone[i]) kept.push_back(std::move(catalog.tensors[i]));
  }
  catalog.tensors = std::move(kept);
}

bool is_numbered(const StoredTensor& tensor) {
  return std::ranges::any_of(tensor.copies,
                             [](const StoredCopy& copy) { return copy.replica.has_value(); });
}

bool is_numbered(const std::vector<Member>& members) {
  return std::ranges::any_of(members,
                             [](const Member& member) { return member.replica.has_value(); });
}

std::set<std::int64_t> numbers_of(const StoredTensor& tensor) {
  std::set<std::int64_t> numbers;
  for (const StoredCopy& copy : tensor.copies) {
    if (copy.replica) numbers.insert(*copy.replica);
  }
  return numbers;
}

std::optional<std::int64_t> ranks_of(const StoredTensor& tensor, const TensorRanks& ranks) {
  return is_expert_tensor(tensor.desc.name) ? ranks.experts : ranks.all;
}

std::unexpected<Error> lacks_replica(std::string_view tensor, std::int64_t replica,
                                     const std::set<std::int64_t>& stored) {
  return fail(Code::kUsage,
              "--replica {}: tensor {} has no copy of that tensor rank; it has those of {}",
              replica, tensor, fmt::join(stored, ", "));
}

// Forgets all but one rank's copies of tensors whose copies could not be made one.
Status take_unfolded(Catalog& catalog, std::int64_t replica) {
  std::vector<bool> is_gone(catalog.tensors.size(), false);
  for (const auto& [tensor, members] : groups_in(catalog)) {
    if (!is_numbered(members)) continue;
    std::set<std::int64_t> stored;
    for (const Member& member : members) {
      if (member.replica) stored.insert(*member.replica);
      is_gone[member.index] = member.replica != replica;
    }
    if (!stored.contains(replica)) return lacks_replica(tensor, replica, stored);
  }
  erase_tensors(catalog, is_gone);
  fold_replicas(catalog);
  return {};
}

void take_folded(StoredTensor& tensor, std::int64_t replica) {
  ChunkList chosen(tensor.chunks.axes());
  std::size_t at = 0;
  for (const StoredCopy& copy : tensor.copies) {
    for (const std::size_t end = at + copy.chunks; at < end; ++at) {
      if (copy.replica == replica) chosen.push_back(tensor.chunks[at]);
    }
  }
  tensor.chunks = std::move(chosen);
  tensor.copies.clear();
}

Status check_numbers(const StoredTensor& tensor, const TensorRanks& ranks) {
  const std::optional<std::int64_t> count = ranks_of(tensor, ranks);
  if (!count) return {};
  for (const StoredCopy& copy : tensor.copies) {
    if (copy.replica.value_or(0) < *count) continue;
    return fail(
        Code::kReplicaKeys,
        "tensor {}: found a copy of tensor rank {}, but the run that saved it had {} tensor "
        "ranks for it, numbered from 0; the copy belongs to another save, or the run's "
        "arguments do; {}",
        copy.name, *copy.replica, *count, kWayOut);
  }
  return {};
}

Status refuse_mark(std::string_view what, std::string_view name) {
  return fail(Code::kReplicaKeys,
              "{} {}: the name says that it is one rank's copy of something else, and no model "
              "looks for it; --exclude leaves it out",
              what, name);
}

// Names and numbers of one kind of tensors, the first of them by name.
struct Told {
  std::size_t count = 0;
  std::string first;

  void add(const std::string& name) {
    if (++count == 1 || name < first) first = name;
  }
};

// Which ranks' copies of a tensor are not there, or not whole.
std::vector<std::int64_t> missing_copies(const StoredTensor& tensor, const TensorRanks& ranks) {
  const std::set<std::int64_t> named = numbers_of(tensor);
  if (named.empty()) return {};
  const std::int64_t seen = *named.rbegin() + 1;
  std::set<std::int64_t> stored;  // a shadow is none
  for (const StoredCopy& copy : tensor.copies) {
    if (copy.replica && !copy.is_shadow) stored.insert(*copy.replica);
  }
  std::vector<std::int64_t> missing;
  constexpr std::size_t kMostTold = 8;  // numbers may be anything
  const std::int64_t count = ranks_of(tensor, ranks).value_or(seen);
  for (std::int64_t rank = 0; rank < count && missing.size() < kMostTold; ++rank) {
    if (!stored.contains(rank)) missing.push_back(rank);
  }
  const std::size_t all = boxes_of(tensor.chunks).size();
  for (std::size_t i = 0; i < tensor.copies.size(); ++i) {
    const StoredCopy& copy = tensor.copies[i];
    if (copy.is_shadow || !copy.replica) continue;
    if (boxes_of(tensor_of_copy(tensor, i).chunks).size() < all) missing.push_back(*copy.replica);
  }
  std::ranges::sort(missing);
  return missing;
}

}  // namespace

void fold_replicas(Catalog& catalog) {
  std::vector<StoredTensor>& tensors = catalog.tensors;
  std::vector<bool> is_gone(tensors.size(), false);
  std::vector<std::pair<std::size_t, std::string>> names;  // views of names end with the names
  for (const auto& [tensor, members] : groups_in(catalog)) {
    if (!misfit(catalog, members).empty()) continue;
    StoredTensor& all = tensors[members.front().index];
    std::vector<StoredCopy> copies;
    for (const Member& member : members) {
      const StoredTensor& copy = tensors[member.index];
      copies.push_back({copy.desc.name, member.replica, member.is_shadow, copy.chunks.size()});
      if (&copy == &all) continue;
      append_chunks(copy.chunks, all.chunks);
      is_gone[member.index] = true;
    }
    all.copies = std::move(copies);
    names.emplace_back(members.front().index, tensor);
  }
  if (names.empty()) return;
  for (auto& [index, name] : names) tensors[index].desc.name = std::move(name);
  erase_tensors(catalog, is_gone);
}

Status check_replica_names(const Catalog& catalog, const TensorRanks& ranks, Defects& defects) {
  const Groups groups = groups_in(catalog);
  for (const auto& [tensor, members] : groups) {
    const std::string why = misfit(catalog, members);
    const std::string& name = catalog.tensors[members.back().index].desc.name;
    if (why.empty()) {
      SW_TRY(defects.report(refuse_mark("tensor", name)));
      continue;
    }
    SW_TRY(defects.report(fail(Code::kReplicaKeys,
                               "{}; ranks stored {} apart, and their copies "
                               "must be alike; {}",
                               why, tensor, kWayOut)));
  }
  for (const StoredTensor& tensor : catalog.tensors) {
    SW_TRY(defects.report(check_numbers(tensor, ranks)));
    const std::string& name = tensor.desc.name;
    const bool is_told = !tensor.copies.empty() || parse_replica_name(name);
    if (is_told || !has_replica_mark(name)) continue;
    SW_TRY(defects.report(refuse_mark("tensor", name)));
  }
  for (const StoredObject& object : catalog.objects) {
    if (!has_replica_mark(object.name)) continue;
    SW_TRY(defects.report(refuse_mark("entry", object.name)));
  }
  return {};
}

std::vector<std::string> describe_replicas(const Catalog& catalog, const TensorRanks& ranks) {
  Told numbered;
  Told shadowed;
  Told bare;
  Told incomplete;
  std::set<std::int64_t> missing;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.copies.empty()) continue;
    const std::string& name = tensor.desc.name;
    const bool has_numbers = is_numbered(tensor);
    if (has_numbers) numbered.add(name);
    if (std::ranges::any_of(tensor.copies, &StoredCopy::is_shadow)) shadowed.add(name);
    if (has_numbers && tensor.copies.front().name == name) bare.add(name);
    const std::vector<std::int64_t> lacking = missing_copies(tensor, ranks);
    if (!lacking.empty()) incomplete.add(name);
    missing.insert(lacking.begin(), lacking.end());
  }
  std::vector<std::string> notes;
  const auto tell = [&](const Told& told, std::string_view what) {
    if (told.count == 0) return;
    const bool is_one = told.count == 1;
    notes.push_back(translated("{} tensor{}, {} the first, {} {}", told.count, is_one ? "" : "s",
                               told.first, is_one ? "is" : "are", what));
  };
  tell(numbered,
       "stored once by each tensor rank, as NAME.__tp_replica_RANK: the copies are taken for "
       "replicas of NAME");
  tell(shadowed,
       "stored once more in part, as __shadow_RANK__NAME, for the ranks that load them: those are "
       "taken for replicas of NAME");
  tell(bare, "stored without a tensor rank too: that is taken for one more replica");
  tell(incomplete, translated("without the whole copy of tensor rank {}: the other copies serve",
                              fmt::join(missing, ", ")));
  return notes;
}

bool has_numbered_replicas(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const auto name = parse_replica_name(tensor.desc.name);
    return is_numbered(tensor) || (name && name->replica);
  });
}

Result<std::string> take_replica(Catalog& catalog, std::int64_t replica) {
  if (!has_numbered_replicas(catalog)) {
    return fail(Code::kUsage,
                "--replica {}: no tensor has copies that tensor ranks stored under names of their "
                "own (NAME.__tp_replica_RANK); leave the flag out",
                replica);
  }
  SW_TRY(take_unfolded(catalog, replica));
  Told taken;
  for (StoredTensor& tensor : catalog.tensors) {
    if (!is_numbered(tensor)) continue;
    const std::set<std::int64_t> stored = numbers_of(tensor);
    if (!stored.contains(replica)) return lacks_replica(tensor.desc.name, replica, stored);
    take_folded(tensor, replica);
    taken.add(tensor.desc.name);
  }
  return translated(
      "--replica {}: {} tensors, {} the first, are taken as tensor rank {} stored them; what other "
      "ranks hold is not looked at",
      replica, taken.count, taken.first, replica);
}

StoredTensor tensor_of_copy(const StoredTensor& tensor, std::size_t copy) {
  StoredTensor one{tensor.desc, ChunkList(tensor.chunks.axes()), tensor.encoding};
  one.desc.name = tensor.copies[copy].name;
  std::size_t at = 0;
  for (std::size_t i = 0; i < copy; ++i) at += tensor.copies[i].chunks;
  for (const std::size_t end = at + tensor.copies[copy].chunks; at < end; ++at) {
    one.chunks.push_back(tensor.chunks[at]);
  }
  return one;
}

}  // namespace shardwright
