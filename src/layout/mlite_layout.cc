// SPDX-License-Identifier: Apache-2.0
#include "layout/mlite_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "layout/rank_order.h"

namespace shardwright {
namespace {

// The experts of one module (a layer): tensors of fc1 and fc2 by the expert's number on its rank.
struct Module {
  std::map<std::int64_t, const StoredTensor*> fc1;
  std::map<std::int64_t, const StoredTensor*> fc2;
  const StoredTensor* router = nullptr;
};
using Modules = std::map<std::string_view, Module>;

constexpr std::int64_t kMostMliteRanks = std::int64_t{1} << 20;
constexpr std::array<std::string_view, 4> kRouters = {"router.weight", "router.gate.weight",
                                                      "gate.weight", "gate.gate.weight"};

Modules find_modules(const Catalog& catalog) {
  Modules modules;
  std::map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) {
    by_name.emplace(tensor.desc.name, &tensor);
    const auto expert = split_mlite_expert(tensor.desc.name);
    if (!expert || tensor.desc.shape.size() != 2) continue;
    Module& module = modules[expert->module];
    (expert->layer == 1 ? module.fc1 : module.fc2).emplace(expert->local, &tensor);
  }
  for (auto& [prefix, module] : modules) {
    for (const std::string_view router : kRouters) {
      const auto found = by_name.find(std::string(prefix) + std::string(router));
      if (found != by_name.end() && found->second->desc.shape.size() == 2) {
        module.router = found->second;
      }
    }
  }
  return modules;
}

std::unexpected<Error> ask(std::string_view module, std::string_view found,
                           std::string_view expected) {
  return fail(Code::kUsage, "{}experts: found {}, expected {}; give --source-ep and --source-etp",
              module, found, expected);
}

// Which ranks' shards stayed tells what the others were taken for. Chunk i of the rows is that of
// EP rank i where expert data ranks were merged, of expert data rank i where EP ranks were.
MliteLoss loss_of(const Catalog& catalog, const StoredTensor& fc1, const MliteLayout& layout) {
  bool by_expert = true;
  bool by_data = true;
  for (std::size_t i = 0; i < fc1.chunks.size(); ++i) {
    const auto rank = rank_of_file(catalog.files[fc1.chunks.file(i)]);
    const Box box = fc1.chunks.box(i);
    if (!rank || box.shape[0] == 0) return MliteLoss::kExpertsOrRows;
    const std::int64_t block = box.origin[0] / box.shape[0];
    by_expert &= *rank / layout.expert_tensor % layout.expert == block / layout.expert_tensor;
    by_data &= *rank / (layout.expert_tensor * layout.expert) == block / layout.expert_tensor;
  }
  if (by_expert == by_data) return MliteLoss::kExpertsOrRows;
  return by_expert ? MliteLoss::kRows : MliteLoss::kExperts;
}

// Sizes of one module's experts; `layout` has those of the modules before it.
Status read_module(const Catalog& catalog, std::string_view name, const Module& module,
                   const MliteGiven& given, MliteLayout& layout) {
  const std::int64_t local = static_cast<std::int64_t>(module.fc1.size());
  if (module.fc1.empty() || module.fc2.size() != module.fc1.size() ||
      module.fc1.rbegin()->first != local - 1) {
    return fail(
        Code::kUnmatchedSource,
        "{}experts: found {} tensors of fc1 and {} of fc2, expected as many, numbered from 0", name,
        module.fc1.size(), module.fc2.size());
  }
  const StoredTensor& fc1 = *module.fc1.begin()->second;
  const StoredTensor& fc2 = *module.fc2.begin()->second;
  if (module.router == nullptr && !given.expert) return ask(name, "no router", "one beside them");
  const std::int64_t experts =
      module.router != nullptr ? module.router->desc.shape[0] : *given.expert * local;
  const std::int64_t hidden =
      module.router != nullptr ? module.router->desc.shape[1] : fc1.desc.shape[1];
  layout.expert = given.expert.value_or(experts / local);
  layout.expert_tensor = given.expert_tensor.value_or(cuts_of(fc2, 1));
  layout.experts = experts;
  if (layout.expert < 1 || layout.expert > kMostMliteRanks || layout.expert * local != experts) {
    return ask(name, translated("{} experts, {} of them on a rank", experts, local),
               "a whole number of EP ranks");
  }
  const std::int64_t ranks = layout.expert * layout.expert_tensor;
  const bool has_all_rows =
      fc2.desc.shape[0] % layout.expert == 0 && fc2.desc.shape[0] / layout.expert == hidden;
  if (layout.expert > 1 && !has_all_rows) {
    layout.loss = loss_of(catalog, fc1, layout);
    layout.lost = fc2.desc.name;
    layout.expert_data = 1;
    return {};
  }
  const std::int64_t chunks = cuts_of(fc1, 0);
  const std::int64_t columns = cuts_of(fc2, 0) * layout.expert_tensor;
  // Data ranks alone need not cut both alike: fc2 may have fewer rows than there are ranks.
  const bool is_cut_alike = ranks == 1 || (chunks % ranks == 0 && chunks == columns);
  if (!is_cut_alike || !has_all_rows) {
    return ask(name,
               translated("fc1 {} in {} pieces, fc2 {} in {}", to_string(fc1.desc.shape), chunks,
                          to_string(fc2.desc.shape), columns),
               translated("a multiple of EP {} x ETP {}", layout.expert, layout.expert_tensor));
  }
  layout.expert_data = chunks / ranks;
  return {};
}

bool is_dense(const StoredTensor& tensor) {
  return !split_mlite_expert(tensor.desc.name) && tensor.desc.shape.size() == 2;
}

// TP from tensors that are cut on their second axis; DP from how often those are cut on the first.
Status read_dense(const Catalog& catalog, const MliteGiven& given, MliteLayout& layout) {
  layout.tensor = given.tensor.value_or(1);
  std::int64_t most = 1;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!is_dense(tensor)) continue;
    const std::int64_t columns = cuts_of(tensor, 1);
    if (columns > 1) {
      layout.tensor = columns;
      layout.data = cuts_of(tensor, 0);
    }
    most = std::max(most, cuts_of(tensor, 0));
  }
  if (given.tensor && *given.tensor != layout.tensor) {
    return fail(Code::kUsage, "--source-tp: found {}, but tensors are cut {} times on axis 1",
                *given.tensor, layout.tensor);
  }
  if (layout.data == 1) layout.data = std::max<std::int64_t>(1, most / layout.tensor);
  return {};
}

}  // namespace

std::int64_t cuts_of(const StoredTensor& tensor, int axis) {
  std::set<std::int64_t> origins;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Box box = tensor.chunks.box(i);
    if (!box.is_empty()) origins.insert(box.origin[axis]);
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(origins.size()));
}

std::optional<MliteExpert> split_mlite_expert(std::string_view name) {
  for (const int layer : {1, 2}) {
    const std::string_view mark = layer == 1 ? ".experts.fc1.weight" : ".experts.fc2.weight";
    const std::size_t at = name.find(mark);
    if (at == name.npos) continue;
    const std::string_view digits = name.substr(at + mark.size());
    MliteExpert expert{name.substr(0, at + 1), layer, 0};
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, expert.local);
    if (error != std::errc() || stop != end || expert.local < 0) return std::nullopt;
    return expert;
  }
  return std::nullopt;
}

bool has_mlite_names(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    const std::string_view name = tensor.desc.name;
    return (name.starts_with("model.") || name.starts_with("model_pp")) &&
           split_mlite_expert(name).has_value();
  });
}

Result<MliteLayout> read_mlite_layout(const Catalog& catalog, const MliteGiven& given) {
  for (const auto& size : {given.expert, given.expert_tensor, given.tensor}) {
    if (!size || (*size >= 1 && *size <= kMostMliteRanks)) continue;
    return fail(Code::kUsage, "--source-ep, --source-etp, --source-tp: found {}, expected 1 to {}",
                *size, kMostMliteRanks);
  }
  MliteLayout layout;
  std::optional<MliteLayout> first;
  for (const auto& [name, module] : find_modules(catalog)) {
    SW_TRY(read_module(catalog, name, module, given, layout));
    if (layout.loss != MliteLoss::kNone) return layout;
    if (!first) first = layout;
    if (layout.expert != first->expert || layout.expert_tensor != first->expert_tensor ||
        layout.expert_data != first->expert_data) {
      return ask(name, "other sizes than in the layers before", "the same in all layers");
    }
  }
  SW_TRY(read_dense(catalog, given, layout));
  return layout;
}

}  // namespace shardwright
