// SPDX-License-Identifier: Apache-2.0
#include "shardwright/merge.h"

#include <algorithm>

#include "base/fail.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "compare/copies.h"
#include "convert/hf_documents.h"
#include "convert/memory_budget.h"
#include "format/model_config.h"
#include "merge/merge_report.h"
#include "model/instances.h"
#include "remote/open_path.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{64} << 20;

// The whole model's config.json, and what lies beside it where a folder was given.
struct ConfigSource {
  std::string text;
  std::vector<TensorDesc> keys;
  bool is_folder = false;
};

Result<ConfigSource> open_config(const std::string& path) {
  if (path.empty()) {
    return fail(Code::kUsage,
                "--config is missing; give the whole model's config.json or its folder");
  }
  ConfigSource source;
  const Result<std::unique_ptr<Directory>> folder = open_directory(path);
  source.is_folder = folder.has_value();
  if (!folder) {
    source.text = SW_TRY(read_named(path, kMostConfigBytes));
    return source;
  }
  source.text = SW_TRY(read_named_config(**folder));
  if ((*folder)->exists(kSourceKeysFile)) {
    const std::string keys = SW_TRY(read_whole(**folder, kSourceKeysFile, kMostConfigBytes));
    source.keys = SW_TRY(read_source_keys(keys)).tensors;
  }
  return source;
}

// A head that should repeat the embedding and does not would be lost when the model is loaded,
// whatever else is left out.
Result<std::vector<MergeFinding>> find_lost_heads(const WholeModel& whole, const Catalog& catalog,
                                                  SourceFiles& files) {
  const std::vector<TensorDesc> stored = descs_of(catalog);
  const TensorIndex index = SW_TRY(TensorIndex::make(stored));
  const std::vector<CopyInstance> rules = SW_TRY(copy_instances(*whole.mapping, whole.sizes));
  const CopyIndex by_name(rules);
  std::vector<HfCopy> copies;
  for (const CopyInstance& copy : rules) {
    const TensorDesc* head = index.find(copy.hf);
    const auto original = by_name.stored_original(
        copy, [&](const std::string& name) { return index.contains(name); });
    if (head != nullptr && original) copies.push_back({*head, *original, false});
  }
  std::vector<MergeFinding> findings;
  for (const std::string& name : SW_TRY(find_differing_copies(copies, catalog, files))) {
    findings.push_back({"tied",
                        Severity::kError,
                        {},
                        translated("{} differs from the embedding, but the whole model's config "
                                   "says that they are one tensor (tie_word_embeddings)",
                                   name),
                        {name}});
  }
  return findings;
}

class Merge {
 public:
  explicit Merge(const MergeRequest& request) : request_(request) {}

  Result<PreparedMerge> run() {
    if (request_.parts.empty()) {
      return fail(Code::kUsage,
                  "--component is missing; give one for each part of the model, for example "
                  "--component language=LLM --component images=VIT");
    }
    SW_TRY(find_whole());
    parts_ = SW_TRY(open_parts(request_, *whole_.mapping));
    named_ = SW_TRY(name_tensors(parts_, whole_));
    SW_TRY(report());
    PreparedMerge prepared{std::move(report_), std::nullopt};
    if (prepared.report.has_errors()) return prepared;
    prepared.conversion = SW_TRY(plan());
    return prepared;
  }

 private:
  Status find_whole() {
    const ConvertRequest request = hf_request(request_);
    ConfigSource config = SW_TRY(open_config(request_.config));
    has_config_folder_ = config.is_folder;
    whole_.config_text = std::move(config.text);
    whole_.keys = std::move(config.keys);
    whole_.config = SW_TRY(read_hf_config(whole_.config_text));
    mappings_ = SW_TRY(load_mappings(request, whole_.config));
    whole_.mapping = SW_TRY(chosen_family(request, mappings_, whole_.config));
    whole_.sizes = SW_TRY(sizes_from_hf_config(*whole_.mapping, whole_.config));
    return {};
  }

  Status report() {
    report_.family = whole_.mapping->family;
    for (const OpenedPart& part : parts_) {
      std::vector<const StoredTensor*> tensors;
      for (const StoredTensor& tensor : part.checkpoint.catalog.tensors) tensors.push_back(&tensor);
      report_.parts.push_back(part_report(part.part->name, part.path, tensors));
    }
    add(drop_doubled(parts_, named_.tensors));
    add(SW_TRY(add_tied_heads(parts_, whole_, hf_request(request_), named_)));
    add(SW_TRY(find_misfits(parts_, whole_, request_.without, named_)));
    add(SW_TRY(compare_parts(parts_, whole_)));
    if (report_.has_errors()) return {};
    join();
    add(SW_TRY(find_lost_heads(whole_, joined_.catalog, *joined_.files)));
    return {};
  }

  void add(std::vector<MergeFinding> findings) {
    std::ranges::move(findings, std::back_inserter(report_.findings));
  }

  // One checkpoint of all, its tensors under the whole model's names. The first part's files stay
  // what they are; the others' follow.
  void join() {
    std::vector<std::uint32_t> first_file;
    std::vector<Catalog> catalogs;
    for (OpenedPart& part : parts_) {
      catalogs.push_back(std::move(part.checkpoint.catalog));
      if (first_file.empty()) {
        joined_ = std::move(part.checkpoint);
        joined_.catalog = {};
        joined_.catalog.files = catalogs[0].files;
        first_file.push_back(0);
        continue;
      }
      first_file.push_back(static_cast<std::uint32_t>(joined_.catalog.files.size()));
      const std::shared_ptr<const Directory> folder = std::move(part.checkpoint.directory);
      for (const std::string& file : catalogs.back().files) {
        joined_.files->add(folder, file);
        joined_.catalog.files.push_back(part.part->name + "/" + file);
      }
    }
    for (const PlacedTensor& placed : named_.tensors) {
      StoredTensor tensor = catalogs[placed.part].tensors[placed.index];
      own_names_.push_back(tensor.desc.name);
      tensor.desc.name = placed.desc.name;
      const std::uint32_t file = tensor.chunks.file(0) + first_file[placed.part];
      tensor.chunks.set_location(0, file, tensor.chunks.range(0));
      joined_.catalog.tensors.push_back(std::move(tensor));
    }
    joined_.artifacts.clear();
    joined_.hf_config.clear();
  }

  Result<PreparedConversion> plan() {
    PreparedConversion prepared;
    prepared.request = hf_request(request_);
    prepared.request.input = request_.parts[0].path;
    // A file or a folder: it is read by now, and must not be replaced.
    prepared.request.hf_config_dir = request_.config;
    prepared.family = whole_.mapping->family;
    for (const PartFolder& part : request_.parts) prepared.more_sources.push_back(part.path);

    TargetParts parts;
    parts.tensors = draft_identity(joined_.catalog, {});
    order_like(whole_.keys, parts.tensors);
    const ModelTensors model = SW_TRY(model_tensors(joined_.catalog, whole_.config_text, nullptr));
    SW_TRY(add_merged_documents(whole_.config_text, !model.quantised.empty(),
                                has_config_folder_ ? request_.config : std::string(), parts,
                                prepared.notes));
    std::erase_if(parts.files, [](const TargetFile& f) { return f.path == kSourceKeysFile; });
    for (const DraftTensor& tensor : parts.tensors) {
      prepared.renames.push_back({{own_names_[tensor.recipe.views[0].source]}, tensor.desc.name});
    }
    prepared.plan.source = joined_.catalog;
    const Target& target = *SW_TRY(find_target(prepared.request.format));
    SW_TRY(target.lay_out(prepared.request, parts, prepared.plan, prepared.notes));
    SW_TRY(check_plan(prepared.plan));
    prepared.source = std::move(joined_);
    prepared.peak_memory_bytes =
        SW_TRY(budget_of(prepared.request, prepared.source, prepared.plan)).bytes();
    return prepared;
  }

  const MergeRequest& request_;
  Mappings mappings_;
  WholeModel whole_;
  bool has_config_folder_ = false;
  std::vector<OpenedPart> parts_;
  NamedTensors named_;
  MergeReport report_;
  Checkpoint joined_;
  std::vector<std::string> own_names_;  // of its tensors, in their parts
};

}  // namespace

bool MergeReport::has_errors() const {
  return std::ranges::any_of(findings,
                             [](const MergeFinding& f) { return f.severity == Severity::kError; });
}

Result<PreparedMerge> prepare_merge(const MergeRequest& request) { return Merge(request).run(); }

}  // namespace shardwright
