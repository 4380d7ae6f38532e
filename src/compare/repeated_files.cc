// SPDX-License-Identifier: Apache-2.0
#include "compare/repeated_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/crc32.h"
#include "base/fail.h"
#include "base/translated.h"
#include "compare/file_parts.h"
#include "compare/stacked_layers.h"
#include "io/same_bytes.h"
#include "layout/layer_name.h"
#include "layout/shard_contents.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kProbeBytes = 256;
constexpr std::size_t kProbes = 2;       // of experts, and as many of what is none
constexpr std::size_t kMostProbed = 16;  // of each, where the first ones are constant
constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::size_t kFewestMatrices = 2;

bool is_constant(std::span<const std::byte> bytes, std::size_t element) {
  return bytes.size() <= element ||
         std::ranges::equal(bytes.subspan(element), bytes.first(bytes.size() - element));
}

// Two files may each lack a byte that the other has to fill: ZeRO 3 cuts off its padding.
bool may_be_alike(const FileParts& file, const FilePart& part, const FileParts& other,
                  const FilePart& theirs) {
  if (part.run_count == 1 && theirs.run_count == 1) {
    return std::min(part.bytes, theirs.bytes) * 2 >= std::max(part.bytes, theirs.bytes);
  }
  return std::ranges::equal(file.runs_of(part), other.runs_of(theirs), {}, &ByteRange::length,
                            &ByteRange::length);
}

// What comparing two files shows.
struct Likeness {
  enum class Kind : std::uint8_t { kDiffer, kReplicas, kRepeats } kind = Kind::kDiffer;
  std::uint32_t first_tensor = 0;  // of those alike
  std::size_t matrices = 0;        // alike that should not be
  std::size_t certain = 0;         // of them, that nobody makes alike
};

class FileComparison {
 public:
  FileComparison(const Catalog& catalog, SourceFiles& files) : catalog_(catalog), files_(files) {}

  // A digest of what tells a file from others; empty for one that holds nothing but constants.
  Result<std::string> probe(const FileParts& file) {
    std::vector<const FilePart*> parts;
    for (const FilePart& part : file.parts) {
      if (is_matrix(part)) parts.push_back(&part);
    }
    std::ranges::stable_sort(parts, std::ranges::greater(), [&](const FilePart* part) {
      return element_count(desc(*part).shape).value_or(0);
    });
    std::string digest;
    for (const bool experts : {false, true}) {
      std::size_t tried = 0;
      std::size_t taken = 0;
      for (const FilePart* part : parts) {
        if (is_expert(*part) != experts) continue;
        if (taken == kProbes || tried++ == kMostProbed) break;
        const ByteRange first = file.runs_of(*part).front();
        std::vector<std::byte> bytes(std::min(kProbeBytes, first.length));
        SW_TRY(files_.read_at(file.file, first.offset, bytes));
        if (is_constant(bytes, element_of(*part))) continue;
        ++taken;
        digest += fmt::format("{}:{:08x} ", part->tensor, crc32(bytes));
      }
    }
    return digest;
  }

  Result<Likeness> compare(const FileParts& a, const FileParts& b) {
    Likeness likeness;
    if (!std::ranges::equal(a.parts, b.parts, {}, &FilePart::tensor, &FilePart::tensor))
      return likeness;
    std::vector<std::size_t> others;  // parts that should differ
    for (std::size_t i = 0; i < a.parts.size(); ++i) {
      if (std::ranges::equal(origin_of(a.parts[i]), origin_of(b.parts[i]))) continue;
      if (!may_be_alike(a, a.parts[i], b, b.parts[i])) return likeness;
      others.push_back(i);
    }
    if (others.empty()) {
      likeness.kind = Likeness::Kind::kReplicas;
      return likeness;
    }
    // The first blocks of all before the whole of any.
    for (const std::uint64_t limit : {kBlockBytes, ~std::uint64_t{0}}) {
      for (const std::size_t i : others) {
        if (!SW_TRY(are_same(a, a.parts[i], b, b.parts[i], limit))) return likeness;
      }
    }
    for (const std::size_t i : others) SW_TRY(count(a, a.parts[i], b.parts[i], likeness));
    if (likeness.matrices >= kFewestMatrices) likeness.kind = Likeness::Kind::kRepeats;
    return likeness;
  }

 private:
  [[nodiscard]] const TensorDesc& desc(const FilePart& part) const {
    return catalog_.tensors[part.tensor].desc;
  }
  [[nodiscard]] std::span<const std::int64_t> origin_of(const FilePart& part) const {
    return catalog_.tensors[part.tensor].chunks.origin(part.first_chunk);
  }
  // Mamba's vectors begin alike on every rank, and in every layer.
  [[nodiscard]] bool is_matrix(const FilePart& part) const {
    const auto layer = split_layer_name(desc(part).name);
    return desc(part).shape.size() > (layer && !layer->index ? 2 : 1);
  }
  [[nodiscard]] bool is_expert(const FilePart& part) const {
    return is_expert_tensor(desc(part).name);
  }
  [[nodiscard]] std::size_t element_of(const FilePart& part) const {
    return static_cast<std::size_t>(bytes_of(desc(part).dtype));
  }

  Result<bool> are_same(const FileParts& a, const FilePart& left, const FileParts& b,
                        const FilePart& right, std::uint64_t limit) {
    const std::span<const ByteRange> ours = a.runs_of(left);
    const std::span<const ByteRange> theirs = b.runs_of(right);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const std::uint64_t length = std::min(ours[i].length, theirs[i].length);
      const auto differs = SW_TRY(first_difference(
          files_, {a.file, ours[i].offset}, {b.file, theirs[i].offset}, std::min(limit, length)));
      if (differs) return false;
    }
    return true;
  }

  // What comes of gradients is no longer alike where the weights were.
  [[nodiscard]] bool is_moment(const FilePart& part) const {
    const auto state = split_state_name(desc(part).name);
    return state && state->kind != kStateKinds.front();
  }

  // Whether the parts are of other layers of one stack, and nothing else tells them apart.
  [[nodiscard]] bool differ_by_layer(const FilePart& left, const FilePart& right) const {
    const auto layer = split_layer_name(desc(left).name);
    const auto ours = origin_of(left);
    const auto theirs = origin_of(right);
    if (!layer || layer->index || ours.front() == theirs.front()) return false;
    return std::ranges::equal(ours.subspan(1), theirs.subspan(1));
  }

  Status count(const FileParts& file, const FilePart& left, const FilePart& right,
               Likeness& likeness) {
    if (!is_matrix(left)) return {};
    const ByteRange first = file.runs_of(left).front();
    std::vector<std::byte> bytes(std::min(kBlockBytes, first.length));
    SW_TRY(files_.read_at(file.file, first.offset, bytes));
    if (is_constant(bytes, element_of(left))) return {};
    if (likeness.matrices++ == 0) likeness.first_tensor = left.tensor;
    const bool may_be_copied = is_expert(left) || differ_by_layer(left, right);
    if (!may_be_copied || is_moment(left)) ++likeness.certain;
    return {};
  }

  const Catalog& catalog_;
  SourceFiles& files_;
};

// A file that repeats another one, as a job tells it.
struct Repetition {
  std::uint64_t file = 0;
  std::uint64_t original = 0;
  std::uint64_t tensor = 0;
  std::uint64_t matrices = 0;
  std::uint64_t is_certain = 0;
};

void append(std::string& text, const Repetition& repetition) {
  text += fmt::format("{} {} {} {} {}\n", repetition.file, repetition.original, repetition.tensor,
                      repetition.matrices, repetition.is_certain);
}

// Of what append() made.
std::vector<Repetition> repetitions_in(std::string_view text) {
  std::vector<Repetition> repetitions;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    Repetition next;
    for (std::uint64_t* number :
         {&next.file, &next.original, &next.tensor, &next.matrices, &next.is_certain}) {
      at = std::from_chars(at, end, *number).ptr + 1;
    }
    repetitions.push_back(next);
  }
  return repetitions;
}

// Each of the files with those in front of it that it may be like.
Result<std::string> find_repetitions(const SharedFiles& shared, std::span<const std::size_t> alike,
                                     FileComparison& comparison) {
  std::string found;
  std::vector<std::size_t> originals;
  for (const std::size_t index : alike) {
    const FileParts file = shared[index];
    bool is_new = true;
    for (const std::size_t earlier : originals) {
      const FileParts original = shared[earlier];
      const Likeness likeness = SW_TRY(comparison.compare(original, file));
      if (likeness.kind != Likeness::Kind::kRepeats) continue;
      append(found, {file.file, original.file, likeness.first_tensor, likeness.matrices,
                     likeness.certain >= kFewestMatrices ? 1U : 0U});
      is_new = false;
      break;
    }
    if (is_new) originals.push_back(index);
  }
  return found;
}

// Files that probes do not tell apart, in the order of the first of each.
std::vector<std::vector<std::size_t>> alike_by_probe(std::span<const std::string> probes) {
  std::map<std::string_view, std::size_t> places;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    if (probes[i].empty()) continue;
    const auto [place, is_new] = places.emplace(probes[i], groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(i);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

std::string suspicion(const Catalog& catalog, const Repetition& repetition) {
  return translated(
      "{}: its parts of {} tensors are those that {} holds, byte by byte (the first: {}): experts "
      "or layers that were copied when the model was made, or this file was copied over another "
      "one",
      catalog.files[repetition.file], repetition.matrices, catalog.files[repetition.original],
      catalog.tensors[repetition.tensor].desc.name);
}

std::unexpected<Error> refuse_copy(const Catalog& catalog, const Repetition& repetition) {
  return fail(
      Code::kRankMisplaced,
      "{}: its parts of {} tensors are those that {} holds, byte by byte (the first: {}), "
      "expected parts of its own: one file was copied over another; copy it again from "
      "where it was saved, or take the parts as they are with convert's --check-replicas none",
      catalog.files[repetition.file], repetition.matrices, catalog.files[repetition.original],
      catalog.tensors[repetition.tensor].desc.name);
}

// The files of a catalog that repeat others.
Result<std::vector<Repetition>> repetitions_of(const Catalog& catalog, SourceFiles& files,
                                               const Workers& workers) {
  std::vector<Repetition> repetitions;
  const SharedFiles shared(catalog);
  if (shared.size() < 2) return repetitions;

  const auto make_prober = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      return JobResult{SW_TRY(FileComparison(catalog, files).probe(shared[job]))};
    };
  };
  const std::vector<std::uint64_t> probed(shared.size(), 2 * kProbes * kProbeBytes);
  const auto probes = SW_TRY(run_jobs({"comparing files", probed}, workers, make_prober));
  const auto groups = alike_by_probe(probes);
  const auto make_comparer = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      FileComparison comparison(catalog, files);
      return JobResult{SW_TRY(find_repetitions(shared, groups[job], comparison))};
    };
  };
  std::vector<std::uint64_t> compared;
  for (const auto& group : groups) compared.push_back(2 * kBlockBytes * group.size());
  const auto results = SW_TRY(run_jobs({"comparing files", compared}, workers, make_comparer));
  for (const std::string& result : results) {
    for (const Repetition& repetition : repetitions_in(result)) repetitions.push_back(repetition);
  }
  return repetitions;
}

}  // namespace

Result<std::vector<std::string>> check_files(const Checkpoint& checkpoint, const Catalog& located,
                                             ReplicaCheck check, Defects& defects,
                                             const Workers& workers) {
  std::vector<std::string> suspicions;
  if (check == ReplicaCheck::kNone) return suspicions;
  std::set<std::uint64_t> told;
  const auto look_at = [&](const Catalog& catalog) -> Status {
    for (const Repetition& repetition :
         SW_TRY(repetitions_of(catalog, *checkpoint.files, workers))) {
      if (!told.insert(repetition.file).second) continue;
      if (repetition.is_certain == 0) {
        suspicions.push_back(suspicion(catalog, repetition));
      } else {
        SW_TRY(defects.report(refuse_copy(catalog, repetition)));
      }
    }
    return {};
  };
  SW_TRY(look_at(located));
  // A file of a Hugging Face model says itself which layers it has.
  if (checkpoint.location.traits.is_hf_model) return suspicions;
  if (const auto stacks = stack_layers(located)) SW_TRY(look_at(*stacks));
  return suspicions;
}

}  // namespace shardwright
