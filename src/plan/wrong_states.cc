// SPDX-License-Identifier: Apache-2.0
#include "plan/wrong_states.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/translated.h"
#include "layout/expert_names.h"
#include "layout/layer_name.h"
#include "layout/module_order.h"
#include "layout/optimizer_groups.h"
#include "layout/state_name.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

using StateKinds = std::set<std::string_view>;

constexpr std::string_view kMasterKind = kStateKinds[0];
constexpr std::string_view kFirstMoment = kStateKinds[1];
constexpr std::string_view kSecondMoment = kStateKinds[2];

// A weight that is trained.
struct TrainedWeight {
  const TensorDesc* desc = nullptr;
  std::string_view chain;  // `chained_1.` where the optimizer's parts are told apart
  StateKinds kinds;
};

// Weights that one optimizer trains: the part of a chain, and the number of axes, which embeddings
// and output layers share with vectors.
using Optimizer = std::pair<std::string_view, int>;

// Without the axes that count layers and experts.
int axes_of(const TensorDesc& desc) {
  int axes = desc.shape.size();
  const auto layer = split_layer_name(desc.name);
  if (layer && !layer->index) --axes;
  if (is_of_routed_experts(desc.name)) --axes;
  return std::clamp(axes, 1, 3);
}

std::string listed(const StateKinds& kinds) { return fmt::to_string(fmt::join(kinds, ", ")); }

class StateSurvey {
 public:
  StateSurvey(const Catalog& catalog, RecordedOptimizer optimizer)
      : is_adam_(optimizer.named == NamedOptimizer::kAdam),
        keeps_master_weights_(optimizer.keeps_master_weights) {
    for (const StoredTensor& tensor : catalog.tensors) {
      const std::string& name = tensor.desc.name;
      if (!is_optimizer_name(name)) weights_.emplace(name, &tensor.desc);
    }
    for (const StoredTensor& tensor : catalog.tensors) add(tensor.desc);
    // Adam and Lion know of no other states: whoever has some is trained beside them. Lion's are a
    // part of Adam's.
    has_others_ = optimizer.named == NamedOptimizer::kOfLinears ||
                  std::ranges::any_of(all_kinds_, [](std::string_view kind) {
                    return std::ranges::find(kStateKinds, kind) == kStateKinds.end();
                  });
  }

  StateFindings run(const Catalog& catalog) {
    if (trained_.empty()) return std::move(findings_);
    compare_kinds(catalog);
    for (const StoredTensor& tensor : catalog.tensors) {
      const std::string& name = tensor.desc.name;
      if (!is_optimizer_name(name) && !trained_.contains(name) &&
          !trained_.contains(name_with_states(name)) && is_parameter(name, tensor.desc.dtype)) {
        findings_.without.push_back(name);
      }
    }
    return std::move(findings_);
  }

 private:
  void add(const TensorDesc& desc) {
    const auto state = split_state_name(desc.name);
    if (!state || state->kind == "step") return;
    const auto weight = weights_.find(state->tensor);
    if (weight == weights_.end()) {
      findings_.wrong.push_back(
          {desc.name,
           translated("tensor {}: found optimizer state of no tensor of the model; "
                      "convert without it (--optimizer drop)",
                      desc.name),
           true});
      return;
    }
    if (!(weight->second->shape == desc.shape)) {
      findings_.wrong.push_back(
          {desc.name,
           translated("tensor {}: found optimizer state of shape {}, expected the "
                      "weight's {}; convert without it (--optimizer drop)",
                      desc.name, to_string(desc.shape), to_string(weight->second->shape))});
    }
    TrainedWeight& trained = trained_[weight->first];
    trained.desc = weight->second;
    trained.chain = std::string_view(desc.name).substr(0, desc.name.size() - state->bare.size());
    trained.kinds.insert(state->kind);
    all_kinds_.insert(state->kind);
  }

  [[nodiscard]] Optimizer optimizer_of(const TrainedWeight& weight) const {
    if (!has_others_) return {weight.chain, 0};
    return {weight.chain, is_table(weight.desc->name) ? 1 : axes_of(*weight.desc)};
  }

  // In the order of the catalog.
  void compare_kinds(const Catalog& catalog) {
    std::map<Optimizer, StateKinds> kinds;
    std::map<std::pair<Optimizer, std::string_view>, std::string_view> first_with;
    const auto in_order = [&](const auto& visit) {
      for (const StoredTensor& tensor : catalog.tensors) {
        const auto found = trained_.find(tensor.desc.name);
        if (found != trained_.end()) visit(found->second);
      }
    };
    in_order([&](const TrainedWeight& weight) {
      const Optimizer optimizer = optimizer_of(weight);
      for (const std::string_view kind : weight.kinds) {
        kinds[optimizer].insert(kind);
        first_with.try_emplace({optimizer, kind}, weight.desc->name);
      }
    });
    std::map<std::pair<Optimizer, StateKinds>, std::size_t> lacking;  // in findings_.wrong
    std::map<std::size_t, std::size_t> counts;
    std::map<std::size_t, std::string> texts;
    in_order([&](const TrainedWeight& weight) {
      const Optimizer optimizer = optimizer_of(weight);
      StateKinds expected = kinds[optimizer];
      if (is_adam_) expected.insert({kFirstMoment, kSecondMoment});
      // Without a distributed optimizer a float32 weight is its own master weight.
      const bool is_own_master = weight.desc->dtype == DType::kF32;
      if (is_own_master && !weight.kinds.contains(kMasterKind)) expected.erase(kMasterKind);
      if (keeps_master_weights_ && !is_own_master) expected.insert(kMasterKind);
      if (weight.kinds == expected) return;
      const auto [known, is_new] =
          lacking.try_emplace({optimizer, weight.kinds}, findings_.wrong.size());
      if (!is_new) {
        ++counts[known->second];
        return;
      }
      const auto missing = std::ranges::find_if(
          expected, [&](std::string_view kind) { return !weight.kinds.contains(kind); });
      const auto whose = first_with.find({optimizer, *missing});
      texts[known->second] =
          whose == first_with.end()
              ? translated(
                    "tensor {}: found the optimizer states {}, expected {} by the "
                    "run's arguments",
                    weight.desc->name, listed(weight.kinds), listed(expected))
              : translated("tensor {}: found the optimizer states {}, expected {} as of {}",
                           weight.desc->name, listed(weight.kinds), listed(expected),
                           whose->second);
      findings_.wrong.push_back({weight.desc->name, {}});
    });
    for (const auto& [index, text] : texts) {
      const std::size_t more = counts[index];
      findings_.wrong[index].what =
          translated("{}{}; convert without them (--optimizer drop)", text,
                     more == 0 ? "" : translated(" ({} tensors more lack them too)", more));
    }
  }

  bool is_adam_;
  bool keeps_master_weights_;
  bool has_others_ = false;
  StateKinds all_kinds_;
  std::unordered_map<std::string_view, const TensorDesc*> weights_;
  std::unordered_map<std::string_view, TrainedWeight> trained_;
  StateFindings findings_;
};

}  // namespace

std::string note_on_frozen(const StateFindings& found) {
  if (found.without.empty()) return {};
  return translated("parameters without optimizer states ({}, {} the first) are taken to be frozen",
                    found.without.size(), found.without.front());
}

StateFindings find_wrong_states(const Catalog& catalog, RecordedOptimizer optimizer) {
  return StateSurvey(catalog, optimizer).run(catalog);
}

}  // namespace shardwright
