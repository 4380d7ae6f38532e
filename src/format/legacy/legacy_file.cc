// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/allowance.h"
#include "base/fail.h"
#include "codec/torch_file.h"
#include "codec/torch_tensor.h"
#include "layout/early_names.h"
#include "layout/omni_names.h"
#include "state/module_state.h"
#include "state/plain_arguments.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

Result<LegacyTensor> read_tensor(const TorchFile& archive, std::string_view name, Value value,
                                 LegacyDetail detail) {
  LegacyTensor tensor{std::string(name), {}};
  if (detail == LegacyDetail::kPlaces) {
    tensor.place = SW_TRY(archive.locate(value));
    return tensor;
  }
  const TorchTensor recipe = SW_TRY(read_torch_tensor(value));
  tensor.place.dtype = recipe.dtype;
  tensor.place.shape = recipe.shape;
  return tensor;
}

// Adds the tensors of a dict and of the dicts in it, which models from before Megatron-Core have.
// A dict may be in the file once and in many others: what that makes is counted.
Status add_entries(const TorchFile& archive, const std::string& prefix, Value dict,
                   LegacyDetail detail, int depth, LegacyModel& model, Allowance& allowance) {
  constexpr int kMostNested = 6;
  const Value pairs = dict_pairs(dict);
  if (depth > kMostNested) {
    return fail(Code::kUnsupportedFormat, "'{}': found dicts nested too deep", prefix);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::optional<std::string_view> key = pairs.key(i).as_string();
    if (!key) return fail(Code::kUnsupportedFormat, "'{}': found a key that is not text", prefix);
    const std::string name = prefix + std::string(*key);
    SW_TRY(allowance.take(sizeof(LegacyTensor) + name.size(), "its dicts within dicts"));
    const Value value = pairs.value(i);
    if (dict_pairs(value).is(Kind::kDict)) {
      model.is_early = true;
      SW_TRY(add_entries(archive, name + ".", value, detail, depth + 1, model, allowance));
      continue;
    }
    if (!is_tensor(value) || name.ends_with("_extra_state")) {
      if (model.module_state.empty() && holds_module_state(value)) model.module_state = name;
      model.objects.push_back(name);
      continue;
    }
    Result<LegacyTensor> tensor = read_tensor(archive, name, value, detail);
    if (!tensor) {
      return std::unexpected(std::move(tensor).error().within(fmt::format("tensor {}", name)));
    }
    model.tensors.push_back(*std::move(tensor));
  }
  return {};
}

Result<LegacyModel> read_model(const TorchFile& archive, std::string_view key, Value dict,
                               LegacyDetail detail, Allowance& allowance) {
  LegacyModel model;
  // A stage may have nothing: an OrderedDict that nothing was put into.
  if (dict.is(Kind::kReduce) && dict.callable().is_global("collections", "OrderedDict") &&
      !dict.items()) {
    return model;
  }
  if (!dict_pairs(dict).is(Kind::kDict)) {
    return fail(Code::kUnsupportedFormat, "'{}' is not a dict of tensors", key);
  }
  SW_TRY(add_entries(archive, "", dict, detail, 0, model, allowance));
  for (LegacyTensor& tensor : model.tensors) {
    tensor.name = model.is_early ? core_name_of_early(tensor.name) : core_name_of_omni(tensor.name);
  }
  return model;
}

// What Megatron and its forks put beside a model, random states of early versions among it.
bool is_key_of_megatron(std::string_view key) {
  constexpr std::array<std::string_view, 5> kOthers = {"args", "optimizer", "opt_param_scheduler",
                                                       "lr_scheduler", "rerun_state_machine"};
  return key.starts_with("model") || key.contains("rng_") ||
         std::ranges::find(kOthers, key) != kOthers.end();
}

Status look_beside_model(Value pairs, LegacyFile& file, Allowance& allowance) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (is_key_of_megatron(pairs.key(i).as_string().value_or(""))) continue;
    SW_TRY(file.unread.add(pairs.key(i), pairs.value(i), allowance));
  }
  return {};
}

// Layers without weights are none to whoever asks for a model's.
void count_layers_with_weights(Arguments& arguments) {
  const auto layers = arguments.find("num_layers");
  if (layers == arguments.end()) return;
  const auto without = static_cast<std::int64_t>(noop_layers_of(arguments).size());
  auto* const number = std::get_if<std::int64_t>(&layers->second);
  if (number != nullptr && *number >= without) *number -= without;
}

}  // namespace

Result<LegacyFile> read_legacy_file(const ReadableFile& file, LegacyDetail detail) {
  const TorchFile archive = SW_TRY(TorchFile::open(file));
  const Value root = archive.root();
  LegacyFile result;
  Allowance allowance(file.size());
  const auto add = [&](const std::string& key, Value dict) -> Status {
    Result<LegacyModel> model = read_model(archive, key, dict, detail, allowance);
    if (!model) return std::unexpected(std::move(model).error().within(file.name()));
    result.models.push_back(*std::move(model));
    return {};
  };
  // What verl's older workers saved: a list of the virtual stages' state dicts, and no more.
  if (root.is(Kind::kList) && root.size() > 0) {
    for (std::size_t stage = 0; stage < root.size(); ++stage) {
      SW_TRY(add(fmt::format("[{}]", stage), root[stage]));
    }
    return result;
  }
  const Value pairs = dict_pairs(root);
  if (!pairs.is(Kind::kDict)) {
    return fail(Code::kUnsupportedFormat, "{}: not a dict, as a rank's state is", file.name());
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    result.keys.emplace_back(pairs.key(i).as_string().value_or(""));
  }
  result.arguments = SW_TRY(plain_arguments(root.find("args")));
  count_layers_with_weights(result.arguments);
  if (const Value version = root.find("checkpoint_version")) {
    result.checkpoint_version = version.as_double();
  }
  const Value optimizer = root.find("optimizer");
  result.has_optimizer = optimizer && !optimizer.is_none();
  if (const Value iteration = root.find("iteration")) result.iteration = iteration.as_int();
  if (const Value model = root.find("model")) {
    SW_TRY(add("model", model));
    SW_TRY(look_beside_model(pairs, result, allowance));
    return result;
  }
  for (std::size_t stage = 0;; ++stage) {
    const std::string key = fmt::format("model{}", stage);
    const Value model = root.find(key);
    if (!model) break;
    SW_TRY(add(key, model));
  }
  // verl's model.pt is the state dict itself.
  const bool is_bare = result.models.empty() && holds_tensor(pairs);
  if (is_bare) SW_TRY(add("the file", root));
  if (!is_bare) SW_TRY(look_beside_model(pairs, result, allowance));
  if (result.models.empty()) {
    return fail(Code::kUnsupportedFormat, "{} has neither 'model' nor 'model0'", file.name());
  }
  return result;
}

}  // namespace shardwright
