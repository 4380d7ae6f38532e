// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/model_states.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/allowance.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/torch_tensor.h"
#include "format/deepspeed/plain_values.h"
#include "format/saved_name.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

class ModelStatesReader {
 public:
  ModelStatesReader(const TorchFile& torch, std::uint64_t file_bytes)
      : torch_(torch), allowance_(file_bytes) {}

  Result<ModelStates> read() {
    const Value root = torch_.root();
    if (!dict_pairs(root).is(Kind::kDict) || (!root.find("module") && !root.find("param_shapes"))) {
      return fail(Code::kZeroLayout, "its value has neither 'module' nor 'param_shapes'");
    }
    for (const char* key : {"ds_autoep_layers", "autoep_layers"}) {
      if (root.find(key).size() == 0) continue;
      return fail(Code::kUnsupportedFormat,
                  "'{}' shares experts out over ranks; DeepSpeed's ds_to_universal.py puts them "
                  "together",
                  key);
    }
    SW_TRY(read_module(root.find("module")));
    SW_TRY(check_experts(root.find("num_experts")));
    states_.buffers = texts_of(root.find("buffer_names"));
    SW_TRY(read_groups(root.find("param_shapes")));
    states_.frozen = SW_TRY(read_shapes("frozen_param_shapes", root.find("frozen_param_shapes")));
    SW_TRY(read_frozen_parts(dict_pairs(root.find("frozen_param_fragments"))));
    SW_TRY(read_shared(dict_pairs(root.find("shared_params"))));
    find_shared();
    SW_TRY(look_beside(dict_pairs(root)));
    if (const Value steps = root.find("global_steps")) states_.steps = steps.as_int();
    if (const Value steps = root.find("skipped_steps")) states_.skipped = steps.as_int();
    if (const Value ranks = root.find("dp_world_size")) states_.data_ranks = ranks.as_int();
    if (const Value ranks = root.find("mp_world_size")) states_.model_ranks = ranks.as_int();
    return std::move(states_);
  }

 private:
  Result<std::string> key_of(Value pairs, std::size_t index, std::string_view dict) {
    const std::optional<std::string_view> key = pairs.key(index).as_string();
    if (!key) return fail(Code::kZeroLayout, "'{}': found a key that is not text", dict);
    SW_TRY(allowance_.take(sizeof(StateTensor) + key->size(), "its tensors"));
    return std::string(*key);
  }

  Status add_tensor(std::string name, Value value, std::vector<StateTensor>& tensors) {
    Result<LocatedTensor> place = torch_.locate(value);
    if (!place) {
      return std::unexpected(
          std::move(place).error().within(fmt::format("tensor {}", printable(name))));
    }
    tensors.push_back({std::move(name), *std::move(place)});
    return {};
  }

  Status look_beside(Value pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::string_view key = pairs.key(i).as_string().value_or("");
      if (key == "module" || key == "frozen_param_fragments") continue;
      SW_TRY(states_.unread.add(pairs.key(i), pairs.value(i), allowance_));
    }
    return {};
  }

  Status read_module(Value module) {
    const Value pairs = dict_pairs(module);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::string name = SW_TRY(key_of(pairs, i, "module"));
      if (!is_tensor(pairs.value(i))) {
        const bool has_tensors =
            SW_TRY(states_.unread.add(pairs.key(i), pairs.value(i), allowance_));
        if (!has_tensors) states_.left_out.push_back(std::move(name));
        continue;
      }
      SW_TRY(add_tensor(std::move(name), pairs.value(i), states_.module));
    }
    return {};
  }

  Result<ZeroGroup> read_shapes(std::string_view dict, Value shapes) {
    ZeroGroup group;
    const Value pairs = dict_pairs(shapes);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::string name = SW_TRY(key_of(pairs, i, dict));
      const std::optional<Dims> shape = extents_of(pairs.value(i));
      if (!shape) {
        return fail(Code::kZeroLayout, "parameter {}: its shape in '{}' is none", printable(name),
                    dict);
      }
      group.push_back({std::move(name), *shape});
    }
    return group;
  }

  // DeepSpeed's MoE layers keep their experts in files of their own, and `module` has the rest.
  Status check_experts(Value experts) {
    const Value count = experts.is(Kind::kList) && experts.size() > 0 ? experts[0] : experts;
    const std::int64_t number = count.as_int().value_or(0);
    const bool has_them = std::ranges::any_of(states_.module, [](const StateTensor& tensor) {
      return tensor.name.contains("deepspeed_experts.");
    });
    if (number <= 0 || has_them) return {};
    return fail(Code::kUnsupportedFormat,
                "its model has layers of {} experts, whose files (layer_L_expert_E_mp_rank_*) are "
                "not here; DeepSpeed's load_checkpoint reads such a run where they are",
                number);
  }

  // Of one group in DeepSpeed's first versions, which had no list.
  Status read_groups(Value shapes) {
    states_.has_groups = shapes && !shapes.is_none();
    if (!states_.has_groups) return {};
    if (!shapes.is(Kind::kList)) {
      states_.groups.push_back(SW_TRY(read_shapes("param_shapes", shapes)));
      return {};
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      states_.groups.push_back(SW_TRY(read_shapes("param_shapes", shapes[i])));
    }
    return {};
  }

  Status read_frozen_parts(Value pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::string name = SW_TRY(key_of(pairs, i, "frozen_param_fragments"));
      if (!is_tensor(pairs.value(i))) {
        return fail(Code::kZeroLayout, "parameter {}: its part in 'frozen_param_fragments' is none",
                    printable(name));
      }
      SW_TRY(add_tensor(std::move(name), pairs.value(i), states_.frozen_parts));
    }
    return {};
  }

  Status read_shared(Value pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::string name = SW_TRY(key_of(pairs, i, "shared_params"));
      const std::optional<std::string_view> other = pairs.value(i).as_string();
      if (!other) {
        return fail(Code::kZeroLayout, "'shared_params': {} is shared with what is no name",
                    printable(name));
      }
      states_.shared.emplace_back(std::move(name), std::string(*other));
    }
    return {};
  }

  // Older versions of DeepSpeed list none: what lies where a trained parameter does is that
  // parameter under another name.
  void find_shared() {
    std::map<std::uint64_t, const StateTensor*> trained;  // by the place of the first element
    std::set<std::string_view> parameters;
    for (const ZeroGroup& group : states_.groups) {
      for (const ZeroParameter& parameter : group) parameters.insert(parameter.name);
    }
    std::set<std::string_view> known = parameters;
    known.insert(states_.buffers.begin(), states_.buffers.end());
    for (const ZeroParameter& parameter : states_.frozen) known.insert(parameter.name);
    for (const auto& [name, other] : states_.shared) known.insert(name);
    for (const StateTensor& tensor : states_.module) {
      if (!parameters.contains(tensor.name) || element_count(tensor.place.shape) == 0) continue;
      trained.emplace(tensor.place.range.offset, &tensor);
    }
    for (const StateTensor& tensor : states_.module) {
      const auto found = trained.find(tensor.place.range.offset);
      if (found == trained.end() || known.contains(tensor.name)) continue;
      const LocatedTensor& place = found->second->place;
      const bool is_it = place.shape == tensor.place.shape && place.dtype == tensor.place.dtype &&
                         place.strides == tensor.place.strides;
      if (is_it) states_.shared.emplace_back(tensor.name, found->second->name);
    }
  }

  const TorchFile& torch_;
  Allowance allowance_;
  ModelStates states_;
};

}  // namespace

Result<ModelStates> read_model_states(const ReadableFile& file) {
  const TorchFile torch = SW_TRY(open_rank_file(file));
  Result<ModelStates> states = ModelStatesReader(torch, file.size()).read();
  if (!states) return std::unexpected(std::move(states).error().within(file.name()));
  return states;
}

}  // namespace shardwright
