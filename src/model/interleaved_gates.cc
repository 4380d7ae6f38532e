// SPDX-License-Identifier: Apache-2.0
#include "model/interleaved_gates.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "layout/expert_names.h"
#include "model/activation.h"
#include "model/arguments.h"
#include "model/config_rules.h"

namespace shardwright {
namespace {

constexpr std::string_view kSharedFc1 = ".shared_experts.linear_fc1.";

Result<std::int64_t> rows_of_block(const Arguments& args, const char* name) {
  const ArgValue* const value = find_set(args, name);
  if (value == nullptr) return 0;
  const std::optional<std::int64_t> rows = whole(*value);
  if (rows && *rows > 0) return *rows;
  return fail(Code::kConfigMissing,
              "argument {}: found {}, expected how many rows of a gate lie together", name,
              to_string(*value));
}

std::int64_t ranks_of(const Arguments& args, const char* name, std::int64_t otherwise) {
  return std::max<std::int64_t>(whole_or(find_set(args, name), otherwise), 1);
}

// `linear_fc1.weight`, of experts that an axis counts; `3.linear_fc1.weight` is one expert's.
bool is_fc1_of_experts(std::string_view name) {
  std::string_view linear = name_in_experts(name);
  const std::size_t digits = linear.find_first_not_of("0123456789");
  if (digits != 0 && digits != linear.npos && linear[digits] == '.') {
    linear.remove_prefix(digits + 1);
  }
  return linear.starts_with("linear_fc1.");
}

Status interleave(const GateBlocks& blocks, const TensorDesc& tensor, const Block& block,
                  std::vector<Block>& made) {
  SW_TRY(check_blocks(blocks, tensor));
  const int axis = axis_of_rows(tensor);
  const std::int64_t rows = tensor.shape[axis];
  const std::int64_t end = block.megatron_origin[axis] + block.shape[axis];
  for (std::int64_t row = block.megatron_origin[axis]; row < end;) {
    const StoredRows stored = stored_rows(blocks, rows / 2, row);
    Block part = block;
    part.megatron_origin[axis] = stored.first;
    part.shape[axis] = std::min(stored.count, end - row);
    if (const std::int64_t hf_axis = block.hf_axis[axis]; hf_axis >= 0) {
      part.hf_origin[static_cast<int>(hf_axis)] +=
          (row - block.megatron_origin[axis]) * block.hf_step[axis];
    }
    row += part.shape[axis];
    made.push_back(part);
  }
  return {};
}

}  // namespace

Result<InterleavedGates> interleaved_gates(const Arguments& args) {
  InterleavedGates gates;
  if (!states_gate(args).value_or(true)) return gates;
  const std::int64_t ranks = ranks_of(args, "tensor_model_parallel_size", 1);
  if (find_flag(args, "moe_grouped_gemm").value_or(true)) {
    gates.experts = {SW_TRY(rows_of_block(args, "moe_mlp_glu_interleave_size")),
                     ranks_of(args, "expert_tensor_parallel_size", ranks)};
  }
  if (is_true(args, "use_grouped_gemm_for_shared_expert")) {
    gates.shared_experts = {SW_TRY(rows_of_block(args, "moe_shared_expert_glu_interleave_size")),
                            ranks};
  }
  return gates;
}

InterleavedGates gates_on(const ParallelConfig& parallel, InterleavedGates gates) {
  gates.experts.ranks = std::max<std::int64_t>(parallel.expert_tensor, 1);
  gates.shared_experts.ranks = std::max<std::int64_t>(parallel.tensor, 1);
  return gates;
}

GateBlocks blocks_of(const InterleavedGates& gates, std::string_view name) {
  if (is_fc1_of_experts(name)) return gates.experts;
  return name.find(kSharedFc1) == std::string_view::npos ? GateBlocks() : gates.shared_experts;
}

int axis_of_rows(const TensorDesc& tensor) {
  return tensor.shape.size() - (tensor.name.ends_with(".bias") ? 1 : 2);
}

Status check_blocks(const GateBlocks& blocks, const TensorDesc& tensor) {
  const std::int64_t rows = tensor.shape[axis_of_rows(tensor)];
  if (blocks.rows == 0 || rows % (2 * blocks.rows * blocks.ranks) == 0) return {};
  return fail(Code::kNotDivisible,
              "tensor {}: {} rows on {} ranks do not consist of blocks of {} rows of the gate and "
              "as many of the linear part",
              tensor.name, rows, blocks.ranks, blocks.rows);
}

StoredRows stored_rows(const GateBlocks& blocks, std::int64_t gate_rows, std::int64_t row) {
  if (blocks.rows == 0) return {row, 2 * gate_rows - row};
  const bool is_linear = row >= gate_rows;
  const std::int64_t in_part = is_linear ? row - gate_rows : row;
  const std::int64_t of_rank = gate_rows / blocks.ranks;
  const std::int64_t rank = in_part / of_rank;
  const std::int64_t in_rank = in_part % of_rank;
  const std::int64_t in_block = in_rank % blocks.rows;
  const std::int64_t alternating =
      (in_rank / blocks.rows * 2 + (is_linear ? 1 : 0)) * blocks.rows + in_block;
  // Ranks' tensors are put together by halves, whatever is in them.
  const std::int64_t half = alternating / of_rank;
  const std::int64_t in_half = alternating % of_rank;
  return {half * gate_rows + rank * of_rank + in_half,
          std::min(blocks.rows - in_block, of_rank - in_half)};
}

Status interleave_gates(const InterleavedGates& gates, Correspondence& correspondence) {
  if (!gates.are_any()) return {};
  std::vector<Block> made;
  made.reserve(correspondence.blocks.size());
  for (const Block& block : correspondence.blocks) {
    const TensorDesc& tensor = correspondence.megatron[block.megatron].desc;
    const GateBlocks blocks = blocks_of(gates, tensor.name);
    if (blocks.rows == 0) {
      made.push_back(block);
    } else {
      SW_TRY(interleave(blocks, tensor, block, made));
    }
  }
  correspondence.blocks = std::move(made);
  return {};
}

}  // namespace shardwright
