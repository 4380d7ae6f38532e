// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "model/computed_otherwise.h"
#include "model/config.h"
#include "model/config_rules.h"
#include "model/config_values.h"
#include "model/expert_layers.h"
#include "model/indexer_layers.h"
#include "model/instances.h"
#include "model/layer_kinds.h"
#include "model/routing_differences.h"
#include "model/window_layers.h"
#include "model/yarn_magnitude.h"

namespace shardwright {
namespace {

using RuleKind = ConfigRule::Kind;
using Pattern = std::vector<std::int64_t>;

// Megatron builds a shared expert of any width that is not None, and refuses one of 0.
bool is_none_for_zero(std::string_view argument) {
  return argument == "moe_shared_expert_intermediate_size";
}

bool is_observed(const Mapping& mapping, std::string_view size) {
  return std::ranges::any_of(mapping.indices, [&](const IndexRule& index) {
    return index.observed && index.size == size;
  });
}

// What is left out has the window of the model's class; null says that there is none.
Arguments with_windows(const Mapping& mapping, Arguments said) {
  for (const ConfigRule& rule : mapping.config) {
    if (rule.kind != RuleKind::kWindow || !rule.fallback || !conditions_hold(rule, said)) continue;
    const auto is_said = [&](const std::string& key) { return said.contains(key); };
    if (std::ranges::none_of(rule.hf, is_said)) said.emplace(rule.hf[0], *rule.fallback);
  }
  return said;
}

/// Builds the argument list. `present` (may be null): the model's HF tensors.
class ArgsBuilder {
 public:
  ArgsBuilder(const Mapping& mapping, const HfConfig& config, const ModelSizes& sizes,
              const TensorIndex* present)
      : mapping_(mapping),
        hf_(with_megatron_magnitude(
            mapping, with_windows(mapping, in_section(config.values, mapping.config_section)))),
        sizes_(sizes),
        present_(present) {}

  Result<ArgsFromConfig> build() {
    for (const SizeRule& rule : mapping_.sizes) {
      if (rule.args.empty() || is_of_a_list(rule.args[0]) || rule.is_of_layers()) continue;
      const auto size = sizes_.find(rule.name);
      // Of layers that a model may lack, Megatron asks whether their number is None, not 0.
      const bool is_absent = size == sizes_.end() || lacks(rule.none_without) ||
                             (size->second == 0 &&
                              (is_observed(mapping_, rule.name) || is_none_for_zero(rule.args[0])));
      if (is_absent) {
        set(rule.args[0], ArgValue{});
      } else if (rule.flag) {
        set(rule.args[0], ArgValue{size->second != 0});
      } else {
        set(rule.args[0], ArgValue{size->second});
      }
    }
    for (const ConfigRule& rule : mapping_.config) {
      if (conditions_hold(rule, hf_)) SW_TRY(apply(rule));
    }
    for (const std::string& fact : mapping_.beyond_args) note_beyond(fact);
    const std::string softmax = put_softmax_first(result_.values);
    if (!softmax.empty()) note_beyond(softmax);
    const Arguments args(result_.values.begin(), result_.values.end());
    SW_TRY(check_weighted_inputs(mapping_, args));
    for (const std::string& fact : computed_otherwise(mapping_, hf_, args)) note_beyond(fact);
    return std::move(result_);
  }

 private:
  /// A setting of config.json, and the argument that it makes.
  struct Said {
    std::string_view setting;
    ArgValue value;
    ArgValue meant;
  };

  /// Whether a size is known to be zero.
  [[nodiscard]] bool lacks(const std::string& size) const {
    const auto found = sizes_.find(size);
    return found != sizes_.end() && found->second == 0;
  }

  void set(const std::string& spelled, ArgValue value) {
    const FlagName flag = flag_name(spelled);
    const auto has_name = [&](const auto& entry) { return entry.first == flag.name; };
    if (std::ranges::any_of(result_.values, has_name)) return;
    result_.values.emplace_back(flag.name, flag.negated ? inverse(value) : std::move(value));
  }

  Status apply(const ConfigRule& rule) {
    if (rule.kind == RuleKind::kAlike) return check_alike(rule);
    if (rule.kind == RuleKind::kWindow) return apply_window(rule);
    if (tells_experts(rule)) return apply_experts(rule);
    if (rule.kind == RuleKind::kListed) {
      apply_listed(rule);
      return {};
    }
    if (rule.kind == RuleKind::kIndexerLayers) return apply_indexers(rule);
    if (rule.kind == RuleKind::kInverted) return apply_inverted(rule);
    if (rule.kind == RuleKind::kEncoded) {
      apply_encoded(rule);
      return {};
    }
    if (lists_kinds(rule)) return apply_kinds(rule);
    if (tells_windows(rule)) return apply_window_layers(rule);
    if (rule.kind == RuleKind::kInverseSqrt || rule.kind == RuleKind::kFraction) {
      return apply_number(rule);
    }
    const bool is_constant = rule.value && !rule.hf.empty();
    if (rule.args.empty() || is_constant) {
      check_constant(rule);
      return {};
    }
    if (rule.size) {
      const Scope scope{sizes_, {}};
      const std::int64_t size = SW_TRY(rule.size->evaluate(scope));
      set(rule.args[0], rule.flag ? ArgValue{size != 0} : ArgValue{size});
    } else if (rule.value) {
      set(rule.args[0], *rule.value);
    } else if (!rule.when_set) {
      apply_pair(rule);
    }
    return {};
  }

  [[nodiscard]] bool says_null(const std::vector<std::string>& keys) const {
    return std::ranges::any_of(keys, [&](const std::string& key) { return hf_.contains(key); });
  }

  void apply_pair(const ConfigRule& rule) {
    const ArgValue* found = first_set(hf_, rule.hf);
    // Where None may be said, null says it, and only what is left out has the default.
    if (found == nullptr && rule.unset && says_null(rule.hf)) return;
    if (found == nullptr && rule.fallback) found = &*rule.fallback;
    if (found == nullptr) return;
    if (rule.map.empty()) check_other_names(rule);
    ArgValue value = *found;
    if (!rule.map.empty()) {
      const auto same = [&](const auto& pair) { return same_value(pair.first, value); };
      const auto pair = std::ranges::find_if(rule.map, same);
      if (pair == rule.map.end() && !rule.otherwise) {
        note(translated("{} = {} has no counterpart in Megatron's {}", rule.hf[0], to_string(value),
                        rule.args[0]));
        return;
      }
      value = pair != rule.map.end() ? pair->second : *rule.otherwise;
    }
    if (rule.integer) {
      const std::optional<std::int64_t> number = whole(value);
      if (!number) {
        note(translated("{} = {} is not a whole number, which Megatron's {} must be", rule.hf[0],
                        to_string(value), rule.args[0]));
        return;
      }
      value = *number;
    }
    // What computes nothing, or what every model of the family has.
    const std::optional<ArgValue>& usual = rule.unset ? rule.unset : rule.fallback;
    if (rule.inert && !(usual && same_value(*usual, value))) {
      note(translated("{} = {} is kept as argument {}, with which Megatron-Core computes nothing",
                      rule.hf[0], to_string(value), rule.args[0]));
    }
    set(rule.args[0], std::move(value));
  }

  // One argument of Megatron's has what several settings say. Software that reads another of them
  // has another model.
  void check_other_names(const ConfigRule& rule) {
    const FlagName flag = flag_name(rule.args[0]);
    for (const std::string& name : rule.hf) {
      const ArgValue* value = find_set(hf_, name);
      if (value == nullptr) continue;
      const Said said{name, *value, flag.negated ? inverse(*value) : *value};
      const auto [entry, is_first] = said_.try_emplace(flag.name, said);
      const Said& first = entry->second;
      if (is_first || same_value(said.meant, first.meant)) continue;
      note(translated("config.json says {} = {} and {} = {}; the first is taken", first.setting,
                      to_string(first.value), name, to_string(*value)));
    }
  }

  void apply_encoded(const ConfigRule& rule) {
    const ArgValue* found = first_set(hf_, rule.hf);
    const auto* list = found == nullptr ? nullptr : std::get_if<std::string>(found);
    if (list != nullptr) set(rule.args[0], fmt::format("{{\"{}\": {}}}", rule.hf[0], *list));
  }

  [[nodiscard]] Status check_alike(const ConfigRule& rule) const {
    const auto value_of = [&](const std::string& name) {
      const ArgValue* found = find_set(hf_, name);
      return found == nullptr ? *rule.fallback : *found;
    };
    const ArgValue first = value_of(rule.hf[0]);
    for (const std::string& name : rule.hf) {
      const ArgValue other = value_of(name);
      if (same_value(first, other)) continue;
      return fail(Code::kConfigMissing,
                  "config.json: found {} = {} and {} = {}, expected them alike: Megatron has one "
                  "argument for both, and a model with only one of them would lose tensors",
                  rule.hf[0], to_string(first), name, to_string(other));
    }
    return {};
  }

  void check_constant(const ConfigRule& rule) {
    const ArgValue* found = rule.value ? first_set(hf_, rule.hf) : nullptr;
    if (found == nullptr || same_value(*found, *rule.value)) return;
    result_.fixed.push_back(translated("{} = {}, where Megatron has {} fixed for family {}",
                                       rule.hf[0], to_string(*found), to_string(*rule.value),
                                       mapping_.family));
    note(result_.fixed.back());
  }

  Status apply_window(const ConfigRule& rule) {
    const ArgValue* found = first_set(hf_, rule.hf);
    const std::int64_t tokens = whole_or(found, 0);
    set(rule.args[0], tokens > 0 ? ArgValue{Pattern{tokens - 1, 0}} : ArgValue{});
    return {};
  }

  Status apply_window_layers(const ConfigRule& rule) {
    const std::int64_t layers = SW_TRY(layers_of(sizes_));
    const ArgValue* found = find_set(hf_, rule.hf[0]);
    if (const auto* types =
            found == nullptr ? nullptr : std::get_if<std::vector<std::string>>(found)) {
      set(rule.args[0], windows_argument(rule, SW_TRY(from_layer_types(*types, layers))));
      return {};
    }
    const ArgValue* period = first_set(hf_, std::span(rule.hf).subspan(1));
    if (period == nullptr && rule.fallback) period = &*rule.fallback;
    if (period == nullptr) return {};
    const std::int64_t number = whole_or(period, 0);
    if (number < 1) {
      return fail(
          Code::kConfigMissing,
          "{}: found {}, expected a number from 1; give {}, a list with one entry per layer",
          rule.hf.back(), to_string(*period), rule.hf[0]);
    }
    set(rule.args[0], windows_argument(rule, every_so_many_whole(number, layers)));
    return {};
  }

  Status apply_number(const ConfigRule& rule) {
    const ArgValue* found = first_set(hf_, rule.hf);
    if (found == nullptr && rule.fallback) found = &*rule.fallback;
    if (found == nullptr) return {};
    const double number = SW_TRY(checked_positive(rule.hf[0], *found));
    if (rule.kind == RuleKind::kInverseSqrt) {
      set(rule.args[0], ArgValue{1.0 / std::sqrt(number)});
      return {};
    }
    const std::int64_t whole = SW_TRY((rule.size->evaluate(Scope{sizes_, {}})));
    set(rule.args[0], ArgValue{number / static_cast<double>(whole)});
    return {};
  }

  Status apply_experts(const ConfigRule& rule) {
    const std::int64_t layers = SW_TRY(layers_of(sizes_));
    const auto value = [&](std::size_t i) {
      return i < rule.hf.size() ? find_set(hf_, rule.hf[i]) : nullptr;
    };
    const std::int64_t dense_unsaid = whole_or(rule.fallback ? &*rule.fallback : nullptr, 0);
    if (rule.kind == RuleKind::kExpertTypes) {
      const auto* types =
          value(0) == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value(0));
      if (types == nullptr) {
        if (value(0) == nullptr && rule.fallback) {
          set(rule.args[0], to_layer_frequency(experts_after_dense(dense_unsaid, 1, layers)));
        }
        return {};
      }
      set(rule.args[0], to_layer_frequency(SW_TRY(experts_of_types(rule.hf[0], *types, layers))));
    } else if (rule.kind == RuleKind::kExpertNumbers) {
      const auto* numbers = value(0) == nullptr ? nullptr : std::get_if<Pattern>(value(0));
      if (numbers == nullptr) return {};
      set(rule.args[0], to_layer_frequency(experts_numbered(*numbers, layers)));
    } else if (rule.kind == RuleKind::kDenseFirst) {
      const std::int64_t step = whole_or(value(1), 1);
      set(rule.args[0],
          to_layer_frequency(experts_after_dense(whole_or(value(0), dense_unsaid), step, layers)));
    } else if (rule.kind == RuleKind::kSparseStep) {
      const auto* dense = value(1) == nullptr ? nullptr : std::get_if<Pattern>(value(1));
      std::span<const std::int64_t> listed;
      if (dense != nullptr) listed = *dense;
      set(rule.args[0],
          to_layer_frequency(experts_each_step(whole_or(value(0), 1), listed, layers)));
    } else {
      const ExpertRange range{whole_or(value(0), dense_unsaid), whole_or(value(1), -1),
                              whole_or(value(2), 1)};
      set(rule.args[0], to_layer_frequency(experts_in(range, layers)));
    }
    return {};
  }

  void apply_listed(const ConfigRule& rule) {
    Pattern numbers;
    for (const std::string& name : rule.hf) {
      const ArgValue* found = find_set(hf_, name);
      const std::optional<std::int64_t> number = found == nullptr ? std::nullopt : whole(*found);
      if (number) numbers.push_back(*number);
    }
    if (numbers.size() == rule.hf.size()) {
      set(rule.args[0], ArgValue{std::move(numbers)});
    } else {
      note(translated("{} are no whole numbers, which Megatron's {} lists",
                      fmt::join(rule.hf, translated(" and ")), rule.args[0]));
    }
  }

  Status apply_indexers(const ConfigRule& rule) {
    const ArgValue* found = find_set(hf_, rule.hf[0]);
    const auto* types = found == nullptr ? nullptr : std::get_if<IndexerTypes>(found);
    IndexerSchedule schedule{whole_or(find_set(hf_, rule.hf[1]), 1),
                             whole_or(find_set(hf_, rule.hf[2]), kDefaultIndexerOffset)};
    if (types != nullptr) {
      const std::int64_t layers = SW_TRY(layers_of(sizes_));
      const auto listed = SW_TRY(schedule_of_types(rule.hf[0], *types, layers));
      if (!listed) {
        note(translated("{} has layers that no {} and {} of Megatron give", rule.hf[0],
                        rule.args[0], rule.args[1]));
        return {};
      }
      if (types_of_schedule(schedule, layers) != *types) schedule = *listed;
    }
    if (schedule.frequency < 1 || schedule.offset < 0) {
      return fail(Code::kConfigMissing,
                  "{} and {}: found {} and {}, expected a number from 1 and one from 0", rule.hf[1],
                  rule.hf[2], schedule.frequency, schedule.offset);
    }
    set(rule.args[0], ArgValue{schedule.frequency});
    set(rule.args[1], ArgValue{schedule.frequency == 1 ? 0 : schedule.offset});
    return {};
  }

  Status apply_inverted(const ConfigRule& rule) {
    const ArgValue* found = find_set(hf_, rule.hf[0]);
    if (found == nullptr) return apply_inverted_default(rule);
    if (const auto* types = std::get_if<std::vector<std::string>>(found)) {
      const std::int64_t layers = SW_TRY(layers_of(sizes_));
      set(rule.args[0], ArgValue{inverted(SW_TRY(from_layer_types(*types, layers)))});
    } else if (const auto* list = std::get_if<Pattern>(found)) {
      // Llama 4 Scout's is empty, which means the default.
      if (list->empty()) return apply_inverted_default(rule);
      set(rule.args[0], ArgValue{inverted(*list)});
    }
    return {};
  }

  /// The default: every how many-th layer is another than the rest.
  Status apply_inverted_default(const ConfigRule& rule) {
    const std::int64_t period = whole_or(rule.fallback ? &*rule.fallback : nullptr, 0);
    if (period < 1) return {};
    const std::int64_t layers = SW_TRY(layers_of(sizes_));
    set(rule.args[0], ArgValue{inverted(every_so_many_whole(period, layers))});
    return {};
  }

  Status apply_kinds(const ConfigRule& rule) {
    const std::optional<std::int64_t> layers = SW_TRY(listed_layers(rule, sizes_));
    if (!layers) return {};
    const std::optional<LayerKinds> kinds = SW_TRY(layer_kinds_from_hf(rule, hf_, *layers));
    if (!kinds) return {};
    SW_TRY(check_kinds(rule, *kinds));
    set(rule.args[0], layer_kinds_argument(rule, *kinds));
    return {};
  }

  /// What config.json says of each layer must be what its tensors show.
  [[nodiscard]] Status check_kinds(const ConfigRule& rule, const LayerKinds& kinds) const {
    for (std::size_t layer = 0; present_ != nullptr && layer < kinds.size(); ++layer) {
      const Binding binding{"layer", static_cast<std::int64_t>(layer)};
      for (const auto& [kind, names] : rule.shown_by) {
        std::string tensor;
        bool exists = false;
        for (std::size_t i = 0; i < names.size() && !exists; ++i) {
          tensor = SW_TRY(names[i].render(Scope{sizes_, std::span(&binding, 1)}));
          exists = present_->contains(tensor);
        }
        if (exists == (kind == kinds[layer])) continue;
        return fail(
            Code::kConfigMissing,
            "config.json: found layer {} to be {} by {}, expected what its tensors show ({} "
            "{}); make them agree",
            layer, kinds[layer], rule.hf[0], tensor,
            exists ? translated("exists") : translated("does not exist"));
      }
    }
    return {};
  }

  void note_beyond(std::string_view fact) {
    note(translated("{}, which no argument of Megatron-Core says (family {})", fact,
                    mapping_.family));
  }

  void note(std::string text) { result_.notes.push_back(std::move(text)); }

  const Mapping& mapping_;
  const Arguments hf_;
  const ModelSizes& sizes_;
  const TensorIndex* present_;
  std::map<std::string_view, Said> said_;  ///< of each argument, the first that says it
  ArgsFromConfig result_;
};

}  // namespace

Result<ArgsFromConfig> args_from_hf_config(const Mapping& mapping, const HfConfig& config,
                                           std::span<const TensorDesc> hf) {
  const ModelSizes told = SW_TRY(sizes_from_hf_config(mapping, config));
  if (hf.empty()) return ArgsBuilder(mapping, config, told, nullptr).build();
  const TensorIndex present = SW_TRY(TensorIndex::make(hf));
  const ModelSizes sizes = SW_TRY(observe_sizes(mapping, told, Side::kHf, present));
  ArgsFromConfig result = SW_TRY(ArgsBuilder(mapping, config, sizes, &present).build());
  for (const auto& [name, count] : told) {
    const auto shown = sizes.find(name);
    const bool is_expected = std::ranges::any_of(mapping.sizes, [&](const SizeRule& rule) {
      return rule.name == name && !rule.shown_by.empty();
    });
    if (shown == sizes.end() || shown->second == count || is_expected) continue;
    result.notes.push_back(
        translated("{}: config.json says {}, the tensors show {}", name, count, shown->second));
  }
  return result;
}

}  // namespace shardwright
