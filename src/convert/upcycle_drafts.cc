// SPDX-License-Identifier: Apache-2.0
#include "convert/upcycle_drafts.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "convert/expert_cut.h"
#include "convert/more_sources.h"
#include "convert/upcycle_spec.h"
#include "convert/upcycled_router.h"
#include "format/rank_modules.h"
#include "layout/layer_name.h"
#include "layout/shard_rule.h"
#include "model/arguments.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

constexpr std::string_view kFirst = "mlp.linear_fc1.";
constexpr std::string_view kSecond = "mlp.linear_fc2.";
constexpr std::string_view kExperts = "mlp.experts.experts.";
constexpr std::string_view kFusedNorm = "mlp.linear_fc1.layer_norm_";
constexpr std::string_view kNorm = "pre_mlp_layernorm.";

// Of the language model and of its prediction layers; those of a tower stay dense.
bool is_of_language_layer(std::string_view name) {
  const std::optional<LayerName> layer = split_layer_name(name);
  return layer && (is_main_stack(layer->stack) || is_prediction_layer(name));
}

// What stands before `part` in such a name.
std::optional<std::string> module_before(const std::string& name, std::string_view part) {
  const std::size_t at = name.find(part);
  if (at == std::string::npos || at == 0 || name[at - 1] != '.') return std::nullopt;
  return is_of_language_layer(name) ? std::optional(name.substr(0, at)) : std::nullopt;
}

class Upcycler {
 public:
  Upcycler(Drafting& drafting, const Arguments& arguments)
      : drafting_(drafting), arguments_(arguments), wanted_(*drafting.request().upcycle) {}

  Status run() {
    SW_TRY(find_layers());
    SW_TRY(find_scale());
    std::vector<DraftTensor> result;
    for (DraftTensor& tensor : drafting_.parts.tensors) {
      SW_TRY(take(std::move(tensor), result));
    }
    drafting_.parts.tensors = std::move(result);
    leave_states();
    set_arguments();
    tell();
    return {};
  }

 private:
  Status find_layers() {
    std::int64_t first_rows = 0;
    for (const DraftTensor& tensor : drafting_.parts.tensors) {
      const std::string& name = tensor.desc.name;
      if (is_optimizer_name(name)) {
        return fail(Code::kOptimizerUnsupported,
                    "{}: its optimizer has no states of experts; --optimizer drop leaves all out",
                    drafting_.request().input);
      }
      if (module_before(name, "mlp.experts.") || module_before(name, "mlp.router.")) {
        return refuse(translated("tensor {}: the model has experts already, expected a dense one",
                                 printable(name)));
      }
      if (module_before(name, "mixer.")) {
        return refuse(translated(
            "tensor {}: layers of several kinds have a pattern that says which have an MLP, "
            "expected a model whose layers are alike",
            printable(name)));
      }
      const bool is_mlp = module_before(name, kFirst) || module_before(name, kSecond);
      if (is_mlp && split_layer_name(name)->stack.ends_with("encoder.layers")) {
        return refuse(translated(
            "tensor {}: layers of BERT and T5 have no experts in Megatron-Core, expected a decoder",
            printable(name)));
      }
      const int axes = tensor.desc.shape.size();
      if (axes >= 2 && module_before(name, std::string(kFirst) + "weight")) {
        first_rows = tensor.desc.shape[axes - 2];
      }
      if (axes < 2 || !module_before(name, std::string(kSecond) + "weight")) continue;
      const std::int64_t columns = tensor.desc.shape[axes - 1];
      if (width_ != 0 && width_ != columns) {
        return refuse(translated(
            "tensor {}: found {} columns, expected {} as in other layers: experts have one size",
            printable(name), columns, width_));
      }
      width_ = columns;
    }
    if (width_ == 0 || first_rows == 0) return refuse("no dense MLP is converted");
    is_gated_ = is_gated(first_rows, width_);
    if (width_ % wanted_.granularity != 0) {
      return refuse(translated(
          "granularity {} does not divide the {} columns of linear_fc2; found {} left over",
          wanted_.granularity, width_, width_ % wanted_.granularity));
    }
    return {};
  }

  // As Megatron-Core's, whose arithmetic is Python's: what experts add up to is as large as what
  // the dense MLP gave (arXiv 2410.07524).
  Status find_scale() {
    const auto granularity = static_cast<double>(wanted_.granularity);
    const std::int64_t groups = wanted_.experts / wanted_.granularity;
    const auto rate = static_cast<double>(groups);
    double activation = granularity;
    if (wanted_.softmax_before_top) {
      activation = rate * granularity * granularity / static_cast<double>(wanted_.top_k);
    }
    if (activation == 1.0) return {};
    if (!is_gated_ && arguments_.empty()) {
      return fail(Code::kConfigMissing,
                  "{}: nothing says which activation its MLPs have, and with it how weights are "
                  "scaled; convert from a checkpoint with arguments",
                  drafting_.request().input);
    }
    const bool is_cubic = is_gated_ || is_true(arguments_, "squared_relu");
    scale_ = static_cast<float>(std::pow(activation, is_cubic ? 1.0 / 3 : 1.0 / 2));
    return {};
  }

  Status take(DraftTensor tensor, std::vector<DraftTensor>& result) {
    std::string& name = tensor.desc.name;
    const int axes = tensor.desc.shape.size();
    if (const auto module = module_before(name, kFusedNorm)) {
      const std::size_t fused = module->size();
      if (has_own_norm()) name.replace(fused, kFusedNorm.size(), kNorm);
      result.push_back(std::move(tensor));
      return {};
    }
    const bool is_bias = name.ends_with(".bias");
    if (const auto module = module_before(name, kFirst)) {
      result.push_back(is_bias ? draft_router_bias(*module, tensor, wanted_)
                               : SW_TRY(draft_router(drafting_, arguments_, *module, tensor)));
      return share_out({is_bias ? axes - 1 : axes - 2, is_gated_ ? 2 : 1}, true, *module, kFirst,
                       std::move(tensor), result);
    }
    if (const auto module = module_before(name, kSecond)) {
      return share_out({is_bias ? -1 : axes - 1, 1}, !is_bias, *module, kSecond, std::move(tensor),
                       result);
    }
    result.push_back(std::move(tensor));
    return {};
  }

  // Transformer Engine fuses the norm into a dense MLP, but not into experts.
  [[nodiscard]] bool has_own_norm() const {
    const ModuleSpec spec = drafting_.request().spec;
    if (spec != ModuleSpec::kKeep) return spec == ModuleSpec::kTransformerEngine;
    return drafting_.is_from_hf() ||
           uses_transformer_engine(arguments_, drafting_.source().versioned_names,
                                   drafting_.catalog);
  }

  Status share_out(ExpertCut cut, bool is_scaled, const std::string& module, std::string_view part,
                   DraftTensor tensor, std::vector<DraftTensor>& result) {
    const std::string name = tensor.desc.name;
    const int expert_axis = layer_axes(name);
    const Dims& dense = tensor.desc.shape;
    const bool is_known = name == module + std::string(part) + "weight" || name.ends_with("bias");
    const std::int64_t pieces = cut.parts * wanted_.granularity;
    if (!is_known || tensor.recipe.add != 0.0 || dense.size() < expert_axis + 1 ||
        (cut.axis >= 0 && (cut.axis < expert_axis || dense[cut.axis] % pieces != 0))) {
      return refuse(translated("tensor {}: found shape {}, expected an MLP that is cut in {}",
                               printable(name), to_string(dense), wanted_.granularity));
    }
    DraftTensor experts{{module + std::string(kExperts) +
                             name.substr(module.size() + std::string_view("mlp.").size()),
                         tensor.desc.dtype, with_axis(dense, expert_axis, wanted_.experts)},
                        {},
                        std::nullopt};
    if (cut.axis >= 0) experts.desc.shape[cut.axis + 1] /= wanted_.granularity;
    experts.recipe.fill = tensor.recipe.fill;
    for (TensorView view : tensor.recipe.views) {
      if (is_scaled && scale_ != 1.0F) view.source = scaled(view.source);
      for (std::int64_t expert = 0; expert < wanted_.experts; ++expert) {
        add_expert_views(cut, dense, {expert_axis, expert, wanted_.granularity}, view,
                         experts.recipe.views);
      }
    }
    result.push_back(std::move(experts));
    return {};
  }

  // The source tensor as experts have it; others that read it get it as it is.
  std::uint32_t scaled(std::uint32_t source) {
    const auto known = scaled_.find(source);
    if (known != scaled_.end()) return known->second;
    const std::uint32_t repeated = repeat_source(drafting_, source);
    drafting_.result.plan.weighted.push_back({repeated, scale_, 0, 0.0});
    scaled_.emplace(source, repeated);
    return repeated;
  }

  // Of linears that are gone.
  void leave_states() {
    std::erase_if(drafting_.catalog.objects, [](const StoredObject& object) {
      return module_before(object.name, kFirst) || module_before(object.name, kSecond);
    });
  }

  void set_arguments() {
    const bool is_local = !has_own_norm();
    drafting_.parts.model_edits = {
        {"num_experts", wanted_.experts},
        {"moe_ffn_hidden_size", width_ / wanted_.granularity},
        {"moe_router_topk", wanted_.top_k},
        {"moe_router_pre_softmax", wanted_.softmax_before_top},
        {"moe_router_score_function", std::string("softmax")},
        {"moe_router_enable_expert_bias", false},
        {"moe_layer_freq", std::int64_t{1}},
        {"moe_grouped_gemm", !is_local},
    };
  }

  void tell() {
    std::string scale;
    if (scale_ != 1.0F) scale = translated(", their weights times {}", scale_);
    drafting_.tell(translated(
        "each dense MLP becomes {} experts of {} columns{}; routers are new, random numbers of "
        "seed {}",
        wanted_.experts, width_ / wanted_.granularity, scale, wanted_.seed));
  }

  static Status refuse(const std::string& why) { return fail(Code::kUsage, "--upcycle: {}", why); }

  Drafting& drafting_;
  const Arguments& arguments_;
  Upcycling wanted_;
  std::int64_t width_ = 0;  // columns of the dense linear_fc2
  bool is_gated_ = false;
  float scale_ = 1.0F;
  std::unordered_map<std::uint32_t, std::uint32_t> scaled_;
};

}  // namespace

Status check_upcycling(const ConvertRequest& request, const TargetTraits& target) {
  if (!request.upcycle) return {};
  if (target.names != TargetNames::kMegatron || target.has_components) {
    return fail(Code::kUsage,
                "--upcycle does not apply to --to {}: experts are made of Megatron's tensors; "
                "convert --to torch_dist with it, and that --to hf with the --hf-config of a model "
                "with experts",
                target.name);
  }
  if (!request.adapter.empty()) {
    return fail(Code::kUsage, "--upcycle: merge the adapter first, then convert the model with it");
  }
  const Upcycling& wanted = *request.upcycle;
  for (const std::int64_t number : {wanted.experts, wanted.granularity, wanted.top_k}) {
    if (number >= 1 && number <= kMostExperts) continue;
    return fail(Code::kUsage, "--upcycle: found {}, expected numbers from 1 to {}", number,
                kMostExperts);
  }
  if (wanted.experts % wanted.granularity != 0) {
    return fail(Code::kUsage,
                "--upcycle: found {} experts, expected a multiple of granularity {}: each copy of "
                "the dense MLP is cut into so many",
                wanted.experts, wanted.granularity);
  }
  if (wanted.top_k > wanted.experts) {
    return fail(Code::kUsage,
                "--upcycle: found topk {}, expected at most {}, the experts there are",
                wanted.top_k, wanted.experts);
  }
  return {};
}

Status upcycle(Drafting& drafting, const Arguments& arguments) {
  if (!drafting.request().upcycle) return {};
  return Upcycler(drafting, arguments).run();
}

}  // namespace shardwright
