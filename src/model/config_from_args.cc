// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fail.h"
#include "codec/json_text.h"
#include "model/activation.h"
#include "model/computed_otherwise.h"
#include "model/config.h"
#include "model/config_rules.h"
#include "model/config_values.h"
#include "model/expert_layers.h"
#include "model/heeded_arguments.h"
#include "model/indexer_layers.h"
#include "model/layer_kinds.h"
#include "model/unsaid_arguments.h"
#include "model/window_layers.h"
#include "model/yarn_magnitude.h"

namespace shardwright {
namespace {

using RuleKind = ConfigRule::Kind;
using Pattern = std::vector<std::int64_t>;

constexpr JsonLimits kEncodedLimits{std::uint64_t{4} << 20, 64};

constexpr std::string_view kBalance = "moe_aux_loss_coeff";

/// Builds config.json. Its conditions are asked of what was built so far.
class ConfigBuilder {
 public:
  ConfigBuilder(const Mapping& mapping, const Arguments& args, const SizesWithDoubts& sizes)
      : mapping_(mapping), args_(args), sizes_(sizes) {}

  Result<ConfigFromArgs> build() {
    if (mapping_.is_of_diffusers) {
      hf_["_class_name"] = mapping_.architectures[0];
    } else {
      hf_["model_type"] = mapping_.model_types[0];
    }
    for (const SizeRule& rule : mapping_.sizes) add_size(rule);
    for (const ConfigRule& rule : mapping_.config) {
      if (conditions_hold(rule, hf_)) SW_TRY(apply(rule));
    }
    SW_TRY(check_unsaid_arguments(mapping_, args_));
    SW_TRY(check_activation());
    SW_TRY(check_yarn());
    add_attention_factor(mapping_, hf_);
    note_differences();
    const std::vector<std::string> architectures = {mapping_.architectures[0]};
    result_.json =
        hf_config_text(hf_, mapping_.is_of_diffusers ? std::vector<std::string>() : architectures);
    return std::move(result_);
  }

 private:
  // Tensors of gated MLPs look alike whatever the gate.
  [[nodiscard]] Status check_activation() const {
    const auto run = activation_of_run(args_);
    const auto config = activation_of_config(mapping_, hf_);
    if (!run || !config || *run == *config) return {};
    return fail(Code::kConfigMissing,
                "the run's arguments say that its MLPs use {}, and config.json of family {} would "
                "say {}; give the true one with --hf-config, or name another family with --family",
                *run, mapping_.family, *config);
  }

  // transformers opens no config.json that names YaRN without its factor.
  [[nodiscard]] Status check_yarn() const {
    const ArgValue* const type = find_set(hf_, "rope.type");
    if (type == nullptr || !same_value(*type, ArgValue{"yarn"}) || find_set(hf_, "rope.factor")) {
      return {};
    }
    return fail(Code::kConfigMissing,
                "the run's arguments have YaRN without its factor (yarn_rotary_scaling_factor, "
                "rotary_scaling_factor), which config.json of family {} must say; give the true "
                "one with --hf-config",
                mapping_.family);
  }

  void add_size(const SizeRule& rule) {
    if (rule.hf.empty() || is_of_a_list(rule.hf[0]) || rule.is_of_layers()) return;
    const FlagName flag = flag_name(rule.hf[0]);
    const auto size = sizes_.sizes.find(rule.name);
    if (size == sizes_.sizes.end()) {
      if (rule.optional && rule.flag) return;  // another rule may tell what is said in its place
      hf_[std::string(flag.name)] = ArgValue{};
      return;
    }
    const bool is_guess = std::ranges::find(sizes_.guessed, rule.name) != sizes_.guessed.end();
    if (rule.flag) {
      set(flag.name, ArgValue{(size->second != 0) != flag.negated}, is_guess);
    } else {
      set(flag.name, ArgValue{size->second}, is_guess);
    }
  }

  void set(std::string_view key, ArgValue value, bool is_guess) {
    if (!hf_.emplace(key, std::move(value)).second) return;
    if (is_guess) result_.guessed.emplace_back(key);
  }

  Status apply(const ConfigRule& rule) {
    if (rule.kind == RuleKind::kAlike) return {};
    if (rule.hf.empty()) {
      check_constant(rule);
      return {};
    }
    if (rule.kind == RuleKind::kInverted) return apply_inverted(rule);
    if (hf_.contains(rule.hf[0])) return {};
    if (rule.kind == RuleKind::kWindow) {
      const ArgValue* found = first_set(args_, rule.args);
      const auto* window = found == nullptr ? nullptr : std::get_if<Pattern>(found);
      const bool is_window = window != nullptr && window->size() == 2 && (*window)[0] >= 0;
      set(rule.hf[0], is_window ? ArgValue{(*window)[0] + 1} : ArgValue{}, false);
      return {};
    }
    if (lists_kinds(rule)) return apply_kinds(rule);
    if (tells_windows(rule)) return apply_window_layers(rule);
    if (rule.kind == RuleKind::kInverseSqrt || rule.kind == RuleKind::kFraction) {
      return apply_number(rule);
    }
    if (tells_experts(rule)) return apply_experts(rule);
    if (rule.kind == RuleKind::kListed) {
      apply_listed(rule);
      return {};
    }
    if (rule.kind == RuleKind::kIndexerLayers) return apply_indexers(rule);
    if (rule.kind == RuleKind::kEncoded) return apply_encoded(rule);
    if (rule.size) {
      const Scope scope{sizes_.sizes, {}};
      const std::int64_t size = SW_TRY(rule.size->evaluate(scope));
      set(rule.hf[0], rule.flag ? ArgValue{size != 0} : ArgValue{size}, false);
    } else if (rule.value) {
      const ArgValue* found = first_set(args_, rule.args);
      if (found != nullptr) SW_TRY(check_kind(rule, *found));
      set(rule.hf[0], found == nullptr ? *rule.value : *found, false);
    } else {
      return apply_pair(rule);
    }
    return {};
  }

  Status apply_encoded(const ConfigRule& rule) {
    const ArgValue* found = first_set(args_, rule.args);
    const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(found);
    if (text == nullptr) return {};
    const nlohmann::json encoded =
        SW_TRY(parse_json(*text, "argument " + rule.args[0], kEncodedLimits));
    const auto list = encoded.find(rule.hf[0]);
    if (list == encoded.end() || !list->is_array()) {
      note(translated("{} has no list {}", rule.args[0], rule.hf[0]));
      return {};
    }
    set(rule.hf[0], ArgValue{list->dump()}, false);
    return {};
  }

  Status apply_pair(const ConfigRule& rule) {
    const ArgValue* found = first_set(args_, rule.args);
    if (rule.when_set) {
      if (found != nullptr) set(rule.hf[0], *rule.when_set, false);
      return {};
    }
    if (found == nullptr) {
      if (rule.unset) {
        set(rule.hf[0], *rule.unset, false);
      } else if (rule.fallback) {
        set(rule.hf[0], is_yarn_without_factor(rule) ? ArgValue{"default"} : *rule.fallback, true);
      }
      return {};
    }
    ArgValue value = flag_name(rule.args[0]).negated ? inverse(*found) : *found;
    if (rule.args[0] == kBalance) take_first_weight(value);
    if (!rule.map.empty()) {
      const auto same = [&](const auto& pair) { return same_value(pair.second, value); };
      const auto pair = std::ranges::find_if(rule.map, same);
      if (pair == rule.map.end()) {
        if (rule.otherwise && same_value(*rule.otherwise, value)) return {};
        return unsaid_argument(rule.args[0], value, mapping_.family);
      }
      value = pair->first;
    }
    SW_TRY(check_kind(rule, value));
    const auto* number = std::get_if<std::int64_t>(&value);
    if (rule.integer && number != nullptr) value = static_cast<double>(*number);
    set(rule.hf[0], std::move(value), false);
    return {};
  }

  // Megatron may balance by several losses, each with a weight of its own; config.json has one.
  void take_first_weight(ArgValue& value) {
    const auto* const weights = std::get_if<std::vector<double>>(&value);
    if (weights == nullptr || weights->empty()) return;
    note(translated("of {} = {} config.json gets the first", kBalance, to_string(value)));
    value = ArgValue{weights->front()};
  }

  // What is no number would be written in a number's place, and transformers would stop there or
  // compute with it.
  [[nodiscard]] static Status check_kind(const ConfigRule& rule, const ArgValue& value) {
    const std::optional<double> number = as_number(value);
    const bool is_number_of_none = number && !std::isfinite(*number);
    const std::optional<ArgValue>& usual = rule.fallback ? rule.fallback : rule.value;
    const bool is_numeric = rule.integer || (usual && as_number(*usual));
    const bool is_of_rope = rule.hf[0].starts_with("rope.") || rule.hf[0].contains(".rope.");
    const bool is_text = std::holds_alternative<std::string>(value);
    const bool is_wrong =
        is_number_of_none || (is_numeric && !number) || (is_of_rope && !usual && is_text);
    if (!is_wrong || !rule.map.empty()) return {};
    return fail(Code::kConfigMissing,
                "the run's arguments: {}: found {}, expected a number; give the model's own "
                "config.json with --hf-config",
                rule.args[0], to_string(value));
  }

  // What a class has where nothing is said needs what only the run can say.
  [[nodiscard]] bool is_yarn_without_factor(const ConfigRule& rule) const {
    if (rule.hf[0] != "rope.type" || !same_value(*rule.fallback, ArgValue{"yarn"})) return false;
    return std::ranges::none_of(mapping_.config, [&](const ConfigRule& other) {
      const bool is_factor = !other.hf.empty() && other.hf[0] == "rope.factor";
      return is_factor && first_set(args_, other.args) != nullptr;
    });
  }

  void check_constant(const ConfigRule& rule) {
    const ArgValue* found = rule.value ? first_set(args_, rule.args) : nullptr;
    if (found == nullptr || same_value(*found, *rule.value)) return;
    note(translated("{} = {}, where family {} has {}", rule.args[0], to_string(*found),
                    mapping_.family, to_string(*rule.value)));
  }

  Status apply_kinds(const ConfigRule& rule) {
    const ArgValue* found = first_set(args_, rule.args);
    const std::optional<std::int64_t> layers = SW_TRY(listed_layers(rule, sizes_.sizes));
    if (found == nullptr || !layers) {
      if (rule.fallback) set(rule.hf[1], *rule.fallback, true);
      return {};
    }
    const LayerKinds kinds = SW_TRY(layer_kinds_from_argument(rule, *found, *layers));
    if (rule.kind == RuleKind::kBlockPattern) {
      set(rule.hf[1], layer_kinds_argument(rule, kinds), false);
      return {};
    }
    set(rule.hf[0], ArgValue{kinds}, false);
    if (rule.hf.size() == 2) {
      if (whole(*found)) set(rule.hf[1], *found, false);
      return {};
    }
    Pattern full;
    Pattern rest;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const bool is_full = kinds[i] == "full_attention";
      (is_full ? full : rest).push_back(static_cast<std::int64_t>(i) + 1);
    }
    set(rule.hf[2], ArgValue{std::move(full)}, false);
    set(rule.hf[3], ArgValue{std::move(rest)}, false);
    return {};
  }

  Status apply_window_layers(const ConfigRule& rule) {
    const std::int64_t layers = SW_TRY(layers_of(sizes_.sizes));
    const auto found = args_.find(rule.args[0]);  // None says something here
    if (found != args_.end()) {
      set(rule.hf[0], to_layer_types(SW_TRY(from_window_argument(found->second, layers))), false);
    } else if (rule.fallback) {
      const std::int64_t period = std::max<std::int64_t>(whole_or(&*rule.fallback, 1), 1);
      set(rule.hf[0], to_layer_types(every_so_many_whole(period, layers)), true);
    }
    return {};
  }

  Status apply_number(const ConfigRule& rule) {
    const ArgValue* found = first_set(args_, rule.args);
    if (found == nullptr) {
      if (rule.fallback) set(rule.hf[0], *rule.fallback, true);
      return {};
    }
    const double number = SW_TRY(checked_positive(rule.args[0], *found));
    if (rule.kind == RuleKind::kInverseSqrt) {
      set(rule.hf[0], plain_number(1.0 / (number * number)), false);
      return {};
    }
    const std::int64_t whole = SW_TRY((rule.size->evaluate(Scope{sizes_.sizes, {}})));
    set(rule.hf[0], plain_number(number * static_cast<double>(whole)), false);
    return {};
  }

  Status apply_experts(const ConfigRule& rule) {
    const std::int64_t layers = SW_TRY(layers_of(sizes_.sizes));
    const ArgValue* found = first_set(args_, rule.args);
    const ExpertLayers experts = from_layer_frequency(found, layers);
    if (rule.kind == RuleKind::kExpertTypes) {
      set(rule.hf[0], ArgValue{to_mlp_types(experts)}, false);
      return {};
    }
    const auto numbers_of = [&](bool has_experts) {
      Pattern numbers;
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        if ((experts[static_cast<std::size_t>(layer)] != 0) == has_experts)
          numbers.push_back(layer);
      }
      return ArgValue{std::move(numbers)};
    };
    if (rule.kind == RuleKind::kExpertNumbers) {
      set(rule.hf[0], numbers_of(true), false);
      return {};
    }
    if (rule.kind == RuleKind::kSparseStep) {
      set(rule.hf[0], ArgValue{std::int64_t{1}}, false);
      set(rule.hf[1], numbers_of(false), false);
      return {};
    }
    return apply_leading_dense(rule, experts, found);
  }

  // The files of such families count the dense layers in front, and some have a step besides.
  Status apply_leading_dense(const ConfigRule& rule, const ExpertLayers& experts,
                             const ArgValue* found) {
    const auto refuse = [&]() -> Status {
      if (says_experts_otherwise(rule)) return {};
      return unsaid_argument(rule.args[0], found == nullptr ? ArgValue{} : *found, mapping_.family);
    };
    if (rule.kind == RuleKind::kExpertRange) {
      const std::optional<ExpertRange> range = expert_range_of(experts);
      if (!range) return refuse();
      set(rule.hf[0], ArgValue{range->first}, false);
      set(rule.hf[1], ArgValue{range->last}, false);
      set(rule.hf[2], ArgValue{range->interval}, false);
      return {};
    }
    const bool has_step = rule.hf.size() > 1;
    const auto step = step_after_dense(experts, has_step ? std::ssize(experts) : 1);
    if (!step) return refuse();
    set(rule.hf[0], ArgValue{leading_dense(experts)}, false);
    if (has_step) set(rule.hf[1], ArgValue{*step}, false);
    return {};
  }

  // By a list of the layers, which counts.
  [[nodiscard]] bool says_experts_otherwise(const ConfigRule& rule) const {
    return std::ranges::any_of(mapping_.config, [&](const ConfigRule& other) {
      return &other != &rule && tells_experts(other) && !other.hf.empty() &&
             hf_.contains(other.hf[0]);
    });
  }

  void apply_listed(const ConfigRule& rule) {
    const ArgValue* found = first_set(args_, rule.args);
    const auto* list = found == nullptr ? nullptr : std::get_if<Pattern>(found);
    if (list == nullptr || list->size() != rule.hf.size()) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      set(rule.hf[i], ArgValue{static_cast<double>((*list)[i])}, false);
    }
  }

  Status apply_indexers(const ConfigRule& rule) {
    const IndexerSchedule schedule{whole_or(find_set(args_, rule.args[0]), 1),
                                   whole_or(find_set(args_, rule.args[1]), 0)};
    if (schedule.frequency <= 1) return {};
    const std::int64_t layers = SW_TRY(layers_of(sizes_.sizes));
    set(rule.hf[0], ArgValue{types_of_schedule(schedule, layers)}, false);
    set(rule.hf[1], ArgValue{schedule.frequency}, false);
    set(rule.hf[2], ArgValue{schedule.offset}, false);
    return {};
  }

  // Megatron says which layers do without rotary embedding: by a list, or by the number of layers
  // of which the last does (megatron/core/transformer/transformer_config.py, `no_rope_freq`).
  Status apply_inverted(const ConfigRule& rule) {
    const std::int64_t layers = SW_TRY(layers_of(sizes_.sizes));
    const ArgValue* found = first_set(args_, rule.args);
    Pattern rotary(static_cast<std::size_t>(layers), 1);
    if (const auto* list = found == nullptr ? nullptr : std::get_if<Pattern>(found)) {
      rotary = inverted(*list);
    } else if (const std::int64_t period = whole_or(found, 0); period > 0) {
      rotary = every_so_many_whole(period, layers);
    }
    if (std::ssize(rotary) != layers) {
      return fail(Code::kArgumentsContradict,
                  "{}: found {} entries, expected one for each of {} layers", rule.args[0],
                  rotary.size(), layers);
    }
    const auto types = hf_.find(rule.hf[0]);
    if (types == hf_.end()) {
      if (rule.hf[0] != "layer_types") set(rule.hf[0], ArgValue{std::move(rotary)}, false);
      return {};
    }
    // Where the layers' windows say it, config.json has no other place for it.
    const auto* windows = std::get_if<std::vector<std::string>>(&types->second);
    const bool is_said = found == nullptr || windows == nullptr ||
                         SW_TRY(from_layer_types(*windows, layers)) == rotary;
    return is_said ? Status() : unsaid_argument(rule.args[0], *found, mapping_.family);
  }

  void note_differences() {
    for (const std::string& fact : run_computed_otherwise(mapping_, hf_, args_)) {
      note(translated("models of family {} compute otherwise than the run: {}", mapping_.family,
                      fact));
    }
  }

  void note(std::string text) { result_.notes.push_back(std::move(text)); }

  const Mapping& mapping_;
  const Arguments& args_;
  const SizesWithDoubts& sizes_;
  Arguments hf_;
  ConfigFromArgs result_;
};

}  // namespace

Result<ConfigFromArgs> config_from_args(const Mapping& mapping, const Arguments& args) {
  const Arguments heeded = heeded_arguments(args);
  const SizesWithDoubts sizes = SW_TRY(find_sizes(mapping, heeded, true));
  ConfigFromArgs made = SW_TRY(ConfigBuilder(mapping, heeded, sizes).build());
  if (turns_more_than_said(args)) {
    made.notes.push_back(
        translated("rotary_percent = {} says nothing beside YaRN: Megatron-Core's turns all "
                   "channels of a head, and so does the model of config.json",
                   to_string(args.find("rotary_percent")->second)));
  }
  return made;
}

}  // namespace shardwright
