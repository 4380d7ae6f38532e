// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "model/instances.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Builds a correspondence instance by instance. The two ways to add one differ in which side's
/// shapes are known; the blocks come from the same lowering.
class Assembler {
 public:
  Assembler(const Mapping& mapping, const ModelSizes& sizes) : mapping_(mapping), sizes_(sizes) {}

  /// REQUIRES: every HF name of the instance is in `hf`.
  [[nodiscard]] Status add_from_hf(const Instance& instance, const TensorIndex& hf);
  /// REQUIRES: every Megatron name of the instance, or an alias, is in `canonical`.
  [[nodiscard]] Status add_from_megatron(const Instance& instance, const TensorIndex& canonical);
  /// One tensor on both sides, element by element.
  [[nodiscard]] Status add_identity(const TensorDesc& hf, const TensorDesc& megatron);

  [[nodiscard]] const TensorDesc* find_hf(std::string_view name) const;
  [[nodiscard]] Correspondence take() && { return std::move(result_); }

 private:
  using Owners = std::unordered_map<std::string, std::uint32_t>;
  struct PaddedTable {
    std::string name;
    std::int64_t height = 0;
  };

  [[nodiscard]] Result<std::uint32_t> add_tensor(Side side, MappedTensor tensor,
                                                 std::string_view rule);
  [[nodiscard]] DType dtype_of_constants(const Constant& constant) const;
  [[nodiscard]] Status add_constant(const Instance& instance);
  [[nodiscard]] Status add_lowered(const Instance& instance, const Lowered& lowered,
                                   std::vector<TensorDesc> hf, std::vector<TensorDesc> megatron);
  [[nodiscard]] Status check_shape(const Rule& rule, const Dims& shape, const Scope& scope) const;
  [[nodiscard]] Status check_padding(const TensorDesc& table, std::int64_t height,
                                     std::int64_t rows);
  [[nodiscard]] Result<std::int64_t> stack_count(const Rule& rule) const;

  const Mapping& mapping_;
  const ModelSizes& sizes_;
  Correspondence result_;
  Owners hf_;
  Owners megatron_;
  std::unordered_map<std::int64_t, PaddedTable> padded_;  // by the rows that mean something
};

}  // namespace shardwright
