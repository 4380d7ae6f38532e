// SPDX-License-Identifier: Apache-2.0
#include "convert/upcycle_drafts.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "convert/more_sources.h"
#include "convert/router_file.h"
#include "convert/upcycle_spec.h"
#include "format/rank_modules.h"
#include "layout/layer_name.h"
#include "layout/shard_rule.h"
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

Dims inserted(const Dims& dims, int at, std::int64_t value) {
  Dims result;
  for (int i = 0; i <= dims.size(); ++i) {
    if (i == at) result.push_back(value);
    if (i < dims.size()) result.push_back(dims[i]);
  }
  return result;
}

bool is_flag(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->second == ArgValue{true};
}

double deviation_of(const Arguments& arguments) {
  constexpr double kMegatrons = 0.02;
  const auto found = arguments.find("init_method_std");
  const double* const value =
      found == arguments.end() ? nullptr : std::get_if<double>(&found->second);
  return value != nullptr && std::isfinite(*value) ? *value : kMegatrons;
}

// How a dense tensor is shared out among experts.
struct Cut {
  int axis = -1;           // of the tensor, -1: each expert has the whole of it
  std::int64_t parts = 1;  // that the axis consists of, each cut on its own: gates and up rows
};

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
        return refuse(fmt::format("tensor {}: the model has experts already, expected a dense one",
                                  printable(name)));
      }
      if (module_before(name, "mixer.")) {
        return refuse(fmt::format(
            "tensor {}: layers of several kinds have a pattern that says which have an MLP, "
            "expected a model whose layers are alike",
            printable(name)));
      }
      const bool is_mlp = module_before(name, kFirst) || module_before(name, kSecond);
      if (is_mlp && split_layer_name(name)->stack.ends_with("encoder.layers")) {
        return refuse(fmt::format(
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
        return refuse(fmt::format(
            "tensor {}: found {} columns, expected {} as in other layers: experts have one size",
            printable(name), columns, width_));
      }
      width_ = columns;
    }
    if (width_ == 0 || first_rows == 0) return refuse("no dense MLP is converted");
    is_gated_ = is_gated(first_rows, width_);
    if (width_ % wanted_.granularity != 0) {
      return refuse(fmt::format(
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
    const bool is_cubic = is_gated_ || is_flag(arguments_, "squared_relu");
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
      result.push_back(is_bias ? router_bias_of(*module, tensor)
                               : SW_TRY(router_of(*module, tensor)));
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
    return drafting_.is_from_hf() || uses_transformer_engine(arguments_, drafting_.catalog);
  }

  // The axis that counts layers comes before that which counts experts.
  static int layer_axes(const std::string& name) {
    const std::optional<LayerName> layer = split_layer_name(name);
    return layer && !layer->index ? 1 : 0;
  }

  Status share_out(Cut cut, bool is_scaled, const std::string& module, std::string_view part,
                   DraftTensor tensor, std::vector<DraftTensor>& result) {
    const std::string name = tensor.desc.name;
    const int expert_axis = layer_axes(name);
    const Dims& dense = tensor.desc.shape;
    const bool is_known = name == module + std::string(part) + "weight" || name.ends_with("bias");
    const std::int64_t pieces = cut.parts * wanted_.granularity;
    if (!is_known || tensor.recipe.add != 0.0 || dense.size() < expert_axis + 1 ||
        (cut.axis >= 0 && (cut.axis < expert_axis || dense[cut.axis] % pieces != 0))) {
      return refuse(fmt::format("tensor {}: found shape {}, expected an MLP that is cut in {}",
                                printable(name), to_string(dense), wanted_.granularity));
    }
    DraftTensor experts{{module + std::string(kExperts) +
                             name.substr(module.size() + std::string_view("mlp.").size()),
                         tensor.desc.dtype, inserted(dense, expert_axis, wanted_.experts)},
                        {},
                        std::nullopt};
    if (cut.axis >= 0) experts.desc.shape[cut.axis + 1] /= wanted_.granularity;
    experts.recipe.fill = tensor.recipe.fill;
    for (TensorView view : tensor.recipe.views) {
      if (is_scaled && scale_ != 1.0F) view.source = scaled(view.source);
      for (std::int64_t expert = 0; expert < wanted_.experts; ++expert) {
        add_views(cut, dense, expert_axis, expert, view, experts.recipe.views);
      }
    }
    result.push_back(std::move(experts));
    return {};
  }

  // What of one view of the dense tensor becomes the expert's.
  void add_views(const Cut& cut, const Dims& dense, int expert_axis, std::int64_t expert,
                 const TensorView& view, ViewList& views) const {
    const std::int64_t parts = cut.axis < 0 ? 1 : cut.parts;
    for (std::int64_t part = 0; part < parts; ++part) {
      TensorView piece = view;
      if (cut.axis >= 0) {
        const std::int64_t width = dense[cut.axis] / parts;
        const std::int64_t height = width / wanted_.granularity;
        const std::int64_t from = part * width + expert % wanted_.granularity * height;
        const std::int64_t begin = std::max(view.box.origin[cut.axis], from);
        const std::int64_t end = std::min(view.box.end(cut.axis), from + height);
        if (begin >= end) continue;
        const std::int64_t skipped = begin - view.box.origin[cut.axis];
        const std::int64_t source_axis = view.axis[cut.axis];
        if (source_axis >= 0) {
          piece.source_origin[static_cast<int>(source_axis)] += skipped * view.step[cut.axis];
        }
        piece.box.origin[cut.axis] = begin - from + part * height;
        piece.box.shape[cut.axis] = end - begin;
      }
      piece.box.origin = inserted(piece.box.origin, expert_axis, expert);
      piece.box.shape = inserted(piece.box.shape, expert_axis, 1);
      piece.axis = inserted(piece.axis, expert_axis, -1);
      piece.step = inserted(piece.step, expert_axis, 1);
      views.push_back(piece);
    }
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

  // Experts that are cut of one MLP have the same row: tokens that take one take all of them.
  Result<DraftTensor> router_of(const std::string& module, const DraftTensor& first) {
    const Dims& dense = first.desc.shape;
    const bool is_stack = layer_axes(first.desc.name) == 1;
    const std::int64_t rows = wanted_.experts / wanted_.granularity;
    const std::int64_t hidden = dense[dense.size() - 1];
    RouterWeights weights{
        {}, rows * hidden, first.desc.dtype, deviation_of(arguments_), wanted_.seed};
    if (!is_castable_float(first.desc.dtype)) {
      return fail(Code::kDtypeUnsupported, "tensor {}: found {}, expected floating point numbers",
                  printable(first.desc.name), torch_name(first.desc.dtype));
    }
    const std::string name = module + "mlp.router.weight";
    Dims made{rows, hidden};
    if (is_stack) {
      made = {dense[0], rows, hidden};
      const LayerName layer = *split_layer_name(name);
      for (std::int64_t i = 0; i < dense[0]; ++i) {
        weights.layers.push_back(join_layer_name(layer.stack, i, layer.rest));
      }
    } else {
      weights.layers.push_back(name);
    }
    const std::uint32_t source =
        add_made_source(drafting_, {"new " + name, first.desc.dtype, made},
                        make_router_file("new " + name, std::move(weights)));
    DraftTensor router{{name, first.desc.dtype, made}, {}, std::nullopt};
    const int expert_axis = is_stack ? 1 : 0;
    router.desc.shape[expert_axis] = wanted_.experts;
    for (std::int64_t expert = 0; expert < wanted_.experts; ++expert) {
      TensorView view{Box::whole(router.desc.shape), source, Dims::filled(made.size(), 0), {}, {}};
      view.box.origin[expert_axis] = expert;
      view.box.shape[expert_axis] = 1;
      view.source_origin[expert_axis] = expert / wanted_.granularity;
      for (int axis = 0; axis < made.size(); ++axis) {
        view.axis.push_back(axis);
        view.step.push_back(1);
      }
      router.recipe.views.push_back(view);
    }
    return router;
  }

  // Routers have one where linears do. Of zeros it chooses nothing: random ones would tear apart
  // the experts that are cut of one MLP.
  [[nodiscard]] DraftTensor router_bias_of(const std::string& module,
                                           const DraftTensor& first) const {
    Dims shape = first.desc.shape;
    shape[shape.size() - 1] = wanted_.experts;
    DraftTensor bias{{module + "mlp.router.bias", first.desc.dtype, shape}, {}, std::nullopt};
    bias.recipe.fill = 0.0;
    return bias;
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
    if (scale_ != 1.0F) scale = fmt::format(", their weights times {}", scale_);
    drafting_.tell(fmt::format(
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
