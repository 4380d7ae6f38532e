// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/mapping_file.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Every mapping file of models/. Fails the program when one does not parse.
const std::vector<Mapping>& shipped_mappings();
const Mapping& shipped(std::string_view family);

/// The tensors that a safetensors header lists, sorted by name.
std::vector<TensorDesc> safetensors_header(const std::string& path);

/// A recorded import of tests/golden/hf by the original software.
struct GoldenFamily {
  std::string folder;
  HfConfig config;
  const Mapping* mapping = nullptr;
  std::vector<TensorDesc> hf;
  std::vector<TensorDesc> canonical;  ///< one tensor per layer
};
GoldenFamily load_golden(const std::string& folder);
/// The folders of tests/golden/hf that this project's families cover.
std::vector<std::string> golden_folders();
/// Those that record where every row came from.
std::vector<std::string> golden_folders_with_rows();

/// `tensor|expert|row` of a Megatron tensor to `tensor|row` of the HF tensor it came from; the
/// expert is -1 for tensors without an expert axis.
using RowOrigins = std::map<std::string, std::string>;
RowOrigins recorded_origins(const std::string& folder);
/// The same from blocks, which must run along whole rows.
RowOrigins block_origins(const Correspondence& correspondence);

/// Every element of every Megatron tensor as `tensor[index]` to `tensor[index]` of HF, by walking
/// the blocks as mapping.h defines them. For small models.
std::map<std::string, std::string> element_origins(const Correspondence& correspondence);

/// One line per block, sorted, with names instead of indices.
std::vector<std::string> block_lines(const Correspondence& correspondence);
std::vector<std::string> tensor_lines(const std::vector<MappedTensor>& tensors);

}  // namespace shardwright
