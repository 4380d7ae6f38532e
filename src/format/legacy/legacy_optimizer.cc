// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_optimizer.h"

#include <cstddef>

#include "codec/torch_file.h"
#include "format/legacy/refuse_states.h"
#include "format/legacy/torch_optimizer.h"
#include "layout/optimizer_groups.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

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
    result_.weight_is_master.resize(parameters.size());
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
      return refuse_states("found {} chained optimizers, expected that of experts and of the rest",
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
      return refuse_states("found {} buffers, expected {} of the model's {} parameters",
                           stored.size(), buffers.size(), buffered.size());
    }
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      std::vector<BufferedParameter> inside;
      for (const std::size_t i : buffers[b]) inside.push_back(buffered[i]);
      if (inside.front().dtype != stored[b].dtype) {
        return refuse_states("tensor {}: found a buffer for {}, expected {}", inside.front().name,
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

}  // namespace

std::vector<TensorDesc> descs_of(std::span<const RankParameter> parameters) {
  std::vector<TensorDesc> descs;
  for (const RankParameter& parameter : parameters) descs.push_back(parameter.desc);
  return descs;
}

Result<RankOptimizer> read_rank_optimizer(const RankOptimizerFiles& files,
                                          std::span<const RankParameter> parameters,
                                          std::optional<std::int64_t> bucket_size) {
  const TorchFile torch = SW_TRY(TorchFile::open(*files.model));
  const auto optimizer =
      SW_TRY(TorchOptimizer::open(*files.model, torch, torch.root().find("optimizer")));
  if (optimizer.has_states()) {
    const GroupRule told = read_group_rule(torch.root().find("args"), optimizer.stored_groups());
    const auto shares =
        SW_TRY(parameters_of_groups(descs_of(parameters), optimizer.groups(), told));
    return optimizer.read(parameters, shares);
  }
  if (files.buffers == nullptr) {
    return refuse_states(
        "found parameter groups and no states, expected distrib_optim.pt beside the file");
  }
  return BufferReader(parameters, bucket_size).read(*files.buffers);
}

}  // namespace shardwright
