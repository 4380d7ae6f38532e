// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/optimizer_states.h"

#include <algorithm>
#include <array>

#include "base/allowance.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/torch_number.h"
#include "codec/torch_tensor.h"
#include "format/deepspeed/adam_groups.h"
#include "format/deepspeed/plain_values.h"
#include "format/saved_name.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

// The names of DeepSpeed's enumeration of stages, in their order.
constexpr std::array<std::string_view, 4> kStageNames = {"disabled", "optimizer_states",
                                                         "gradients", "weights"};

// A number, or DeepSpeed's enumeration of it, which some versions of Python store by its name.
std::optional<std::int64_t> stage_of(Value value) {
  if (!value.is(Kind::kReduce)) return value.as_int();
  const auto args = value.args();
  if (args.size() == 1) return args[0].as_int();
  if (args.size() != 2) return std::nullopt;
  const auto named = std::ranges::find(kStageNames, args[1].as_string().value_or(""));
  if (named == kStageNames.end()) return std::nullopt;
  return named - kStageNames.begin();
}

class OptimizerStatesReader {
 public:
  OptimizerStatesReader(const ReadableFile& file, const TorchFile& torch)
      : file_(file), torch_(torch), allowance_(file.size()) {}

  Result<OptimizerStates> read() {
    const Value optimizer = torch_.root().find("optimizer_state_dict");
    if (!dict_pairs(optimizer).is(Kind::kDict)) {
      return fail(Code::kZeroLayout, "its value has no 'optimizer_state_dict'");
    }
    // The optimizer of bfloat16 runs does not say it: its weights are as under ZeRO 1.
    if (const Value stage = optimizer.find("zero_stage")) {
      const std::optional<std::int64_t> number = stage_of(stage);
      if (!number || *number < 0 || *number > 3) {
        return fail(Code::kZeroLayout, "found a zero_stage that is none of 0 to 3");
      }
      states_.stage = *number;
    }
    SW_TRY(read_ranks(optimizer.find("partition_count")));
    const bool is_third = states_.stage == 3;
    const char* const weights = is_third ? "fp32_flat_groups" : "single_partition_of_fp32_groups";
    SW_TRY(read_weights(weights, optimizer.find(weights)));
    SW_TRY(read_group_paddings(optimizer.find("group_paddings")));
    SW_TRY(read_states(optimizer.find(is_third ? "optimizer_state_dict" : "base_optimizer_state")));
    SW_TRY(read_paddings(optimizer.find("param_alignment_paddings")));
    // What DeepSpeed records then is the order from before it dealt the parameters out to the
    // ranks.
    const Value zero = torch_.root().find("ds_config").find("zero_optimization");
    const bool is_dealt_out = zero.find("round_robin_gradients").as_bool().value_or(false);
    if (!is_dealt_out) SW_TRY(read_fragments(optimizer.find("param_slice_mappings")));
    return std::move(states_);
  }

 private:
  Status read_ranks(Value count) {
    std::optional<std::int64_t> ranks = count.as_int();
    for (std::size_t i = 0; i < count.size(); ++i) {
      const std::optional<std::int64_t> of_group = count[i].as_int();
      if (ranks && of_group != ranks) {
        return fail(Code::kUnsupportedFormat,
                    "its groups are shared by {} and {} ranks, as experts are; DeepSpeed's "
                    "ds_to_universal.py puts them together",
                    *ranks, of_group.value_or(0));
      }
      ranks = of_group;
    }
    if (!ranks || *ranks <= 0) {
      return fail(Code::kZeroLayout, "no 'partition_count' says how many ranks share its groups");
    }
    states_.ranks = *ranks;
    return {};
  }

  Status read_weights(const char* key, Value groups) {
    if (!groups.is(Kind::kList)) {
      return fail(Code::kZeroLayout,
                  "no '{}' in it: the optimizer's weights are not there, or of a version of "
                  "DeepSpeed that laid them out otherwise",
                  key);
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      SW_TRY(allowance_.take(sizeof(ZeroBuffers), "its groups"));
      states_.groups.emplace_back().weights =
          SW_TRY(locate_flat(torch_, groups[i], fmt::format("{} {}", key, i)));
    }
    return {};
  }

  Status read_group_paddings(Value paddings) {
    for (std::size_t g = 0; g < states_.groups.size() && g < paddings.size(); ++g) {
      const std::optional<std::int64_t> padding = paddings[g].as_int();
      constexpr std::int64_t kMost = std::int64_t{1} << 40;
      if (!padding || *padding < 0 || *padding > kMost) {
        return fail(Code::kZeroLayout, "'group_paddings': that of group {} is none", g);
      }
      states_.groups[g].padding = *padding;
    }
    return {};
  }

  // torch's state dict by the number of a group, or a list of the groups' states.
  Status read_states(Value base) {
    const Value settings = base.find("param_groups");
    states_.is_adam = are_adam_groups(settings);
    const Value by_group = base.is(Kind::kList) ? base : base.find("state");
    for (std::size_t g = 0; g < states_.groups.size(); ++g) {
      const Value state =
          by_group.is(Kind::kList) ? by_group[g] : by_group.find(static_cast<std::int64_t>(g));
      states_.groups[g].is_muon = settings.is(Kind::kList) && g < settings.size() &&
                                  settings[g].find("use_muon").as_bool().value_or(false);
      SW_TRY(read_group_states(dict_pairs(state), g));
    }
    return {};
  }

  Status read_group_states(Value pairs, std::size_t group) {
    ZeroBuffers& buffers = states_.groups[group];
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::string kind(pairs.key(i).as_string().value_or(""));
      const Value value = pairs.value(i);
      SW_TRY(allowance_.take(sizeof(LocatedTensor) + kind.size(), "its states"));
      if (kind == "step") {
        SW_TRY(take_step(value));
        continue;
      }
      if (!is_tensor(value) || kind.empty() || kind.contains('.')) {
        buffers.left_out.push_back(kind);
        continue;
      }
      Result<LocatedTensor> place = torch_.locate(value);
      if (!place) return std::unexpected(std::move(place).error().within(kind));
      if (place->strides.empty() && is_as_long(*place, buffers)) {
        buffers.states.emplace(kind, *std::move(place));
      } else {
        buffers.left_out.push_back(kind);
      }
    }
    return {};
  }

  // DeepSpeed cuts the padding off the weights, and leaves it behind the states. Muon's are of
  // whole parameters, with those at either end of the weights: they are longer unless none is cut.
  static bool is_as_long(const LocatedTensor& state, const ZeroBuffers& buffers) {
    const std::int64_t weights = buffers.weights.shape[0];
    if (buffers.is_muon) return state.shape == Dims{weights};
    return state.shape == Dims{weights} || state.shape == Dims{weights + buffers.padding};
  }

  Status take_step(Value value) {
    const std::optional<std::int64_t> step = SW_TRY(read_torch_count(file_, torch_, value));
    if (states_.step && step && *states_.step != *step) {
      return fail(Code::kZeroLayout, "found step {} in one group and {} in another", *states_.step,
                  *step);
    }
    if (step) states_.step = step;
    return {};
  }

  Status read_paddings(Value paddings) {
    for (std::size_t g = 0; g < paddings.size(); ++g) {
      std::vector<std::int64_t>& of_group = states_.paddings.emplace_back();
      for (std::size_t i = 0; i < paddings[g].size(); ++i) {
        SW_TRY(allowance_.take(sizeof(std::int64_t), "its paddings"));
        of_group.push_back(paddings[g][i].as_int().value_or(-1));
      }
    }
    return {};
  }

  Status read_fragments(Value mappings) {
    if (mappings.size() != states_.groups.size()) return {};
    for (std::size_t g = 0; g < mappings.size(); ++g) {
      const Value pairs = dict_pairs(mappings[g]);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const std::string name(pairs.key(i).as_string().value_or(""));
        SW_TRY(allowance_.take(sizeof(ZeroFragment) + name.size(), "its fragments"));
        const std::optional<std::int64_t> at = pairs.value(i).attribute("start").as_int();
        const std::optional<std::int64_t> elements = pairs.value(i).attribute("numel").as_int();
        if (!at || !elements) {
          return fail(Code::kZeroLayout,
                      "parameter {}: its place in 'param_slice_mappings' is none", printable(name));
        }
        states_.groups[g].fragments.push_back({name, *at, *elements});
      }
    }
    return {};
  }

  const ReadableFile& file_;
  const TorchFile& torch_;
  Allowance allowance_;
  OptimizerStates states_;
};

}  // namespace

Result<OptimizerStates> read_optimizer_states(const ReadableFile& file) {
  const TorchFile torch = SW_TRY(open_rank_file(file));
  Result<OptimizerStates> states = OptimizerStatesReader(file, torch).read();
  if (!states) return std::unexpected(std::move(states).error().within(file.name()));
  return states;
}

}  // namespace shardwright
