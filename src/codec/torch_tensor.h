// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "codec/pickle_value.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What torch leaves to be done to a view's elements when they are read. Exact: signs are bits.
struct SignFlips {
  bool conjugate = false;  ///< of the imaginary parts
  bool negate = false;     ///< of all parts

  [[nodiscard]] bool any() const { return conjugate || negate; }
  friend bool operator==(const SignFlips&, const SignFlips&) = default;
};

/// A tensor as torch's pickles spell it: a strided view of a storage, which is a record of its own.
struct TorchTensor {
  DType dtype = DType::kU8;
  Dims shape;
  Dims strides;             ///< elements; as many as axes
  std::int64_t offset = 0;  ///< of the first element in the storage, in elements
  std::string storage_key;
  std::uint64_t storage_bytes = 0;  ///< as the pickle says; the record must agree
  bool requires_grad = false;
  bool is_parameter = false;
  SignFlips flips;  ///< of a conjugate or negative view; else none

  /// Whether the elements lie in row-major order without gaps.
  [[nodiscard]] bool is_dense() const;
};

/// Whether the node is a call of one of torch's functions that rebuild a tensor or parameter,
/// supported or not.
[[nodiscard]] bool is_tensor(pickle::Value value);

/// The pairs of a dict or of an OrderedDict.
[[nodiscard]] pickle::Value dict_pairs(pickle::Value dict);
/// Whether a value of these pairs is a tensor.
[[nodiscard]] bool holds_tensor(pickle::Value pairs);

/// Reads torch.nn.Parameter and tensors of torch._utils._rebuild_tensor, _v2 and _v3, directly or
/// within _rebuild_parameter, _rebuild_parameter_with_state or _rebuild_from_type_v2, and checks
/// their geometry: the view must lie within the storage; an expanded one (stride 0) may not be more
/// than 64 MiB larger than it. Errors: kTorchArchive for what is no tensor, for quantised, sparse,
/// meta and wrapped tensors, for a geometry that can't be, for flips of a dtype without sign bits.
[[nodiscard]] Result<TorchTensor> read_torch_view(pickle::Value value);

/// The same for those who take elements as they are stored: a conjugate or negative view is
/// refused too.
[[nodiscard]] Result<TorchTensor> read_torch_tensor(pickle::Value value);

/// Resolves a conjugate or negative view: flips the sign bits of elements that lie one after
/// another in `bytes`. REQUIRES: `flips` are those of a tensor of `dtype` that read_torch_view
/// gave, and `bytes` are whole elements.
void flip_signs(DType dtype, const SignFlips& flips, std::span<std::byte> bytes);

/// A dense row-major CPU tensor whose storage has the key `key` and holds nothing else, as torch
/// spells it in a pickle.
[[nodiscard]] pickle::Value make_torch_tensor(pickle::Document& document, DType dtype,
                                              const Dims& shape, std::string_view key);

}  // namespace shardwright
