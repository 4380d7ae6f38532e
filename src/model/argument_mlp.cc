// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/translated.h"
#include "model/activation.h"
#include "model/argument_facts.h"
#include "model/config_rules.h"

namespace shardwright {
namespace {

using Layer = LanguageTensors::Layer;
using Number = std::optional<std::int64_t>;

// The second is that of ERNIE 4.5 VL's experts for text.
constexpr std::array<std::string_view, 2> kRouters = {"mlp.router.weight",
                                                      "mlp.text_moe_layer.router.weight"};

const TensorDesc* router_of(const Layer& layer) {
  for (const std::string_view name : kRouters) {
    if (const auto found = layer.find(name); found != layer.end()) return found->second;
  }
  return nullptr;
}

// What `linear_fc2` takes: its last axis is what the activation gives.
std::int64_t width_of(const TensorDesc& down) { return down.shape[down.shape.size() - 1]; }

class Widths {
 public:
  explicit Widths(StatedArguments& stated)
      : stated_(stated),
        dense_(stated.number({"ffn_hidden_size"})),
        experts_(stated.number({"moe_ffn_hidden_size"})),
        shared_(stated.number({"moe_shared_expert_intermediate_size"})),
        is_gated_(states_gate(stated.all())) {}

  void check(const Layer& layer) {
    for (const auto& [name, down] : layer) {
      const std::size_t at = name.find(".linear_fc2.weight");
      if (at == std::string_view::npos || down->shape.size() < 2) continue;
      const std::string_view module = name.substr(0, at);
      if (module == "mlp") {
        stated_.expect("ffn_hidden_size", dense_, width_of(*down), *down);
      } else if (module == "mlp.shared_experts") {
        check_shared(*down);
      } else if (module.starts_with("mlp.experts")) {
        const bool is_apart = experts_.has_value();
        stated_.expect(is_apart ? "moe_ffn_hidden_size" : "ffn_hidden_size",
                       is_apart ? experts_ : dense_, width_of(*down), *down);
      } else {
        continue;
      }
      check_gate(layer, std::string(name), *down);
    }
  }

 private:
  void check_shared(const TensorDesc& down) {
    constexpr std::string_view kName = "moe_shared_expert_intermediate_size";
    stated_.expect(kName, shared_, width_of(down), down);
    if (!shared_ && stated_.named({kName})) {
      stated_.contradict(kName, translated("{} is there", shown_by(down)));
    }
  }

  // A gated MLP's first linear makes twice what its second takes.
  void check_gate(const Layer& layer, std::string name, const TensorDesc& down) {
    if (!is_gated_) return;
    name[name.find("fc2") + 2] = '1';
    const auto up = layer.find(name);
    if (up == layer.end() || up->second->shape.size() != down.shape.size()) return;
    const std::int64_t made = up->second->shape[down.shape.size() - 2];
    const bool shows_gate = made == 2 * width_of(down);
    for (const std::string_view gate : kGateFlags) {
      if (stated_.flag(gate)) stated_.hold(gate);
    }
    if (shows_gate == *is_gated_ || (!shows_gate && made != width_of(down))) return;
    const std::string_view flag = *is_gated_ ? told_flag() : named_flag();
    stated_.contradict(flag, shows_gate
                                 ? translated("{} makes twice the {} channels of {}",
                                              shown_by(*up->second), width_of(down), down.name)
                                 : translated("{} makes only the {} channels of {}",
                                              shown_by(*up->second), width_of(down), down.name));
  }

  std::string_view told_flag() const {
    for (const std::string_view name : kGateFlags) {
      if (stated_.flag(name) == true) return name;
    }
    return kGateFlags.front();
  }

  std::string_view named_flag() const {
    return stated_.named({"swiglu", "gated_linear_unit"}).value_or("swiglu");
  }

  StatedArguments& stated_;
  Number dense_;
  Number experts_;
  Number shared_;
  std::optional<bool> is_gated_;
};

// `moe_layer_freq`, a hybrid's letters, or Jamba's period and offset: a model cut down to its first
// layers may have none with experts, and files of hybrids without experts say their number too.
bool are_all_dense(const StatedArguments& stated, std::int64_t layers) {
  if (const auto pattern = hybrid_pattern(stated)) return !pattern->contains('E');
  const ArgValue* found = stated.find("moe_layer_freq");
  const auto* list = found == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(found);
  if (list != nullptr) return std::ranges::find(*list, 1) == list->end();
  return stated.find("expert_layer_period") != nullptr &&
         whole_or(stated.find("expert_layer_offset"), 0) >= layers;
}

void check_experts(const LanguageTensors& model, StatedArguments& stated) {
  const std::optional<std::string_view> name = stated.named({"num_experts", "num_moe_experts"});
  const Number experts = stated.number({"num_experts", "num_moe_experts"});
  const TensorDesc* const router = model.in_some_layer({kRouters[0], kRouters[1]});
  if (!name) return;
  if (router == nullptr) {
    const bool has_mlp = model.in_some_layer({"mlp.linear_fc2.weight"}) != nullptr;
    if (has_mlp) stated.hold(*name);
    if (has_mlp && experts.value_or(0) > 1 && !are_all_dense(stated, model.layer_count())) {
      stated.contradict(*name, "no layer has a router");
    }
  } else if (!experts) {
    stated.contradict(*name, shown_by(*router) + translated(" is there"));
  } else {
    for (const auto& [number, layer] : model.layers()) {
      const TensorDesc* const own = router_of(layer);
      if (own == nullptr || own->shape.empty()) continue;
      stated.expect(*name, experts, own->shape[0], *own);
    }
  }
  const Number shared = stated.number({"moe_shared_expert_intermediate_size"});
  const bool has_shared = model.in_some_layer({"mlp.shared_experts.linear_fc2.weight"}) != nullptr;
  if (router != nullptr && shared.value_or(0) > 0 && !has_shared) {
    stated.contradict("moe_shared_expert_intermediate_size", "no layer has a shared expert");
  }
}

// One, or one for each kind of tokens.
bool has_expert_bias(const Layer& layer) {
  return std::ranges::any_of(layer, [](const auto& tensor) {
    return tensor.first.starts_with("mlp.router.") && tensor.first.ends_with("expert_bias");
  });
}

// Layers that choose experts by a token's number have none.
void check_expert_bias(const LanguageTensors& model, StatedArguments& stated) {
  constexpr std::string_view kName = "moe_router_enable_expert_bias";
  const std::optional<bool> has_bias = stated.flag(kName);
  if (!has_bias) return;
  const TensorDesc* const found = model.in_some_layer({"mlp.router.expert_bias"});
  if (model.in_some_layer({kRouters[0]}) == nullptr) return;
  stated.hold(kName);
  if (!*has_bias && found != nullptr) {
    stated.contradict(kName, shown_by(*found) + translated(" is there"));
  }
  if (!*has_bias) return;
  for (const auto& [number, layer] : model.layers()) {
    const bool is_routed = layer.contains(kRouters[0]) && !layer.contains("mlp.router.tid2eid");
    if (!is_routed || has_expert_bias(layer)) continue;
    stated.contradict(kName, translated("layer {} has no {}", number, "mlp.router.expert_bias"));
    return;
  }
}

// Which layers have experts. A hybrid's pattern says it instead.
void check_frequency(const LanguageTensors& model, StatedArguments& stated) {
  constexpr std::string_view kName = "moe_layer_freq";
  const ArgValue* const frequency = stated.find(kName);
  if (frequency == nullptr || hybrid_pattern(stated) ||
      model.in_some_layer({kRouters[0], kRouters[1]}) == nullptr) {
    return;
  }
  const auto* list = std::get_if<std::vector<std::int64_t>>(frequency);
  const auto* number = std::get_if<std::int64_t>(frequency);
  if (list == nullptr && number == nullptr) return;
  stated.hold(kName);
  const std::int64_t layers = model.layer_count();
  if (list != nullptr && std::ssize(*list) != layers) {
    stated.contradict(kName, translated("there are {} layers", layers));
    return;
  }
  if (number != nullptr && *number < 1) {
    stated.contradict(kName, "no layer would have experts");
    return;
  }
  for (const auto& [index, layer] : model.layers()) {
    const bool has_experts = router_of(layer) != nullptr;
    if (!has_experts && !layer.contains("mlp.linear_fc2.weight")) continue;
    const bool should =
        list != nullptr ? (*list)[static_cast<std::size_t>(index)] != 0 : index % *number == 0;
    if (should == has_experts) continue;
    stated.contradict(
        kName, fmt::format("layer {} {}", index, has_experts ? "has a router" : "has no router"));
    return;
  }
}

void check_mlp_bias(const LanguageTensors& model, StatedArguments& stated) {
  const std::optional<bool> has_bias = stated.flag("add_bias_linear");
  const TensorDesc* const weight = model.in_some_layer({"mlp.linear_fc2.weight"});
  const TensorDesc* const bias =
      model.in_some_layer({"mlp.linear_fc1.bias", "mlp.linear_fc2.bias"});
  if (has_bias && (weight != nullptr || bias != nullptr)) stated.hold("add_bias_linear");
  if (has_bias == false && bias != nullptr) {
    stated.contradict("add_bias_linear", shown_by(*bias) + translated(" is there"));
  } else if (has_bias == true && weight != nullptr && bias == nullptr) {
    stated.contradict("add_bias_linear", "no layer's MLP has a bias");
  }
}

}  // namespace

void check_mlp(const LanguageTensors& model, StatedArguments& stated) {
  check_mlp_bias(model, stated);
  check_experts(model, stated);
  check_expert_bias(model, stated);
  check_frequency(model, stated);
  if (is_heterogeneous(stated)) return;
  Widths widths(stated);
  for (const auto& [number, layer] : model.layers()) widths.check(layer);
}

}  // namespace shardwright
