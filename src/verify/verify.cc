// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/code_group.h"
#include "base/fail.h"
#include "canonical/canonical_model.h"
#include "canonical/families.h"
#include "dcp/torch_items.h"
#include "dcp/torch_obstacles.h"
#include "format/adapter_note.h"
#include "format/lone_file.h"
#include "format/nothing_stored.h"
#include "format/pickle_files.h"
#include "format/quantizer_values.h"
#include "io/source_files.h"
#include "layout/texts.h"
#include "plan/canonical.h"
#include "remote/open_path.h"
#include "verify/adapter_check.h"
#include "verify/coverage_check.h"
#include "verify/digest_comparison.h"
#include "verify/findings.h"
#include "verify/guard_check.h"
#include "verify/hash.h"
#include "verify/model_check.h"
#include "verify/payload_check.h"
#include "verify/run_check.h"
#include "verify/unguarded_files.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostManifestBytes = std::uint64_t{1} << 30;

class Verification {
 public:
  Verification(const std::string& path, const VerifyOptions& options)
      : path_(path), options_(options), defects_(Defects::Policy::kCollect) {}

  Result<VerifyReport> run() {
    auto opened = open_checkpoint(path_, defects_, FormatChoice{options_.proof.as});
    if (!opened) return of_unopened(opened.error());
    checkpoint_ = std::move(*opened);
    SW_TRY(check_family_choice(options_.proof.choice, checkpoint_));
    report_.path = checkpoint_.location.path;
    report_.format = checkpoint_.location.format;
    take_defects();
    const bool is_partial = has_unread_tensors();
    std::vector<PayloadItem> items = SW_TRY(list_payloads(checkpoint_, defects_));
    // Where nothing could be read nothing is named.
    const bool is_unread = is_partial && checkpoint_.catalog.tensors.empty();
    if (!is_unread) SW_TRY(check_files(checkpoint_, report_));
    check_pickles();
    tell_safetensors_items();
    const auto repaired = SW_TRY(locate_items(checkpoint_.catalog, *checkpoint_.files, defects_));
    take_defects();
    for (const std::string& what : repaired) tell_unloadable(what);
    for (const std::string& what : metadata_obstacles(checkpoint_)) tell_unloadable(what);
    check_coverage_of_all();
    if (!is_partial) check_emptiness();
    SW_TRY(check_payloads(checkpoint_, without_lost(std::move(items), defects_), options_.proof,
                          report_));
    // Each record's CRC-32 was compared; what is wrong with one is a finding, not an end.
    checkpoint_.files->expect_nothing();
    SW_TRY(check_index_total(checkpoint_, report_));
    leave_quantizer_values_out(checkpoint_.catalog, report_.notes);
    SW_TRY(check_run(checkpoint_, path_, report_));
    if (!is_partial) SW_TRY(check_model(checkpoint_, options_.proof, report_));
    SW_TRY(check_guards(checkpoint_, defects_, options_, report_));
    SW_TRY(check_adapter(checkpoint_, defects_, report_));
    tell_guards();
    if (!options_.against.empty()) SW_TRY(compare_digests());
    SW_TRY(checkpoint_.files->check_unchanged());
    return std::move(report_);
  }

 private:
  // That a tracker leads nowhere is what is wrong; of other errors nobody knows whether they are.
  Result<VerifyReport> of_unopened(const Error& error) {
    if (error.code != Code::kTrackerBroken) return std::unexpected(error);
    report_.path = path_;
    report_.format = "unknown";
    add_finding(report_, error);
    return std::move(report_);
  }

  // Whether a file that lists tensors could not be read. That is the defect: that the model lacks
  // them would be a second, false one.
  [[nodiscard]] bool has_unread_tensors() const {
    const bool is_listed_apart = checkpoint_.location.traits.has_chunk_list;
    if (checkpoint_.catalog.tensors.empty()) return report_.has_errors();
    return !is_listed_apart && std::ranges::any_of(defects_.found(), [](const Error& error) {
      return is_of_storage_or_weights(error.code);
    });
  }

  void take_defects() {
    for (const Error& error : defects_.found()) add_finding(report_, error);
  }

  // What is read here by what the items hold, torch reads by what the metadata says.
  void tell_unloadable(const std::string& what) {
    const std::string object = what.substr(0, what.find(": "));
    add_finding(report_, Code::kUnloadable, object, unloadable_text(what), Severity::kWarning);
  }

  // No archive holds them, so neither torch's own reader nor a checksum knows of them.
  void tell_safetensors_items() {
    std::uint64_t items = 0;
    const StoredTensor* first = nullptr;
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
        if (!is_safetensors_item(tensor, c)) continue;
        if (first == nullptr) first = &tensor;
        ++items;
      }
    }
    if (first == nullptr) return;
    report_.payloads_unguarded += items;
    tell_unloadable(
        translated("tensor {}: lies in a safetensors file inside a .distcp file, as {} "
                   "pieces in all do",
                   first->desc.name, items));
  }

  // What a loader would run. Nothing was run here.
  void check_pickles() {
    for (const std::string& note : checkpoint_.notes) report_.notes.push_back(note);
    if (auto note = adapter_note(checkpoint_)) report_.notes.push_back(*std::move(note));
    for (const PickleReport& pickle : audit_pickles(checkpoint_)) {
      for (const Error& error : pickle.errors()) add_finding(report_, error);
      if (const std::string warning = pickle.warning(); !warning.empty()) {
        add_finding(report_, Code::kPickleRunsCode, pickle.where, warning, Severity::kWarning);
      }
    }
  }

  void check_coverage_of_all() {
    const Catalog& catalog = checkpoint_.catalog;
    const std::size_t before = report_.findings.size();
    for (const StoredTensor& tensor : catalog.tensors) {
      ++report_.tensors;
      report_.chunks += tensor.chunks.size();
      if (!check_coverage_of(catalog, tensor, report_)) continue;
      report_.elements += static_cast<std::uint64_t>(Box::whole(tensor.desc.shape).volume());
    }
    report_.files = catalog.files.size();
    if (report_.findings.size() > before || !defects_.found().empty()) return;
    if (report_.elements == 0) return;
    report_.proven.push_back(phrase("proven.coverage", {{"elements", report_.elements},
                                                        {"tensors", report_.tensors},
                                                        {"chunks", report_.chunks}}));
  }

  // What could not be read was reported: that nothing is left is no second defect.
  void check_emptiness() {
    if (report_.has_errors()) return;
    const Status stored = check_something_stored(checkpoint_.catalog, report_.path);
    if (!stored) add_finding(report_, stored.error());
  }

  // A chunk that no digest guards.
  [[nodiscard]] std::uint64_t bare_chunks() const {
    const Catalog& catalog = checkpoint_.catalog;
    std::uint64_t count = 0;
    for (const StoredTensor& tensor : catalog.tensors) {
      for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
        const std::uint32_t file = tensor.chunks.file(c);
        const bool is_named = file < catalog.files.size();
        if (!is_named || !report_.guarded_files.contains(catalog.files[file])) ++count;
      }
    }
    return count;
  }

  // Files whose bytes nothing guards, and the way out.
  void tell_bare_files(std::string_view what) {
    const std::vector<std::string> bare = unguarded_files(checkpoint_, report_.guarded_files);
    if (bare.empty()) return;
    report_.notes.push_back(translated(
        "{}: nothing guards {}: a bit that flips there is not noticed. 'convert --digests' writes "
        "digests of all files; 'hash --manifest FILE' makes those of tensors, 'verify --against "
        "FILE' checks them",
        what, first_names(bare)));
  }

  void tell_guards() {
    if (checkpoint_.location.traits.records == Records::kNone) {
      if (!options_.against.empty()) return;
      const std::uint64_t bare = bare_chunks();
      report_.payloads_unguarded += bare;
      tell_bare_files(bare > 0 ? "payload" : "files");
      return;
    }
    if (options_.against.empty()) tell_bare_files("files");
    if (report_.payloads_checked > 0 && !has_finding(report_, Code::kPayloadDamaged)) {
      report_.proven.push_back(phrase("proven.records", {{"records", report_.payloads_checked},
                                                         {"bytes", report_.payload_bytes}}));
    }
    if (report_.payloads_unguarded > 0) {
      report_.notes.push_back(
          translated("payload: nothing guards {} records, which have no CRC-32; use hash",
                     report_.payloads_unguarded));
    }
  }

  // The digests of a manifest, or of another checkpoint seen as this one is.
  Result<HashReport> expected_digests(ProofOptions& options) {
    if (is_lone_file(options_.against) || is_folder(options_.against)) {
      const Checkpoint other =
          SW_TRY(open_checkpoint(options_.against, FormatChoice{options.other_as, "--other-as"}));
      const bool both_hf = compare_as_hf(other, checkpoint_, options.choice);
      options.own_names |= both_hf || natural_naming(other, options.choice) == Naming::kStored ||
                           natural_naming(checkpoint_, options.choice) == Naming::kStored;
      options.as = options.other_as;
      const Result<HashReport> digests = hash_checkpoint(options_.against, options);
      options.as = options_.proof.as;
      if (digests && !options.vocab_size && !options.own_names) {
        options.other_rows = vocabulary_of(*digests);
      }
      return digests;
    }
    const std::string text = SW_TRY(read_named(options_.against, kMostManifestBytes));
    HashReport manifest = SW_TRY(read_manifest(text));
    manifest.path = options_.against;
    options.own_names = !manifest.is_canonical;
    if (!options.vocab_size) options.other_rows = vocabulary_of(manifest);
    options.keeps_stored_states = has_stored_states(manifest);
    return manifest;
  }

  static std::optional<std::int64_t> rows_in(const HashReport& manifest, std::string_view name) {
    const auto found = std::ranges::find_if(
        manifest.model, [&](const TensorHash& tensor) { return tensor.desc.name == name; });
    if (found == manifest.model.end() || found->desc.shape.empty()) return std::nullopt;
    return found->desc.shape[0];
  }

  // Rows that the hashed model's vocabulary had. An embedding may have some of its own beyond those
  // of the head, which a head of rewards, with its few rows, does not tell.
  static std::optional<std::int64_t> vocabulary_of(const HashReport& manifest) {
    constexpr std::string_view kEmbedding = "embedding.word_embeddings.weight";
    for (const TensorHash& tensor : manifest.model) {
      const std::string& name = tensor.desc.name;
      if (!name.ends_with(kEmbedding) || tensor.desc.shape.empty()) continue;
      const std::int64_t rows = tensor.desc.shape[0];
      const std::string head =
          name.substr(0, name.size() - kEmbedding.size()) + "output_layer.weight";
      const std::int64_t of_head = rows_in(manifest, head).value_or(rows);
      return of_head > rows / 2 ? std::min(rows, of_head) : rows;
    }
    return std::nullopt;
  }

  Status compare_digests() {
    ProofOptions options = options_.proof;
    const HashReport expected = SW_TRY(expected_digests(options));
    const auto found = hash_checkpoint(path_, options);
    if (!found) {
      report_.notes.push_back(translated("digests are not compared: ") + found.error().message);
      if (!report_.has_errors()) add_finding(report_, found.error());
      return {};
    }
    compare_digests_of(*found, expected, report_);
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
  if (options.proof.source.replica) {
    return fail(Code::kUsage,
                "--replica {}: verify compares the copies of all tensor ranks; leave the flag out, "
                "or compare one rank's with diff",
                *options.proof.source.replica);
  }
  return Verification(path, options).run();
}

}  // namespace shardwright
