// SPDX-License-Identifier: Apache-2.0
#include "format/legacy_file.h"

#include "base/fail.h"
#include "codec/torch_file.h"
#include "codec/torch_tensor.h"
#include "format/plain_arguments.h"
#include "layout/early_names.h"
#include "layout/omni_names.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

// The pairs of a dict or of an OrderedDict.
Value pairs_of(Value dict) { return dict.is(Kind::kDict) ? dict : dict.items(); }

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
Status add_entries(const TorchFile& archive, const std::string& prefix, Value dict,
                   LegacyDetail detail, int depth, LegacyModel& model) {
  constexpr int kMostNested = 6;
  const Value pairs = pairs_of(dict);
  if (depth > kMostNested) {
    return fail(Code::kUnsupportedFormat, "'{}': found dicts nested too deep", prefix);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::optional<std::string_view> key = pairs.key(i).as_string();
    if (!key) return fail(Code::kUnsupportedFormat, "'{}': found a key that is no text", prefix);
    const std::string name = prefix + std::string(*key);
    const Value value = pairs.value(i);
    if (pairs_of(value).is(Kind::kDict)) {
      model.is_early = true;
      SW_TRY(add_entries(archive, name + ".", value, detail, depth + 1, model));
      continue;
    }
    if (!is_tensor(value) || name.ends_with("_extra_state")) {
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
                               LegacyDetail detail) {
  LegacyModel model;
  // A stage may have nothing: an OrderedDict that nothing was put into.
  if (dict.is(Kind::kReduce) && dict.callable().is_global("collections", "OrderedDict") &&
      !dict.items()) {
    return model;
  }
  if (!pairs_of(dict).is(Kind::kDict)) {
    return fail(Code::kUnsupportedFormat, "'{}': found no dict of tensors", key);
  }
  SW_TRY(add_entries(archive, "", dict, detail, 0, model));
  for (LegacyTensor& tensor : model.tensors) {
    tensor.name = model.is_early ? core_name_of_early(tensor.name) : core_name_of_omni(tensor.name);
  }
  return model;
}

bool has_tensor(Value pairs) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (is_tensor(pairs.value(i))) return true;
  }
  return false;
}

}  // namespace

Result<LegacyFile> read_legacy_file(const ReadableFile& file, LegacyDetail detail) {
  const TorchFile archive = SW_TRY(TorchFile::open(file));
  const Value root = archive.root();
  const Value pairs = pairs_of(root);
  if (!pairs.is(Kind::kDict)) {
    return fail(Code::kUnsupportedFormat, "{}: found no dict, expected the state of a rank",
                file.name());
  }
  LegacyFile result;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    result.keys.emplace_back(pairs.key(i).as_string().value_or(""));
  }
  result.arguments = plain_arguments(root.find("args"));
  if (const Value version = root.find("checkpoint_version")) {
    result.checkpoint_version = version.as_double();
  }
  const Value optimizer = root.find("optimizer");
  result.has_optimizer = optimizer && !optimizer.is_none();
  if (const Value iteration = root.find("iteration")) result.iteration = iteration.as_int();
  const auto add = [&](const std::string& key, Value dict) -> Status {
    Result<LegacyModel> model = read_model(archive, key, dict, detail);
    if (!model) return std::unexpected(std::move(model).error().within(file.name()));
    result.models.push_back(*std::move(model));
    return {};
  };
  if (const Value model = root.find("model")) {
    SW_TRY(add("model", model));
    return result;
  }
  for (std::size_t stage = 0;; ++stage) {
    const std::string key = fmt::format("model{}", stage);
    const Value model = root.find(key);
    if (!model) break;
    SW_TRY(add(key, model));
  }
  // verl's model.pt is the state dict itself.
  const bool is_bare = result.models.empty() && has_tensor(pairs);
  if (is_bare) SW_TRY(add("the file", root));
  if (result.models.empty()) {
    return fail(Code::kUnsupportedFormat, "{}: found no 'model' and no 'model0'", file.name());
  }
  return result;
}

}  // namespace shardwright
