// SPDX-License-Identifier: Apache-2.0
#include "verify/guard_check.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/derived_states.h"
#include "canonical/families.h"
#include "canonical/source_model.h"
#include "compare/digest_file.h"
#include "compare/hub_digests.h"
#include "compare/integrity_file.h"
#include "compare/master_form.h"
#include "compare/master_weights.h"
#include "compare/source_guards.h"
#include "format/formats.h"
#include "layout/state_name.h"
#include "layout/texts.h"
#include "model/component_names.h"
#include "verify/coverage_check.h"
#include "verify/findings.h"
#include "verify/state_check.h"
#include "verify/unguarded_files.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

// The tensors whose every byte is at hand.
Catalog sound_part(const Catalog& catalog, const Defects& lost) {
  Catalog sound{catalog.files, {}, catalog.objects, catalog.kind_stacks};
  for (const StoredTensor& tensor : catalog.tensors) {
    bool is_sound = tensor.encoding == Encoding::kRaw && check_coverage(tensor).has_value();
    for (std::size_t c = 0; is_sound && c < tensor.chunks.size(); ++c) {
      is_sound = !lost.is_lost(tensor.desc.name, c);
    }
    if (is_sound) sound.tensors.push_back(tensor);
  }
  return sound;
}

// States are proven by their weights; one that lost its weight is not to be proven.
void drop_lone_states(Catalog& catalog) {
  std::unordered_set<std::string> weights;
  for (const StoredTensor& tensor : catalog.tensors) weights.insert(tensor.desc.name);
  std::erase_if(catalog.tensors, [&](const StoredTensor& tensor) {
    const auto weight = weight_of_master(tensor.desc.name);
    return weight && !weights.contains(std::string(*weight));
  });
}

// A float32 weight that is its own master weight proves nothing.
bool compares_masters(const Catalog& catalog) {
  const auto check = plan_master_weights(catalog);
  return check && check->bytes > 0;
}

class GuardCheck {
 public:
  GuardCheck(Checkpoint& checkpoint, const Defects& lost, const VerifyOptions& options,
             VerifyReport& report)
      : checkpoint_(checkpoint),
        lost_(lost),
        choice_(options.proof.choice),
        signer_{options.public_key, options.certificate_chain},
        workers_(workers_of(options.proof)),
        report_(report),
        defects_(Defects::Policy::kCollect) {}

  Status run() {
    SW_TRY(check_named_replicas(checkpoint_, checkpoint_.catalog, defects_));
    bool is_derived = SW_TRY(read_states_of_ranks());
    Catalog catalog = sound_part(checkpoint_.catalog, lost_);
    if (SW_TRY(derive_flat_states(catalog))) is_derived = true;
    std::optional<Catalog> pieces = named_pieces(catalog);
    Catalog& named = pieces ? *pieces : catalog;
    is_derived |= form_of(checkpoint_).has_numbered_states(catalog);
    drop_lone_states(named);
    const MasterForm form =
        SW_TRY(form_of_masters(checkpoint_.arguments, named, *checkpoint_.files));
    const bool proves = is_derived && form == MasterForm::kRounded;
    SW_TRY(check_guarded_source(catalog, proves ? &named : nullptr));
    if (form != MasterForm::kRounded && has_master_weights(named)) {
      report_.notes.emplace_back(note_on_form(form));
      return {};
    }
    if (is_derived) return {};
    if (has_component_names(named) && !has_named_components(named)) return {};
    drop_lone_states(named);
    return compare_named_states(named);
  }

 private:
  // Modules' tensors as Megatron's, with states under their names. What keeps them from that was
  // told where the model was looked at, and of main weights there is nothing to compare.
  std::optional<Catalog> named_pieces(const Catalog& catalog) {
    const SourceTraits& traits = checkpoint_.location.traits;
    const bool is_whole = catalog.tensors.size() == checkpoint_.catalog.tensors.size();
    if (!traits.has_module_pieces || traits.weights_are_main || !is_whole) return std::nullopt;
    Wrappers wrappers;
    Notes told;
    auto named = megatron_catalog(checkpoint_, choice_, wrappers, told);
    return named ? std::optional(*std::move(named)) : std::nullopt;
  }

  // A model whose family is not known is told where its tensors are held against it.
  bool has_named_components(Catalog& catalog) {
    const auto mappings = load_mappings(choice_, checkpoint_);
    return mappings && name_components(choice_, checkpoint_, *mappings, catalog);
  }

  // Whether there are any, and which is whose was derived.
  Result<bool> read_states_of_ranks() {
    if (!checkpoint_.has_unread_optimizer) return false;
    const std::size_t weights = checkpoint_.catalog.tensors.size();
    const std::size_t told = defects_.found().size();
    const Result<bool> read = read_states(checkpoint_, defects_);
    const bool is_read = read.has_value();
    SW_TRY(defects_.report(read ? Status() : std::unexpected(read.error())));
    // That states of a file that could not be read are not there is no second defect.
    if (defects_.found().size() == told) check_states_of_ranks(weights);
    return is_read;
  }

  // As those of other formats were when they were opened: whole, and all there. Where a weight has
  // holes so have its states, for which the same file is to blame.
  void check_states_of_ranks(std::size_t weights) {
    const Catalog& catalog = checkpoint_.catalog;
    std::unordered_set<std::string_view> torn;
    for (std::size_t i = 0; i < weights; ++i) {
      const StoredTensor& weight = catalog.tensors[i];
      if (!check_coverage(weight)) torn.insert(weight.desc.name);
    }
    for (std::size_t i = weights; i < catalog.tensors.size(); ++i) {
      const StoredTensor& tensor = catalog.tensors[i];
      const std::optional<StateName> state = split_state_name(tensor.desc.name);
      if (state && torn.contains(state->tensor)) continue;
      check_coverage_of(catalog, tensor, report_);
    }
    check_named_states(catalog, checkpoint_, report_);
  }

  // Whether there are any, and which is whose was derived. `catalog`: the sound part.
  Result<bool> derive_flat_states(Catalog& catalog) {
    const bool is_whole = catalog.tensors.size() == checkpoint_.catalog.tensors.size();
    if (!is_whole || !has_unnamed_states(checkpoint_, catalog)) return false;
    if (!SW_TRY(name_flat_states(catalog))) return false;
    check_named_states(catalog, checkpoint_, report_);
    return true;
  }

  Result<bool> name_flat_states(Catalog& catalog) {
    if (has_component_names(catalog)) {
      report_.notes.emplace_back(
          "optimizer: states in flat buffers of a MIMO model are not read, and not proven");
      return false;
    }
    Catalog named = catalog;
    const Result<bool> are_named = name_states(checkpoint_, named);
    const Status status = are_named ? Status() : std::unexpected(are_named.error());
    // Megatron-Core alone saves no arguments, and loads what it saved.
    if (!status && checkpoint_.arguments.empty() &&
        status.error().code == Code::kOptimizerUnsupported) {
      report_.notes.emplace_back(
          "optimizer: no arguments of the run tell which states lie where in the flat buffers: "
          "they "
          "are proven as they are stored, and a conversion leaves them out (--optimizer drop)");
      return false;
    }
    SW_TRY(defects_.report(status));
    if (status) catalog = std::move(named);
    return status.has_value();
  }

  // `derived`: the catalog in which states have names that rules gave them; may be null.
  Status check_guarded_source(const Catalog& catalog, const Catalog* derived) {
    const SourceGuards guards{ReplicaCheck::kAll, derived, workers_, signer_};
    const GuardedSource guarded = SW_TRY(check_source(checkpoint_, catalog, guards, defects_));
    const ListedChecked hub = SW_TRY(check_hub_digests(checkpoint_, workers_, defects_));
    for (const auto* names : {&guarded.integrity.guarded, &guarded.digested.guarded,
                              &guarded.signature.listed.guarded, &hub.guarded}) {
      report_.guarded_files.insert(names->begin(), names->end());
    }
    tell_findings(guarded.repeated_files);
    tell(guarded, derived != nullptr && compares_masters(*derived));
    tell_signature(guarded.signature);
    if (hub.right > 0 && !has_finding(report_, Code::kDigestMismatch)) {
      report_.proven.push_back(phrase("proven.hub", {{"count", hub.right}}));
    }
    if (report_.guarded_files.empty()) tell_unguarded();
    return {};
  }

  void tell_findings(const std::vector<std::string>& repeated_files) {
    for (const Error& error : defects_.found()) add_finding(report_, error);
    for (const std::string& text : repeated_files) {
      add_finding(report_, Code::kRankMisplaced, text.substr(0, text.find(": ")), text,
                  Severity::kWarning);
    }
  }

  void tell(const GuardedSource& guarded, bool is_derived) {
    if (guarded.replicas.compared > 0 && !has_finding(report_, Code::kReplicasDiffer)) {
      report_.proven.push_back(phrase("proven.replicas", {{"count", guarded.replicas.compared}}));
      tell_copies();
    }
    if (guarded.integrity.right > 0 && !has_finding(report_, Code::kDigestMismatch)) {
      report_.proven.push_back(
          phrase("proven.files", {{"count", guarded.integrity.right}, {"file", kIntegrityFile}}));
    }
    if (guarded.digested.files > 0 && !has_finding(report_, Code::kDigestMismatch)) {
      report_.proven.push_back(phrase("proven.tensors", {{"tensors", guarded.digested.tensors},
                                                         {"files", guarded.digested.files},
                                                         {"file", kDigestFile}}));
    }
    if (is_derived && !has_finding(report_, Code::kOptimizerMismatch)) {
      report_.proven.push_back(phrase("proven.masters"));
    }
  }

  void tell_signature(const SignatureChecked& signature) {
    if (!signature.is_there) return;
    for (const std::string& file : signature.unlisted) {
      add_finding(report_, Code::kDigestMismatch, file,
                  translated("{}: {} does not list this file: it was added since; move it away",
                             printable(file), kSignatureFile));
    }
    if (!signature.unread.empty()) {
      report_.notes.push_back(
          translated("{}: its list was not compared: {}", kSignatureFile, signature.unread));
    }
    if (signature.listed.right > 0 && !has_finding(report_, Code::kDigestMismatch)) {
      report_.proven.push_back(
          phrase("proven.files", {{"count", signature.listed.right}, {"file", kSignatureFile}}));
    }
    tell_signer(signature);
  }

  void tell_signer(const SignatureChecked& signature) {
    if (signature.is_of_key) {
      report_.proven.push_back(
          phrase("proven.signature", {{"file", kSignatureFile}, {"key", signer_.public_key}}));
    }
    if (signature.is_vouched_for) {
      report_.proven.push_back(phrase("proven.signer", {{"file", kSignatureFile},
                                                        {"owner", signature.owner},
                                                        {"chain", signer_.certificate_chain}}));
    }
    if (!signer_.public_key.empty() || !signer_.certificate_chain.empty()) return;
    if (!signature.owner.empty()) {
      report_.notes.push_back(translated(
          "{}: the key of its own certificate has signed it; whether that is of {}, as it says, "
          "was not looked at, and anybody can write a certificate: give those that you trust "
          "(--certificate-chain), or let 'model_signing verify' look",
          kSignatureFile, signature.owner));
      return;
    }
    report_.notes.push_back(translated(
        "{}: who signed it was not looked at, and anybody could have: give the signer's key "
        "(--public-key), or let 'model_signing verify' look",
        kSignatureFile));
  }

  // The names under which replicas are stored.
  void tell_copies() {
    std::size_t copies = 0;
    std::size_t tensors = 0;
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      copies += tensor.copies.size();
      tensors += tensor.copies.empty() ? 0U : 1U;
    }
    if (tensors == 0) return;
    report_.proven.push_back(phrase("proven.copies", {{"tensors", tensors}, {"copies", copies}}));
  }

  // Ranks that hold alike pieces write alike files. Of torch's own archives each has the name that
  // it was saved under; DCP's are listed by `.metadata`, which is as good as any other save's.
  void tell_unguarded() {
    const SourceTraits& traits = checkpoint_.location.traits;
    const bool are_many = files_of_chunks(checkpoint_.catalog).size() > 1;
    if (traits.has_chunk_list && are_many) {
      report_.notes.emplace_back(
          "the files do not say which ranks or save they are of: some in each other's place would "
          "not be noticed, but by digests ('hash --manifest', 'verify --against')");
    } else if (traits.has_chunk_list || (traits.records != Records::kNone && are_many)) {
      report_.notes.emplace_back(
          "the files do not say which save they are of: one of another save among them would not "
          "be noticed, but by digests ('hash --manifest', 'verify --against')");
    }
  }

  // Nothing is derived here, and fp8 weights are not their rounded master weights; but where files
  // of two steps are mixed, this shows it.
  Status compare_named_states(const Catalog& catalog) {
    const auto planned = plan_master_weights(catalog);
    if (!planned && planned.error().code == Code::kOptimizerMismatch) {
      add_finding(report_, planned.error());
    }
    if (!planned || planned->bytes == 0) return {};
    Defects differing(Defects::Policy::kCollect);
    SW_TRY(check_master_weights(catalog, *checkpoint_.files, differing, workers_));
    if (differing.found().empty()) {
      report_.proven.push_back(phrase("proven.masters"));
      return {};
    }
    const Error& first = differing.found().front();
    add_finding(report_, Code::kOptimizerMismatch, "optimizer",
                translated("{} master weights are not their weights, the first: {}",
                           differing.found().size(), first.message),
                Severity::kWarning);
    return {};
  }

  Checkpoint& checkpoint_;
  const Defects& lost_;
  const FamilyChoice& choice_;
  Signer signer_;
  Workers workers_;
  VerifyReport& report_;
  Defects defects_;
};

}  // namespace

Status check_guards(Checkpoint& checkpoint, const Defects& lost, const VerifyOptions& options,
                    VerifyReport& report) {
  return GuardCheck(checkpoint, lost, options, report).run();
}

}  // namespace shardwright
