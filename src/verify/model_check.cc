// SPDX-License-Identifier: Apache-2.0
#include "verify/model_check.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/checked.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "convert/correspond.h"
#include "convert/dequantise.h"
#include "convert/families.h"
#include "convert/fsdp_source.h"
#include "format/recorded_run.h"
#include "layout/layer_name.h"
#include "layout/piece_limit.h"
#include "model/apply.h"
#include "model/convolutions.h"
#include "plan/canonical.h"
#include "verify/findings.h"
#include "verify/view.h"

namespace shardwright {
namespace {

class ModelCheck {
 public:
  ModelCheck(const Checkpoint& checkpoint, const ProofOptions& options, VerifyReport& report)
      : checkpoint_(checkpoint), report_(report), request_(request_of(options)) {}

  Status check() {
    if (is_hf_model(checkpoint_)) {
      descs_ = descs_of(checkpoint_.catalog);
      return check_hf();
    }
    Catalog canonical;
    if (is_fsdp(checkpoint_)) {
      std::vector<std::string> left_out;  // of the model only; verify reads all of the checkpoint
      auto made = canonical_from_fsdp(checkpoint_.catalog, checkpoint_.arguments, left_out);
      if (!made) {
        add_finding(report_, made.error());
        return {};
      }
      canonical = *std::move(made);
    }
    const Catalog& catalog = is_fsdp(checkpoint_) ? canonical : checkpoint_.catalog;
    if (!has_megatron_names(catalog)) {
      descs_ = descs_of(checkpoint_.catalog);
      check_local_experts();
      return {};
    }
    SW_TRY(check_piece_count(descs_of(catalog)));
    for (const CanonicalTensor& tensor : canonical_tensors(catalog)) {
      descs_.push_back(tensor.desc);
    }
    check_layers();
    check_experts();
    return check_megatron();
  }

 private:
  // A mapping can only be held against a model that it is known to be of.
  Result<std::optional<ModelFacts>> find_facts(std::span<const TensorDesc> canonical) {
    mappings_ = SW_TRY(load_mappings_of(request_, checkpoint_));
    std::vector<std::string> notes;
    auto facts = find_model_facts(request_, checkpoint_, mappings_, canonical, notes);
    if (facts) {
      report_.family = facts->mapping->family;
      return std::optional(*std::move(facts));
    }
    report_.notes.push_back("the model's tensors are not held against a family: " +
                            facts.error().message);
    return std::optional<ModelFacts>();
  }

  Status check_hf() {
    if (checkpoint_.hf_config.empty()) {
      add_finding(report_, Code::kConfigMissing, "config.json",
                  "config.json: found none, expected the model's; nothing says which tensors it "
                  "should have",
                  Severity::kWarning);
      return {};
    }
    const auto facts = SW_TRY(find_facts({}));
    if (!facts) return {};
    const auto model = model_tensors(checkpoint_.catalog, facts->config_text);
    if (!model) {
      add_finding(report_, model.error());
      return {};
    }
    tell(map_from_hf(*facts->mapping, facts->sizes, model->tensors));
    if (model->quantised.empty()) check_dtype(facts->config_text);
    return {};
  }

  // config.json names one dtype; some tensors may be kept in another, but not all of them.
  void check_dtype(const std::string& config_text) {
    const auto config = parse_json(config_text, "config.json");
    if (!config || !config->is_object()) return;
    const char* const key = config->contains("torch_dtype") ? "torch_dtype" : "dtype";
    if (!config->contains(key) || !(*config)[key].is_string()) return;
    const auto dtype = dtype_from_torch((*config)[key].get_ref<const std::string&>());
    if (!dtype) return;
    const TensorDesc* other = nullptr;
    for (const TensorDesc& desc : descs_) {
      if (desc.dtype == *dtype) return;
      if (is_castable_float(desc.dtype)) other = &desc;
    }
    if (other == nullptr) return;
    add_finding(report_, Code::kShapeMismatch, "config.json",
                fmt::format("config.json: found dtype {}, expected that of some tensor, but none "
                            "has it: {} is {}",
                            torch_name(*dtype), other->name, torch_name(other->dtype)),
                Severity::kWarning);
  }

  Status check_megatron() {
    const auto facts = SW_TRY(find_facts(descs_));
    if (!facts) return {};
    const auto keys = wanted_keys(checkpoint_);
    if (!keys) {
      add_finding(report_, keys.error());
      return {};
    }
    const auto flat = flat_convolutions(*facts->mapping, facts->sizes, descs_);
    if (!flat) {
      add_finding(report_, flat.error());
      return {};
    }
    for (const TensorDesc& convolution : *flat) {
      std::ranges::find(descs_, convolution.name, &TensorDesc::name)->shape = convolution.shape;
    }
    tell(correspond_from_megatron(*facts, descs_, *keys));
    return {};
  }

  void tell(const Result<Correspondence>& correspondence) {
    if (correspondence) {
      report_.proven.push_back(fmt::format(
          "the tensors are those of a {} model of this size, shape by shape", report_.family));
    } else {
      add_finding(report_, correspondence.error());
    }
  }

  // Layers of the main stack, counted through, and as many as the arguments say.
  void check_layers() {
    std::set<std::int64_t> layers;
    for (const TensorDesc& desc : descs_) {
      const std::optional<LayerName> name = split_layer_name(desc.name);
      if (name && name->index && is_main_stack(name->stack)) layers.insert(*name->index);
    }
    if (layers.empty()) return;
    const std::int64_t last = std::max(
        number_of(checkpoint_.arguments, {"num_layers"}).value_or(0) - 1, *layers.rbegin());
    // Arguments and names may claim any number: a few of the missing ones say it.
    constexpr std::size_t kMostNamed = 20;
    std::vector<std::string> missing;
    for (std::int64_t layer = 0; layer < last && missing.size() < kMostNamed; ++layer) {
      if (!layers.contains(layer)) missing.push_back(std::to_string(layer));
    }
    if (!layers.contains(last) && missing.size() < kMostNamed) {
      missing.push_back(std::to_string(last));
    }
    if (missing.empty()) {
      report_.proven.push_back(fmt::format("all {} layers are there", layers.size()));
      return;
    }
    add_finding(report_, Code::kModelIncomplete, "decoder.layers",
                fmt::format("decoder.layers: found {} layers, none of {}, expected all up to "
                            "{}; a pipeline stage's part was lost",
                            layers.size(), name_list(missing), last));
  }

  // A router has a row per expert; the experts are one tensor with an axis for them, or one each.
  void check_experts() {
    std::map<std::string, std::int64_t, std::less<>> routers;  // rows by what is before `.router.`
    for (const TensorDesc& desc : descs_) {
      const std::size_t at = desc.name.find(".router.weight");
      if (at != std::string::npos && desc.shape.size() == 2) {
        routers.emplace(desc.name.substr(0, at), desc.shape[0]);
      }
    }
    std::map<std::string, std::set<std::string>> numbered;
    for (const TensorDesc& desc : descs_) {
      const std::size_t at = desc.name.find(".experts.");
      if (at == std::string::npos) continue;
      const auto router = routers.find(std::string_view(desc.name).substr(0, at));
      if (router == routers.end()) continue;
      const bool is_grouped = desc.name.find(".experts.experts.") != std::string::npos &&
                              desc.name.ends_with(".weight") && desc.shape.size() == 3;
      if (is_grouped) tell_experts(desc.name, desc.shape[0], router->second);
      const std::size_t digits = desc.name.find_last_not_of("0123456789") + 1;
      if (digits < desc.name.size()) {
        numbered[desc.name.substr(0, digits)].insert(desc.name.substr(digits));
      }
    }
    for (const auto& [name, numbers] : numbered) {
      const std::size_t at = name.find(".experts.");
      tell_experts(name + "*", static_cast<std::int64_t>(numbers.size()),
                   routers.find(std::string_view(name).substr(0, at))->second);
    }
  }

  // DTensor models of Megatron number the experts of a rank; each tensor stacks the expert-parallel
  // ranks' own along its rows. A down-projection has the router's columns as rows, once per rank.
  void check_local_experts() {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> down;  // experts per rank, rows
    for (const TensorDesc& desc : descs_) {
      const std::size_t at = desc.name.find(".experts.fc2.weight");
      if (at == std::string::npos || desc.shape.size() != 2) continue;
      auto& [count, rows] = down[desc.name.substr(0, at)];
      ++count;
      rows = desc.shape[0];
    }
    for (const TensorDesc& desc : descs_) {
      const std::size_t at = desc.name.find(".router.weight");
      const auto found = at == std::string::npos ? down.end() : down.find(desc.name.substr(0, at));
      if (found == down.end() || desc.shape.size() != 2 || desc.shape[1] == 0) continue;
      const auto [count, rows] = found->second;
      // A product beyond all numbers is no router's count.
      tell_experts(found->first + ".experts.fc2.weight*",
                   checked_mul(rows / desc.shape[1], count).value_or(-1), desc.shape[0]);
    }
  }

  void tell_experts(const std::string& name, std::int64_t found, std::int64_t expected) {
    if (found == expected) return;
    add_finding(report_, Code::kModelIncomplete, name,
                fmt::format("tensor {}: found {} experts, expected {} as the router has; the "
                            "shards of expert-parallel ranks were lost",
                            name, found, expected));
  }

  const Checkpoint& checkpoint_;
  VerifyReport& report_;
  ConvertRequest request_;
  std::vector<Mapping> mappings_;
  std::vector<TensorDesc> descs_;
};

}  // namespace

Status check_model(const Checkpoint& checkpoint, const ProofOptions& options,
                   VerifyReport& report) {
  return ModelCheck(checkpoint, options, report).check();
}

}  // namespace shardwright
