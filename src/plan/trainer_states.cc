// SPDX-License-Identifier: Apache-2.0
#include "plan/trainer_states.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "base/translated.h"
#include "layout/module_order.h"
#include "layout/state_name.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

using Kinds = std::set<std::string_view>;

constexpr std::string_view kStep = "step";
constexpr std::array<std::string_view, 2> kMoments = {kStateKinds[1], kStateKinds[2]};
constexpr std::array<std::string_view, 3> kMasters = {kStateKinds[0], "master_param", "master"};

bool is_master(std::string_view kind) {
  return std::ranges::find(kMasters, kind) != kMasters.end();
}

bool is_moment(std::string_view kind) {
  return std::ranges::find(kMoments, kind) != kMoments.end();
}

// What an optimizer may keep beside its states, of some parameters only.
bool is_extra(std::string_view kind) { return kind == "max_exp_avg_sq" || is_master(kind); }

std::string kinds_in_words(const Kinds& kinds) {
  return kinds.empty() ? "-" : fmt::to_string(fmt::join(kinds, ", "));
}

struct TrainerState {
  std::string_view optimizer;  // `app.optim.`
  std::string_view parameter;
  std::string_view kind;
};

struct Parameter {
  std::string_view name;
  std::string_view first;  // the name of the first of its states
  Kinds kinds;
  std::optional<DType> dtype;  // of its weight, where that is in the catalog
};

struct TrainerOptimizer {
  std::vector<Parameter> parameters;
  std::unordered_map<std::string_view, std::size_t> numbers;
  std::size_t betas = 0;  // parameter groups that have such a setting
  std::size_t epsilons = 0;

  [[nodiscard]] bool keeps_two_moments() const { return betas > 0 && betas == epsilons; }
};

class TrainerStates {
 public:
  TrainerStates(const Catalog& catalog, bool keeps_two_moments)
      : keeps_two_moments_(keeps_two_moments) {
    for (const StoredTensor& tensor : catalog.tensors) {
      if (!is_optimizer_name(tensor.desc.name)) weights_.insert(tensor.desc.name);
    }
    for (const StoredTensor& tensor : catalog.tensors) add(tensor.desc.name);
    for (const StoredObject& object : catalog.objects) {
      add_setting(object.name);
      add(object.name);
    }
  }

  StateFindings run(const Catalog& catalog) {
    find_weights(catalog);
    for (const auto& [key, optimizer] : optimizers_) {
      if (optimizer.parameters.empty()) continue;
      const bool keeps_two = keeps_two_moments_ || optimizer.keeps_two_moments();
      for (const Parameter& parameter : optimizer.parameters) {
        if (keeps_two) check_moments(parameter);
      }
      compare_kinds(optimizer);
      compare_masters(optimizer);
    }
    add_lacking_all();
    for (auto& [key, lack] : lacks_) tell(lack);
    find_untrained(catalog);
    return std::move(findings_);
  }

 private:
  // A lack that several parameters share.
  struct Lack {
    const Parameter* parameter = nullptr;
    Kinds expected;
    std::string_view other;  // that has them; empty where settings say it
    std::size_t more = 0;
  };

  [[nodiscard]] std::optional<TrainerState> split(std::string_view name) const {
    if (!is_optimizer_name(name)) return std::nullopt;
    if (const auto state = split_state_name(name); state && weights_.contains(state->tensor)) {
      const std::string_view before = name.substr(0, name.size() - state->bare.size());
      return TrainerState{before, state->tensor, state->kind};
    }
    constexpr std::string_view kStates = "state.";
    std::size_t at = name.find(kStates);
    while (at != std::string_view::npos && at != 0 && name[at - 1] != '.') {
      at = name.find(kStates, at + 1);
    }
    const std::size_t dot = name.rfind('.');
    if (at == std::string_view::npos || dot < at + kStates.size()) return std::nullopt;
    const std::size_t begin = at + kStates.size();
    return TrainerState{name.substr(0, at), name.substr(begin, dot - begin), name.substr(dot + 1)};
  }

  void add(std::string_view name) {
    const std::optional<TrainerState> state = split(name);
    if (!state) return;
    TrainerOptimizer& optimizer = optimizers_[state->optimizer];
    const auto [known, is_new] =
        optimizer.numbers.emplace(state->parameter, optimizer.parameters.size());
    if (is_new) optimizer.parameters.push_back({state->parameter, name, {}, {}});
    optimizer.parameters[known->second].kinds.insert(state->kind);
  }

  void add_setting(std::string_view name) {
    const std::size_t at = name.find("param_groups.");
    if (at == std::string_view::npos || !is_optimizer_name(name)) return;
    TrainerOptimizer& optimizer = optimizers_[name.substr(0, at)];
    if (name.ends_with(".betas")) ++optimizer.betas;
    if (name.ends_with(".eps")) ++optimizer.epsilons;
  }

  // Weights and states have one name behind what trainers and wrappers put before either.
  void find_weights(const Catalog& catalog) {
    std::unordered_map<std::string_view, Parameter*> by_name;
    for (auto& [key, optimizer] : optimizers_) {
      for (Parameter& parameter : optimizer.parameters) {
        for_each_end(parameter.name, [&](std::string_view end) {
          by_name.try_emplace(end, &parameter);
          return false;
        });
      }
    }
    for (const StoredTensor& tensor : catalog.tensors) {
      const std::string_view name = tensor.desc.name;
      if (is_optimizer_name(name)) continue;
      Parameter* owner = nullptr;
      if (const auto whole = by_name.find(name); whole != by_name.end()) owner = whole->second;
      for_each_end(name, [&](std::string_view end) {
        const auto found = by_name.find(end);
        const bool is_it = found != by_name.end() && found->second->name == end;
        if (is_it) owner = found->second;
        return is_it;
      });
      if (owner == nullptr) continue;
      owner->dtype = tensor.desc.dtype;
      trained_.insert(name);
      if (!tensor.chunks.empty()) trained_places_.insert(place_of(tensor));
    }
  }

  // `a.b.c`, `b.c`, `c`, until one will do.
  template <class Visit>
  static void for_each_end(std::string_view name, const Visit& is_done) {
    while (!is_done(name)) {
      const std::size_t dot = name.find('.');
      if (dot == std::string_view::npos) return;
      name.remove_prefix(dot + 1);
    }
  }

  static std::pair<std::uint32_t, std::uint64_t> place_of(const StoredTensor& tensor) {
    return {tensor.chunks.file(0), tensor.chunks.range(0).offset};
  }

  void add_lack(const Parameter& parameter, Kinds expected, std::string_view other) {
    const auto [known, is_new] = lacks_.try_emplace({parameter.kinds, expected});
    if (!is_new) {
      if (told_.insert(&parameter).second) ++known->second.more;
      return;
    }
    told_.insert(&parameter);
    known->second = {&parameter, std::move(expected), other, 0};
  }

  // Kin of Adam may have another state in the place of one of its moments.
  void check_moments(const Parameter& parameter) {
    const Kinds& kinds = parameter.kinds;
    const bool has_others = std::ranges::any_of(kinds, [](std::string_view kind) {
      return !is_moment(kind) && !is_extra(kind) && kind != kStep;
    });
    const bool has_both = kinds.contains(kMoments[0]) && kinds.contains(kMoments[1]);
    if (has_others || has_both) return;
    Kinds expected = kinds;
    expected.insert(kMoments.begin(), kMoments.end());
    add_lack(parameter, std::move(expected), {});
  }

  // Optimizers of two kinds may be one to the trainer: only what Adam keeps is missed, and not
  // where Adam's step is lacking too, as Lion has a first moment alone.
  void compare_kinds(const TrainerOptimizer& optimizer) {
    std::map<Kinds, const Parameter*> sets;
    for (const Parameter& parameter : optimizer.parameters) {
      Kinds kinds = without_extras(parameter.kinds);
      if (!kinds.empty()) sets.try_emplace(std::move(kinds), &parameter);
    }
    for (const Parameter& parameter : optimizer.parameters) {
      const Kinds kinds = without_extras(parameter.kinds);
      if (told_.contains(&parameter) || kinds.empty()) continue;
      for (const auto& [others, other] : sets) {
        if (!lacks_of_adam(kinds, others)) continue;
        Kinds expected = parameter.kinds;
        expected.insert(others.begin(), others.end());
        add_lack(parameter, std::move(expected), other->name);
        break;
      }
    }
  }

  static Kinds without_extras(Kinds kinds) {
    std::erase_if(kinds, is_extra);
    return kinds;
  }

  static bool lacks_of_adam(const Kinds& kinds, const Kinds& others) {
    if (others.size() <= kinds.size() || !std::ranges::includes(others, kinds)) return false;
    std::vector<std::string_view> lacking;
    std::ranges::set_difference(others, kinds, std::back_inserter(lacking));
    const bool lacks_step = std::ranges::find(lacking, kStep) != lacking.end();
    if (lacks_step && lacking.size() > 1) return false;
    return std::ranges::all_of(
        lacking, [](std::string_view kind) { return kind == kStep || is_moment(kind); });
  }

  // A float32 weight is its own.
  void compare_masters(const TrainerOptimizer& optimizer) {
    std::map<DType, std::pair<std::string_view, std::string_view>> with;  // kind, parameter
    for (const Parameter& parameter : optimizer.parameters) {
      if (!parameter.dtype || *parameter.dtype == DType::kF32) continue;
      const auto master = std::ranges::find_if(parameter.kinds, is_master);
      if (master != parameter.kinds.end()) {
        with.try_emplace(*parameter.dtype, *master, parameter.name);
      }
    }
    for (const Parameter& parameter : optimizer.parameters) {
      const auto found = parameter.dtype ? with.find(*parameter.dtype) : with.end();
      if (found == with.end() || std::ranges::any_of(parameter.kinds, is_master)) continue;
      if (told_.contains(&parameter)) continue;
      Kinds expected = parameter.kinds;
      expected.insert(found->second.first);
      add_lack(parameter, std::move(expected), found->second.second);
    }
  }

  void tell(const Lack& lack) {
    const Parameter& parameter = *lack.parameter;
    const std::string found = kinds_in_words(parameter.kinds);
    const std::string expected = kinds_in_words(lack.expected);
    const std::string text =
        lack.other.empty()
            ? translated(
                  "tensor {}: found the optimizer states {}, expected {} by the optimizer's "
                  "betas and eps",
                  parameter.name, found, expected)
            : translated("tensor {}: found the optimizer states {}, expected {} as of {}",
                         parameter.name, found, expected, lack.other);
    findings_.wrong.push_back(
        {std::string(parameter.first),
         translated(
             "{}{}; convert without them (--optimizer drop)", text,
             lack.more == 0 ? "" : translated(" ({} tensors more lack them too)", lack.more))});
  }

  // The states of a run may be lost as a whole.
  void add_lacking_all() {
    const bool has_any = std::ranges::any_of(
        optimizers_, [](const auto& entry) { return !entry.second.parameters.empty(); });
    if (!keeps_two_moments_ || has_any) return;
    findings_.wrong.push_back(
        {"optimizer",
         translated("optimizer: found no states, expected exp_avg and exp_avg_sq of each parameter "
                    "that was trained, as it has betas and eps and has made steps; convert without "
                    "them (--optimizer drop)")});
  }

  // Of several names of one tensor the optimizer knows one.
  void find_untrained(const Catalog& catalog) {
    if (trained_.empty()) return;
    for (const StoredTensor& tensor : catalog.tensors) {
      const std::string& name = tensor.desc.name;
      if (is_optimizer_name(name) || trained_.contains(name)) continue;
      if (!is_parameter(name, tensor.desc.dtype)) continue;
      if (!tensor.chunks.empty() && trained_places_.contains(place_of(tensor))) continue;
      findings_.without.push_back(name);
    }
  }

  bool keeps_two_moments_;
  std::unordered_set<std::string_view> weights_;
  std::map<std::string_view, TrainerOptimizer> optimizers_;
  std::unordered_set<std::string_view> trained_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> trained_places_;
  std::map<std::pair<Kinds, Kinds>, Lack> lacks_;
  std::unordered_set<const Parameter*> told_;
  StateFindings findings_;
};

}  // namespace

StateFindings find_wrong_trainer_states(const Catalog& catalog, bool keeps_two_moments) {
  return TrainerStates(catalog, keeps_two_moments).run(catalog);
}

}  // namespace shardwright
