// SPDX-License-Identifier: Apache-2.0
#include "convert/upcycled_router.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "convert/expert_cut.h"
#include "convert/more_sources.h"
#include "convert/router_file.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

double deviation_of(const Arguments& arguments) {
  constexpr double kMegatrons = 0.02;
  const auto found = arguments.find("init_method_std");
  const double* const value =
      found == arguments.end() ? nullptr : std::get_if<double>(&found->second);
  return value != nullptr && std::isfinite(*value) ? *value : kMegatrons;
}

}  // namespace

Result<DraftTensor> draft_router(Drafting& drafting, const Arguments& arguments,
                                 const std::string& module, const DraftTensor& first) {
  const Upcycling& wanted = *drafting.request().upcycle;
  const Dims& dense = first.desc.shape;
  const bool is_stack = layer_axes(first.desc.name) == 1;
  const std::int64_t rows = wanted.experts / wanted.granularity;
  const std::int64_t hidden = dense[dense.size() - 1];
  RouterWeights weights{{}, rows * hidden, first.desc.dtype, deviation_of(arguments), wanted.seed};
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
  // The seed is part of the plan: a run of another one is another conversion, not another source.
  const std::string drawn = fmt::format("new {}, seed={}", name, wanted.seed);
  const std::uint32_t source = add_made_source(drafting, {drawn, first.desc.dtype, made},
                                               make_router_file(drawn, std::move(weights)));
  DraftTensor router{{name, first.desc.dtype, made}, {}, std::nullopt};
  const int expert_axis = is_stack ? 1 : 0;
  router.desc.shape[expert_axis] = wanted.experts;
  for (std::int64_t expert = 0; expert < wanted.experts; ++expert) {
    TensorView view{Box::whole(router.desc.shape), source, Dims::filled(made.size(), 0), {}, {}};
    view.box.origin[expert_axis] = expert;
    view.box.shape[expert_axis] = 1;
    view.source_origin[expert_axis] = expert / wanted.granularity;
    for (int axis = 0; axis < made.size(); ++axis) {
      view.axis.push_back(axis);
      view.step.push_back(1);
    }
    router.recipe.views.push_back(view);
  }
  return router;
}

DraftTensor draft_router_bias(const std::string& module, const DraftTensor& first,
                              const Upcycling& wanted) {
  Dims shape = first.desc.shape;
  shape[shape.size() - 1] = wanted.experts;
  DraftTensor bias{{module + "mlp.router.bias", first.desc.dtype, shape}, {}, std::nullopt};
  bias.recipe.fill = 0.0;
  return bias;
}

}  // namespace shardwright
