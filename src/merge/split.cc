// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/hf_model.h"
#include "codec/json_text.h"
#include "format/config_edits.h"
#include "format/nothing_stored.h"
#include "merge/merge_parts.h"
#include "model/arguments.h"
#include "model/config.h"
#include "model/mapping_report.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

// Types of weights that are packed or mean nothing without their scales, whatever the method: plain
// ones are floats of 16 bits and more, and what is no weight counts (int64) or masks.
bool is_quantised(DType dtype) {
  return (dtype >= DType::kU8 && dtype <= DType::kI32) ||
         (dtype >= DType::kF8E4M3 && dtype <= DType::kF4E2M1X2);
}

// The object at a key, or at one behind another (`thinker_config.text_config`); null for none.
const nlohmann::ordered_json* object_at(const nlohmann::ordered_json& document,
                                        std::string_view path) {
  const nlohmann::ordered_json* at = &document;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t dot = std::min(path.find('.', begin), path.size());
    const auto member = at->find(path.substr(begin, dot - begin));
    if (member == at->end() || !member->is_object()) return nullptr;
    at = &*member;
    begin = dot + 1;
  }
  return at;
}

class Splitter {
 public:
  explicit Splitter(const SplitRequest& request) : request_(request) {}

  Result<PreparedSplit> run() {
    result_.conversion.source =
        SW_TRY(open_hf_model(request_.input, FormatChoice{request_.as}, request_.input));
    SW_TRY(check_something_stored(source().catalog, request_.input));
    SW_TRY(find_parts());
    SW_TRY(assign());
    SW_TRY(check_rules());
    all_ = draft_identity(source().catalog, {});
    Plan& plan = result_.conversion.plan;
    plan.source = source().catalog;
    plan.source.objects.clear();
    for (const ModelPart& part : mapping_->parts) SW_TRY(add_part(part));
    add_model();
    complete(parts_, plan);
    SW_TRY(check_plan(plan));
    return std::move(result_);
  }

 private:
  [[nodiscard]] const Checkpoint& source() const { return result_.conversion.source; }

  Status find_parts() {
    result_.conversion.request = hf_request(request_);
    result_.conversion.request.input = request_.input;
    config_ = SW_TRY(read_hf_config(source().hf_config));
    mappings_ = SW_TRY(load_mappings(result_.conversion.request, config_));
    mapping_ = SW_TRY(chosen_family(result_.conversion.request, mappings_, config_));
    result_.conversion.family = mapping_->family;
    result_.family = mapping_->family;
    if (!mapping_->parts.empty()) return {};
    return no_parts(*mapping_);
  }

  // Which tensor is whose.
  Status assign() {
    std::vector<std::string> unknown;
    const std::vector<StoredTensor>& tensors = source().catalog.tensors;
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      PartName name = part_name(mapping_->parts, tensors[i].desc.name);
      if (name.part == nullptr) {
        unknown.push_back(tensors[i].desc.name);
      } else {
        members_[name.part].push_back({i, std::move(name.alone)});
      }
    }
    if (unknown.empty()) return {};
    return fail(Code::kUnmatchedSource,
                "{}: found {} tensors that belong to no part of {}: {}; the 'hf' prefixes of its "
                "mapping file's components say what does",
                request_.input, unknown.size(), mapping_->family, name_list(unknown));
  }

  // A prefix alone may be any model's: each tensor must be one that the family has. Of packed
  // values that only other software reads, the module's weight must be.
  Status check_rules() {
    const std::vector<TensorDesc> stored = descs_of(source().catalog);
    const Result<ModelTensors> model =
        model_tensors(source().catalog, source().hf_config, source().files.get());
    const ModelSizes sizes = SW_TRY(sizes_from_hf_config(*mapping_, config_));
    const MappingReport report = SW_TRY(report_mapping(
        *mapping_, config_, model ? std::span<const TensorDesc>(model->tensors) : stored));
    std::set<std::string, std::less<>> known;
    std::vector<std::string> unknown;
    for (const TensorDesc& tensor : stored) known.insert(tensor.name);
    for (const MappingProblem& problem : report.problems) {
      if (problem.kind == MappingProblem::Kind::kMissing) {
        known.insert(problem.tensors.begin(), problem.tensors.end());
      } else if (problem.kind == MappingProblem::Kind::kUncovered) {
        unknown.insert(unknown.end(), problem.tensors.begin(), problem.tensors.end());
      }
    }
    for (const std::string& name : unknown) known.erase(name);
    if (!model) {
      std::erase_if(unknown, [&](const std::string& name) {
        return known.contains(name.substr(0, name.rfind('.') + 1) + "weight");
      });
    }
    if (unknown.empty()) return {};
    return fail(Code::kUnmatchedSource,
                "{}: found {} tensors for which family {} has no rule: {}; check the family and "
                "the numbers in config.json",
                request_.input, unknown.size(), mapping_->family, name_list(unknown));
  }

  Status add_part(const ModelPart& part) {
    const std::vector<Member>& members = members_[&part];
    if (members.empty()) {
      tell(translated("the model has no tensors of {}: no folder is written for it", part.name));
      return {};
    }
    const std::string folder = part.name + "/";
    std::vector<DraftTensor> drafts;
    std::vector<const StoredTensor*> stored;
    for (const Member& member : members) {
      DraftTensor draft = all_[member.tensor];
      result_.conversion.renames.push_back({{draft.desc.name}, folder + member.name});
      draft.desc.name = member.name;
      drafts.push_back(std::move(draft));
      stored.push_back(&source().catalog.tensors[member.tensor]);
    }
    result_.parts.push_back(part_report(part.name, request_.output + "/" + part.name, stored));
    SW_TRY(add_config(part, folder, drafts));
    TargetParts parts;
    parts.folder = folder;
    parts.tensors = std::move(drafts);
    PreparedConversion& conversion = result_.conversion;
    const Target& target = *SW_TRY(find_target(conversion.request.format));
    return target.lay_out(conversion.request, parts, conversion.plan, conversion.notes);
  }

  // Of the whole model's config what it says of the part alone.
  Status add_config(const ModelPart& part, const std::string& folder,
                    const std::vector<DraftTensor>& drafts) {
    if (part.config.empty()) return {};
    const nlohmann::ordered_json document =
        SW_TRY(parse_ordered_json(source().hf_config, "config.json"));
    const nlohmann::ordered_json* const own = object_at(document, part.config);
    if (own == nullptr) {
      tell(translated("config.json has no {}: {} gets no config.json", part.config, part.name));
      return {};
    }
    nlohmann::ordered_json alone = *own;
    SW_TRY(inherit(part, document, alone));
    const std::string text = alone.dump(2) + "\n";
    const ConfigEdits edits{written_dtype(drafts), DtypeScope::kTop};
    const std::string edited = SW_TRY(edited_config(text, edits, result_.conversion.notes));
    parts_.files.push_back({folder + "config.json", edited.empty() ? text : edited});
    return {};
  }

  // What the top of the whole model's config says of the part too.
  Status inherit(const ModelPart& part, const nlohmann::ordered_json& document,
                 nlohmann::ordered_json& alone) {
    const auto quantisation = document.find("quantization_config");
    const bool has_quantised = std::ranges::any_of(members_[&part], [&](const Member& member) {
      return is_quantised(source().catalog.tensors[member.tensor].desc.dtype);
    });
    if (has_quantised && quantisation != document.end() && !alone.contains(quantisation.key())) {
      alone[quantisation.key()] = *quantisation;
    }
    if (part.name != kLanguagePart) return {};
    const bool is_tied = says_tied(config_, mapping_);
    const HfConfig own = SW_TRY(read_hf_config(alone.dump()));
    if (SW_TRY(says_tied(own, hf_request(request_))) != is_tied)
      alone["tie_word_embeddings"] = is_tied;
    return {};
  }

  // What a merge needs to make the same model again.
  void add_model() {
    const std::string folder = std::string(kWholeModelFolder) + "/";
    parts_.files.push_back(
        {folder + std::string(kSourceKeysFile), write_source_keys(descs_of(source().catalog))});
    for (const auto& [name, object] : source().artifacts) {
      if (name != kSourceKeysFile) parts_.artifacts.emplace_back(folder + name, object);
    }
  }

  void tell(std::string note) { result_.conversion.notes.push_back(std::move(note)); }

  struct Member {
    std::uint32_t tensor = 0;
    std::string name;
  };

  const SplitRequest& request_;
  Mappings mappings_;
  HfConfig config_;
  const Mapping* mapping_ = nullptr;
  std::map<const ModelPart*, std::vector<Member>> members_;
  std::vector<DraftTensor> all_;
  TargetParts parts_;
  PreparedSplit result_;
};

}  // namespace

Result<PreparedSplit> prepare_split(const SplitRequest& request) { return Splitter(request).run(); }

}  // namespace shardwright
