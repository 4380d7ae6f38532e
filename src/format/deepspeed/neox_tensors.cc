// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/neox_tensors.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/fail.h"
#include "base/text.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

const std::string& file_of(const LayerTensor& tensor, const Checkpoint& checkpoint) {
  return checkpoint.catalog.files[tensor.file];
}

Result<bool> is_zero(const LayerTensor& tensor, const Checkpoint& checkpoint) {
  const auto file = SW_TRY(checkpoint.files->get(tensor.file));
  std::array<std::byte, 4096> buffer{};
  const ByteRange all = tensor.place.range;
  for (std::uint64_t done = 0; done < all.length;) {
    const std::uint64_t count = std::min<std::uint64_t>(buffer.size(), all.length - done);
    const std::span<std::byte> bytes = std::span(buffer).first(static_cast<std::size_t>(count));
    SW_TRY(file->read_at(all.offset + done, bytes));
    const auto is_set = [](std::byte byte) { return byte != std::byte{}; };
    if (std::ranges::any_of(bytes, is_set)) return false;
    done += count;
  }
  return true;
}

// With gpt_j_residual GPT-NeoX sums up what attention and MLP of all ranks give, and each rank has
// added a bias of its own by then: Megatron's bias is their sum.
Status check_biases(const LayerTensors& tensors, const Checkpoint& checkpoint,
                    std::int64_t tensor_ranks) {
  const auto known = checkpoint.arguments.find("use_parallel_residual");
  const bool is_known = known != checkpoint.arguments.end();
  if (tensor_ranks == 1 || (is_known && known->second == ArgValue{false})) return {};
  for (const LayerTensor& tensor : tensors) {
    const bool is_of_rows = tensor.name.ends_with(".self_attention.linear_proj.bias") ||
                            tensor.name.ends_with(".mlp.linear_fc2.bias");
    if (!is_of_rows || SW_TRY(is_zero(tensor, checkpoint))) continue;
    if (is_known) {
      return fail(Code::kUnsupportedFormat,
                  "{}: tensor {}: the run had gpt_j_residual, so the bias is the sum of what {} "
                  "tensor-parallel ranks have, and no rule adds them up; GPT-NeoX's "
                  "tools/ckpts/convert_neox_to_hf.py does, and its model is read",
                  file_of(tensor, checkpoint), printable(tensor.stored), tensor_ranks);
    }
    return fail(Code::kUnsupportedFormat,
                "{}: tensor {}: nothing says whether this run of GPT-NeoX had gpt_j_residual, "
                "with which the bias is the sum of what {} tensor-parallel ranks have; copy the "
                "run's configuration into {}/configs",
                file_of(tensor, checkpoint), printable(tensor.stored), tensor_ranks,
                checkpoint.directory->name());
  }
  return {};
}

// Where several heads share a key, GPT-NeoX has all queries in front of the keys, and Megatron
// those of each group.
Status check_groups(const LayerTensors& tensors, const Checkpoint& checkpoint,
                    std::int64_t tensor_ranks) {
  for (const LayerTensor& tensor : tensors) {
    const Dims& shape = tensor.place.shape;
    if (!tensor.name.ends_with(".linear_qkv.weight") || shape.size() != 2) continue;
    if (shape[0] * tensor_ranks == 3 * shape[1]) continue;
    return fail(Code::kUnsupportedFormat,
                "{}: tensor {}: with num_kv_heads GPT-NeoX has queries, keys and values one behind "
                "another, and no rule puts them in Megatron's order; GPT-NeoX's "
                "tools/ckpts/convert_neox_to_hf.py does, and its model is read",
                file_of(tensor, checkpoint), printable(tensor.stored));
  }
  return {};
}

}  // namespace

Status check_neox_tensors(const LayerTensors& tensors, const Checkpoint& checkpoint,
                          std::int64_t tensor_ranks) {
  SW_TRY(check_biases(tensors, checkpoint, tensor_ranks));
  return check_groups(tensors, checkpoint, tensor_ranks);
}

}  // namespace shardwright
