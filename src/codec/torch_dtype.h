// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "shardwright/tensor.h"

namespace shardwright {

/// The class that torch.save names for a storage of this dtype (`BFloat16Storage`); empty for the
/// dtypes that came after typed storages and are saved as `UntypedStorage`.
[[nodiscard]] std::string_view torch_storage_class(DType dtype);

/// The dtype of a typed storage class; nothing for UntypedStorage and quantised ones.
[[nodiscard]] std::optional<DType> dtype_of_storage_class(std::string_view name);

}  // namespace shardwright
