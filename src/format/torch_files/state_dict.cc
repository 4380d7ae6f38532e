// SPDX-License-Identifier: Apache-2.0
#include "format/torch_files/state_dict.h"

#include <algorithm>
#include <array>

#include "base/allowance.h"
#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

// What Megatron stores beside a rank's part of the model: as a whole model it would lack the parts
// of all other ranks, and nobody would see it.
bool is_of_megatron(Value root) {
  return root.find("checkpoint_version") || (root.find("args") && root.find("iteration"));
}

Status add_entry(const TorchFile& archive, Value key, Value value, Allowance& allowance,
                 StateDict& dict) {
  const std::string name(*key.as_string());
  if (holds_tensor(dict_pairs(value))) {
    return fail(
        Code::kUnsupportedFormat,
        "'{}' is a dict of tensors within the state dict; save the model's own state_dict()",
        printable(name));
  }
  if (!is_tensor(value)) {
    const bool has_tensors = SW_TRY(dict.unread.add(key, value, allowance));
    if (!has_tensors) dict.left_out.push_back(name);
    return {};
  }
  Result<LocatedTensor> place = archive.locate(value);
  if (!place) {
    return std::unexpected(std::move(place).error().within(fmt::format("tensor {}", name)));
  }
  dict.tensors.push_back({name, *std::move(place)});
  return {};
}

// Averages and the like that training keeps beside the model.
std::vector<std::string> state_dicts_beside(Value root, Value state_dict) {
  std::vector<std::string> beside;
  const Value pairs = dict_pairs(root);
  if (pairs == state_dict) return beside;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::optional<std::string_view> key = pairs.key(i).as_string();
    if (key && holds_tensor(dict_pairs(pairs.value(i)))) beside.emplace_back(*key);
  }
  return beside;
}

}  // namespace

Result<Value> find_state_dict(Value root, const std::string& file) {
  // Composer saves the state of a run: the model's, its optimizers', its callbacks'.
  constexpr std::string_view kState = "state";
  constexpr std::array<std::string_view, 4> kKeys = {"state_dict", "model", "module",
                                                     "model_state_dict"};
  const Value pairs = dict_pairs(root);
  if (!pairs.is(Kind::kDict)) {
    return fail(Code::kUnsupportedFormat, "{}: its value is not a dict of tensors", file);
  }
  if (is_of_megatron(root)) {
    return fail(Code::kUnsupportedFormat,
                "{}: this is one rank's state of a Megatron run; give the folder that holds the "
                "mp_rank_* folders",
                file);
  }
  std::string_view chosen;
  for (const std::string_view key : kKeys) {
    const Value inner = root.find(key);
    if (!inner || !holds_tensor(dict_pairs(inner))) continue;
    if (!chosen.empty()) {
      return fail(Code::kTwoCheckpoints,
                  "{}: found state dicts under '{}' and under '{}'; save the one that is meant by "
                  "itself",
                  file, chosen, key);
    }
    chosen = key;
  }
  // A training checkpoint may hold further tensors: the state of the random numbers.
  if (!chosen.empty()) return dict_pairs(root.find(chosen));
  if (holds_tensor(pairs)) return pairs;
  const Value of_run = dict_pairs(root.find(kState).find("model"));
  if (holds_tensor(of_run)) return of_run;
  return fail(
      Code::kUnsupportedFormat,
      "{}: no tensors in its dict, nor under state_dict, model, module, model_state_dict or "
      "state.model",
      file);
}

Result<TensorsBeside> tensors_beside(Value root, Value state_dict, Allowance& allowance) {
  TensorsBeside beside;
  const Value pairs = dict_pairs(root);
  if (pairs == state_dict) return beside;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Value value = dict_pairs(pairs.value(i));
    if (value == state_dict) continue;
    const bool is_around = dict_pairs(value.find("model")) == state_dict;
    for (std::size_t k = 0; is_around && k < value.size(); ++k) {
      if (dict_pairs(value.value(k)) == state_dict) continue;
      SW_TRY(beside.add(value.key(k), value.value(k), allowance));
    }
    if (!is_around) SW_TRY(beside.add(pairs.key(i), pairs.value(i), allowance));
  }
  return beside;
}

Result<StateDict> read_state_dict(const ReadableFile& file) {
  const TorchFile archive = SW_TRY(TorchFile::open(file));
  const Value pairs = SW_TRY(find_state_dict(archive.root(), file.name()));
  Allowance allowance(file.size());
  StateDict dict;
  dict.saved_as = archive.saved_as();
  dict.beside = state_dicts_beside(archive.root(), pairs);
  if (dict.beside.size() < 2) dict.beside.clear();
  dict.unread = SW_TRY(tensors_beside(archive.root(), pairs, allowance));
  std::erase_if(dict.unread.keys, [&](const std::string& key) {
    return std::ranges::find(dict.beside, key) != dict.beside.end();
  });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::optional<std::string_view> key = pairs.key(i).as_string();
    if (!key) {
      return fail(Code::kUnsupportedFormat, "{}: a key of its state dict is not text", file.name());
    }
    SW_TRY(allowance.take(sizeof(StateDictTensor) + key->size(), "its state dict"));
    const Status added = add_entry(archive, pairs.key(i), pairs.value(i), allowance, dict);
    if (!added) return std::unexpected(Error(added.error()).within(file.name()));
  }
  return dict;
}

void tell_left_out(const StateDict& dict, const std::string& path, Checkpoint& checkpoint) {
  if (!dict.beside.empty()) {
    checkpoint.notes.push_back(
        translated("{}: of {} state dicts in it ({}) the model's is read, the others are left out",
                   path, dict.beside.size(), name_list(dict.beside)));
  }
  tell_beside(dict.unread, path, checkpoint);
  if (!dict.left_out.empty()) {
    checkpoint.notes.push_back(translated("{}: {} are not tensors and are left out: {}", path,
                                          dict.left_out.size(), name_list(dict.left_out)));
  }
}

}  // namespace shardwright
