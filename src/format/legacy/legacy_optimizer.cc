// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_optimizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "codec/torch_file.h"
#include "codec/torch_number.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

template <class... Args>
std::unexpected<Error> refuse_state(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::kOptimizerUnsupported, "optimizer: {}; convert without it (--optimizer drop)",
              translated(format, std::forward<Args>(args)...));
}

// A torch optimizer's state dict, and the master weights beside it.
struct TorchState {
  Value state;
  Value groups;
  Value masters;  // a list for each group; nothing where the model's weights are the master weights
};

class MixedReader {
 public:
  MixedReader(const ReadableFile& file, const TorchFile& torch,
              std::span<const RankParameter> parameters)
      : file_(file), torch_(torch), parameters_(parameters) {}

  Result<RankOptimizer> read(const std::vector<TorchState>& parts) {
    for (const TorchState& part : parts) SW_TRY(add_part(part));
    std::vector<TensorDesc> descs;
    for (const RankParameter& parameter : parameters_) descs.push_back(parameter.desc);
    groups_ = read_param_groups(stored_groups_);
    const GroupRule told = read_group_rule(torch_.root().find("args"), stored_groups_);
    const auto shares = SW_TRY(parameters_of_groups(descs, groups_, told));
    RankOptimizer result;
    result.states.resize(parameters_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::size_t next_master = 0;
      for (std::size_t i = 0; i < shares[g].size(); ++i) {
        const RankParameter& parameter = parameters_[shares[g][i]];
        result.states[shares[g][i]] = SW_TRY(read_states(g, i, next_master, parameter));
      }
      if (masters_[g] && next_master != masters_[g].size()) {
        return refuse_state("found {} master weights in group {}, expected {}", masters_[g].size(),
                            g, next_master);
      }
    }
    result.step = step_;
    result.has_adam_beside = has_adam_beside(groups_);
    return result;
  }

 private:
  Status add_part(const TorchState& part) {
    std::unordered_map<std::int64_t, Value> by_number;
    for (std::size_t i = 0; i < part.state.size(); ++i) {
      if (const auto number = part.state.key(i).as_int()) by_number[*number] = part.state.value(i);
    }
    if (part.masters && part.masters.size() != part.groups.size()) {
      return refuse_state("found master weights of {} groups, expected {}", part.masters.size(),
                          part.groups.size());
    }
    for (std::size_t g = 0; g < part.groups.size(); ++g) {
      const Value numbers = part.groups[g].find("params");
      stored_groups_.push_back(part.groups[g]);
      masters_.push_back(part.masters ? part.masters[g] : Value());
      std::vector<Value>& states = states_.emplace_back();
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto number = numbers[i].as_int();
        const auto found = number ? by_number.find(*number) : by_number.end();
        // SGD without momentum keeps nothing of any parameter.
        if (found == by_number.end() && !by_number.empty()) {
          return refuse_state("parameter {} of group {} has no state; each must have one", i, g);
        }
        states.push_back(found == by_number.end() ? Value() : found->second);
      }
    }
    return {};
  }

  Result<StatePlaces> read_states(std::size_t group, std::size_t index, std::size_t& next_master,
                                  const RankParameter& parameter) {
    const bool is_own_master = !masters_[group] || parameter.desc.dtype == DType::kF32;
    const LocatedTensor master =
        is_own_master ? parameter.place
                      : SW_TRY(locate(masters_[group][next_master++], kStateKinds[0], parameter));
    if (master.dtype != DType::kF32) {
      return refuse_state("tensor {}: found {} and no master weight, expected float32",
                          parameter.desc.name, torch_name(master.dtype));
    }
    StatePlaces places = {{std::string(kStateKinds[0]), master}};
    const Value state = states_[group][index];
    for (std::size_t i = 0; i < state.size(); ++i) {
      const std::string kind(state.key(i).text());
      if (kind == "step") {
        SW_TRY(read_step(state.value(i), parameter));
      } else if (kind.empty() || kind == kStateKinds[0] || kind.find('.') != kind.npos) {
        return refuse_state("tensor {}: found a state '{}', expected a name", parameter.desc.name,
                            kind);
      } else if (!state.value(i).is_none()) {  // SGD's, before its first step
        places.push_back({kind, SW_TRY(locate(state.value(i), kind, parameter))});
      }
    }
    SW_TRY(check_like_its_group(group, places, parameter));
    return places;
  }

  // In one group all parameters have the same states.
  Status check_like_its_group(std::size_t group, const StatePlaces& places,
                              const RankParameter& parameter) {
    std::set<std::string> kinds;
    for (const StatePlace& place : places) kinds.insert(place.kind);
    const auto [known, is_new] = kinds_.try_emplace(group, kinds);
    if (known->second == kinds) return {};
    return refuse_state("tensor {}: found the states {}, expected {} as of the others of its group",
                        parameter.desc.name, fmt::join(kinds, ", "),
                        fmt::join(known->second, ", "));
  }

  Result<LocatedTensor> locate(Value tensor, std::string_view kind,
                               const RankParameter& parameter) {
    if (!is_tensor(tensor)) {
      return refuse_state("tensor {}: found no tensor as its {}, expected one as of the weight",
                          parameter.desc.name, kind);
    }
    LocatedTensor place = SW_TRY(torch_.locate(tensor));
    if (place.dtype != DType::kF32 || !(place.shape == parameter.desc.shape)) {
      return refuse_state("tensor {}: found {} as {} {}, expected float32 {} as of the weight",
                          parameter.desc.name, kind, torch_name(place.dtype),
                          to_string(place.shape), to_string(parameter.desc.shape));
    }
    return place;
  }

  Status read_step(Value value, const RankParameter& parameter) {
    const std::optional<std::int64_t> step = SW_TRY(read_torch_count(file_, torch_, value));
    if (!step) {
      return refuse_state("tensor {}: found a step that is not a count", parameter.desc.name);
    }
    const std::int64_t count = *step;
    if (step_ && *step_ != count) {
      return refuse_state("tensor {}: found step {}, expected {} as of the other parameters",
                          parameter.desc.name, count, *step_);
    }
    step_ = count;
    return {};
  }

  const ReadableFile& file_;
  const TorchFile& torch_;
  std::span<const RankParameter> parameters_;
  std::vector<Value> stored_groups_;    // of all parts
  std::vector<OptimizerGroup> groups_;  // the same, read
  std::vector<Value> masters_;          // of each group
  std::vector<std::vector<Value>> states_;
  std::map<std::size_t, std::set<std::string>> kinds_;  // by group
  std::optional<std::int64_t> step_;
};

// The bytes of `elements` float32 values from `first` on.
LocatedTensor part_of(const LocatedTensor& buffer, std::int64_t first, const Dims& shape,
                      std::int64_t elements) {
  LocatedTensor part = buffer;
  part.shape = shape;
  part.range.offset += static_cast<std::uint64_t>(first) * sizeof(float);
  part.range.length = static_cast<std::uint64_t>(elements) * sizeof(float);
  return part;
}

class BufferReader {
 public:
  BufferReader(std::span<const RankParameter> parameters, std::optional<std::int64_t> bucket_size)
      : parameters_(parameters), bucket_size_(bucket_size) {
    result_.is_distributed = true;
    result_.states.resize(parameters.size());
  }

  Result<RankOptimizer> read(const ReadableFile& file) {
    const TorchFile torch = SW_TRY(TorchFile::open(file));
    const auto locate = [&](Value tensor) { return torch.locate(tensor); };
    const Value root = torch.root();
    if (!root.is(Kind::kList)) {
      const auto buffers = SW_TRY(read_param_state(root, locate));
      SW_TRY(add(buffers, [](const OptimizerGroup&) { return true; }));
      return std::move(result_);
    }
    if (root.size() != 2) {
      return refuse_state("found {} chained optimizers, expected that of experts and of the rest",
                          root.size());
    }
    for (const bool of_experts : {false, true}) {
      const Value part = root[of_experts ? 1 : 0];
      if (part.is_none()) continue;  // another rank's file has it
      const auto buffers = SW_TRY(read_param_state(part, locate));
      SW_TRY(
          add(buffers, [&](const OptimizerGroup& kind) { return kind.is_expert == of_experts; }));
    }
    return std::move(result_);
  }

 private:
  template <class IsIn>
  Status add(const std::vector<ParamStateBuffer>& stored, const IsIn& is_in) {
    std::vector<std::size_t> numbers;
    std::vector<BufferedParameter> buffered;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!is_in(group_of(parameters_[i].desc))) continue;
      numbers.push_back(i);
      buffered.push_back(parameters_[i].buffered);
    }
    const auto buffers = buffers_of(buffered);
    if (buffers.size() != stored.size()) {
      return refuse_state("found {} buffers, expected {} of the model's {} parameters",
                          stored.size(), buffers.size(), buffered.size());
    }
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      std::vector<BufferedParameter> inside;
      for (const std::size_t i : buffers[b]) inside.push_back(buffered[i]);
      if (inside.front().dtype != stored[b].dtype) {
        return refuse_state("tensor {}: found a buffer for {}, expected {}", inside.front().name,
                            torch_name(stored[b].dtype), torch_name(inside.front().dtype));
      }
      const auto first = SW_TRY(first_coalesced_elements(inside, stored[b].elements, bucket_size_));
      for (std::size_t i = 0; i < inside.size(); ++i) {
        const std::size_t number = numbers[buffers[b][i]];
        StatePlaces& places = result_.states[number].emplace();
        for (const auto& [kind, place] : stored[b].places) {
          places.push_back(
              {kind, part_of(place, first[i], parameters_[number].desc.shape, inside[i].elements)});
        }
      }
    }
    return {};
  }

  std::span<const RankParameter> parameters_;
  std::optional<std::int64_t> bucket_size_;
  RankOptimizer result_;
};

Result<std::vector<TorchState>> torch_states(Value optimizer) {
  std::vector<Value> dicts = {optimizer};
  if (optimizer.is(Kind::kList)) {
    dicts.clear();
    for (std::size_t i = 0; i < optimizer.size(); ++i) dicts.push_back(optimizer[i]);
  }
  std::vector<TorchState> parts;
  for (const Value dict : dicts) {
    Value inner = dict.find("optimizer");
    if (!inner) inner = dict.find("optimizer_state_dict");
    Value masters = dict.find("fp32_from_fp16_params");
    if (!masters) masters = dict.find("fp32_from_fp16");
    if (!inner && dict.find("state")) inner = dict;
    if (!inner.find("param_groups").is(Kind::kList)) {
      return refuse_state("it lacks the parameter groups of Megatron's optimizer");
    }
    parts.push_back({inner.find("state"), inner.find("param_groups"), masters});
  }
  return parts;
}

}  // namespace

Result<RankOptimizer> read_rank_optimizer(const RankOptimizerFiles& files,
                                          std::span<const RankParameter> parameters,
                                          std::optional<std::int64_t> bucket_size) {
  const TorchFile torch = SW_TRY(TorchFile::open(*files.model));
  const Value optimizer = torch.root().find("optimizer");
  const std::vector<TorchState> parts = SW_TRY(torch_states(optimizer));
  // Of SGD without momentum nothing but master weights is kept.
  const bool has_states = std::ranges::any_of(parts, [](const TorchState& part) {
    return part.state.size() > 0 || part.masters.size() > 0;
  });
  if (has_states) return MixedReader(*files.model, torch, parameters).read(parts);
  if (files.buffers == nullptr) {
    return refuse_state(
        "found parameter groups and no states, expected distrib_optim.pt beside the file");
  }
  return BufferReader(parameters, bucket_size).read(*files.buffers);
}

}  // namespace shardwright
