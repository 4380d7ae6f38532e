// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "codec/torch_archive.h"

// For the tests of torch files: what a file holds against the record beside it.
namespace shardwright {

using Locate = std::function<Result<LocatedTensor>(pickle::Value)>;

/// The tensor's elements in row-major order, gathered one by one, in hexadecimal digits.
std::string hex_of(const std::string& file, const LocatedTensor& tensor);

/// Compares each tensor in `value` with what the record of the file says of it, bytes and all;
/// returns how many there were. `where` is for failures.
int compare(const std::string& file, const Locate& locate, pickle::Value value,
            const nlohmann::json& expected, const std::string& where);

}  // namespace shardwright
