// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <unordered_map>

#include "base/fail.h"
#include "convert/replicas.h"
#include "format/torch_items.h"
#include "io/source_files.h"
#include "tensor/coverage.h"
#include "verify/findings.h"
#include "verify/hash.h"
#include "verify/model_check.h"
#include "verify/named_replicas.h"
#include "verify/payload_check.h"
#include "verify/run_check.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostDefectsOfTensor = 20;
constexpr std::uint64_t kMostManifestBytes = std::uint64_t{1} << 30;

// Where a chunk lies: `__0_0.distcp@1234`.
std::string place_of(const Catalog& catalog, const ChunkList& chunks, std::size_t chunk) {
  return fmt::format("{}@{}", catalog.files[chunks.file(chunk)], chunks.range(chunk).offset);
}

std::string coverage_text(const Catalog& catalog, const StoredTensor& tensor,
                          const CoverageDefect& defect) {
  const std::string& name = tensor.desc.name;
  switch (defect.code) {
    case Code::kOutOfBounds:
      return fmt::format("tensor {}: found chunk {} in {}, expected it inside {}", name,
                         to_string(defect.box), place_of(catalog, tensor.chunks, defect.chunk),
                         to_string(tensor.desc.shape));
    case Code::kOverlap:
      return fmt::format(
          "tensor {}: found chunk {} in {} and chunk {} in {}, expected disjoint chunks", name,
          to_string(defect.box), place_of(catalog, tensor.chunks, defect.chunk),
          to_string(tensor.chunks.box(defect.other)),
          place_of(catalog, tensor.chunks, defect.other));
    default:
      return fmt::format(
          "tensor {}: found no chunk that holds {} ({} elements), expected every element of {}",
          name, to_string(defect.box), defect.box.volume(), to_string(tensor.desc.shape));
  }
}

// One list of digests against another.
class DigestComparison {
 public:
  DigestComparison(const HashReport& found, const HashReport& expected, VerifyReport& report)
      : found_(found), expected_(expected), report_(report) {}

  void compare() {
    compare_lists(found_.model, expected_.model);
    // What another form need not have is compared where both have it.
    std::vector<TensorHash> found;
    std::vector<TensorHash> expected;
    std::ranges::set_intersection(found_.beside, expected_.beside, std::back_inserter(found), less);
    std::ranges::set_intersection(expected_.beside, found_.beside, std::back_inserter(expected),
                                  less);
    compare_lists(found, expected);
    if (mismatches_ > 0) return;
    report_.proven.push_back(fmt::format("{} digests are those of {}; the checkpoint's is {}",
                                         compared_, expected_.path, found_.model_digest));
  }

 private:
  static bool less(const TensorHash& a, const TensorHash& b) { return a.desc.name < b.desc.name; }

  void compare_lists(std::span<const TensorHash> found, std::span<const TensorHash> expected) {
    std::unordered_map<std::string_view, const TensorHash*> by_name;
    for (const TensorHash& tensor : found) by_name.emplace(tensor.desc.name, &tensor);
    for (const TensorHash& wanted : expected) {
      const auto at = by_name.find(wanted.desc.name);
      if (at == by_name.end()) {
        mismatch(wanted.desc.name, "is not in the checkpoint");
        continue;
      }
      compare_one(*at->second, wanted);
      by_name.erase(at);
    }
    for (const auto& [name, tensor] : by_name) {
      mismatch(std::string(name), "is in the checkpoint only");
    }
  }

  void compare_one(const TensorHash& found, const TensorHash& wanted) {
    ++compared_;
    const bool same_type =
        found.desc.dtype == wanted.desc.dtype && found.desc.shape == wanted.desc.shape;
    if (!same_type) {
      mismatch(wanted.desc.name,
               fmt::format("found {} {}, expected {} {}", torch_name(found.desc.dtype),
                           to_string(found.desc.shape), torch_name(wanted.desc.dtype),
                           to_string(wanted.desc.shape)));
    } else if (found.digest != wanted.digest) {
      mismatch(wanted.desc.name, fmt::format("found digest {}, expected {}; its elements differ",
                                             found.digest, wanted.digest));
    }
  }

  void mismatch(const std::string& name, std::string_view what) {
    ++mismatches_;
    add_finding(report_, Code::kDigestMismatch, name,
                fmt::format("tensor {}: {} ({})", name, what, expected_.path));
  }

  const HashReport& found_;
  const HashReport& expected_;
  VerifyReport& report_;
  std::uint64_t compared_ = 0;
  std::uint64_t mismatches_ = 0;
};

class Verification {
 public:
  Verification(const std::string& path, const VerifyOptions& options)
      : path_(path), options_(options), defects_(Defects::Policy::kCollect) {}

  Result<VerifyReport> run() {
    checkpoint_ = SW_TRY(open_checkpoint(path_, defects_));
    report_.path = checkpoint_.location.path;
    report_.container = container_name(checkpoint_.location.container);
    take_defects();
    const std::vector<PayloadItem> items = SW_TRY(list_payloads(checkpoint_));
    SW_TRY(check_files(checkpoint_, report_));
    SW_TRY(locate_items(checkpoint_.catalog, *checkpoint_.files, defects_));
    take_defects();
    check_coverage_of_all();
    SW_TRY(check_payloads(checkpoint_, without_lost(items, defects_), options_.proof, report_));
    if (!report_.has_errors()) SW_TRY(compare_replicas());
    SW_TRY(check_index_total(checkpoint_, report_));
    SW_TRY(check_run(checkpoint_, path_, report_));
    SW_TRY(check_model(checkpoint_, options_.proof, report_));
    tell_guards();
    if (!options_.against.empty()) SW_TRY(compare_digests());
    return std::move(report_);
  }

 private:
  void take_defects() {
    for (const Error& error : defects_.found()) add_finding(report_, error);
  }

  void check_coverage_of_all() {
    const Catalog& catalog = checkpoint_.catalog;
    const std::size_t before = report_.findings.size();
    for (const StoredTensor& tensor : catalog.tensors) {
      ++report_.tensors;
      report_.chunks += tensor.chunks.size();
      const auto defects = coverage_defects(tensor, Replicas::kAllowed, kMostDefectsOfTensor);
      if (!defects) {
        add_finding(report_, defects.error());
        continue;
      }
      report_.elements += static_cast<std::uint64_t>(Box::whole(tensor.desc.shape).volume());
      for (const CoverageDefect& defect : *defects) {
        add_finding(report_, defect.code, tensor.desc.name, coverage_text(catalog, tensor, defect));
      }
    }
    report_.files = catalog.files.size();
    if (report_.findings.size() > before || !defects_.found().empty()) return;
    report_.proven.push_back(
        fmt::format("all {} elements of {} tensors are stored exactly once, in "
                    "{} chunks",
                    report_.elements, report_.tensors, report_.chunks));
  }

  Status compare_replicas() {
    std::uint64_t compared = 0;
    bool differ = false;
    for (std::size_t i = 0; i < checkpoint_.catalog.tensors.size(); ++i) {
      const auto replicas =
          check_replicas_of(checkpoint_.catalog, i, ReplicaCheck::kAll, *checkpoint_.files);
      if (replicas) {
        compared += replicas->compared;
      } else if (replicas.error().code == Code::kReplicasDiffer) {
        differ = true;
        add_finding(report_, replicas.error());
      } else {
        return std::unexpected(replicas.error());
      }
    }
    const std::vector<Error> named = SW_TRY(compare_named_replicas(checkpoint_, options_.proof));
    for (const Error& error : named) add_finding(report_, error);
    if (compared > 0 && !differ) {
      report_.proven.push_back(
          fmt::format("{} replicas are what they repeat, bit by bit", compared));
    }
    return {};
  }

  void tell_guards() {
    if (checkpoint_.location.container == Container::kHf) {
      report_.notes.push_back(
          "payload: nothing guards that of safetensors files; 'hash --manifest' makes digests, "
          "'verify --against' checks them");
      return;
    }
    if (report_.payloads_checked > 0 && !has_finding(report_, Code::kPayloadDamaged)) {
      report_.proven.push_back(
          fmt::format("payload: the CRC-32 of {} records is right, {} bytes read",
                      report_.payloads_checked, report_.payload_bytes));
    }
    if (report_.payloads_unguarded > 0) {
      report_.notes.push_back(
          fmt::format("payload: nothing guards {} records, which have no CRC-32; use hash",
                      report_.payloads_unguarded));
    }
  }

  // The digests of a manifest, or of another checkpoint seen as this one is.
  Result<HashReport> expected_digests(ProofOptions& options) {
    std::error_code ignored;
    if (std::filesystem::is_directory(options_.against, ignored)) {
      const Checkpoint other = SW_TRY(open_checkpoint(options_.against));
      const bool both_hf = is_hf_model(other) && is_hf_model(checkpoint_);
      options.own_names |= both_hf || natural_naming(other) == Naming::kStored ||
                           natural_naming(checkpoint_) == Naming::kStored;
      return hash_checkpoint(options_.against, options);
    }
    const std::filesystem::path path(options_.against);
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    const auto directory = SW_TRY(open_local_directory(folder));
    const std::string text =
        SW_TRY(read_whole(*directory, path.filename().string(), kMostManifestBytes));
    HashReport manifest = SW_TRY(read_manifest(text));
    manifest.path = options_.against;
    options.own_names = !manifest.is_canonical;
    if (!options.vocab_size) options.vocab_size = vocabulary_of(manifest);
    return manifest;
  }

  // Rows that the hashed model's embedding had.
  static std::optional<std::int64_t> vocabulary_of(const HashReport& manifest) {
    for (const TensorHash& tensor : manifest.model) {
      const bool is_embedding = tensor.desc.name.ends_with("embedding.word_embeddings.weight");
      if (is_embedding && !tensor.desc.shape.empty()) return tensor.desc.shape[0];
    }
    return std::nullopt;
  }

  Status compare_digests() {
    ProofOptions options = options_.proof;
    const HashReport expected = SW_TRY(expected_digests(options));
    const auto found = hash_checkpoint(path_, options);
    if (!found) {
      report_.notes.push_back("digests are not compared: " + found.error().message);
      if (!report_.has_errors()) add_finding(report_, found.error());
      return {};
    }
    DigestComparison(*found, expected, report_).compare();
    return {};
  }

  const std::string& path_;
  const VerifyOptions& options_;
  Defects defects_;
  Checkpoint checkpoint_;
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> verify_checkpoint(const std::string& path, const VerifyOptions& options) {
  return Verification(path, options).run();
}

}  // namespace shardwright
