// SPDX-License-Identifier: Apache-2.0
#include "format/torch_files/state_dict_reader.h"

#include "base/fail.h"
#include "format/pickle_files.h"
#include "tensor/strided_copy.h"

namespace shardwright {

Status StateDictReader::read(const std::string& path, Result<ModelFile> opened) {
  const auto [number, file] = SW_TRY(std::move(opened));
  SW_TRY(judge_pickles(*file, path, checkpoint_, defects_));
  StateDict dict = SW_TRY(read_state_dict(*file));
  for (const StateDictTensor& tensor : dict.tensors) {
    SW_TRY(defects_.report(add(tensor, number)));
  }
  tell_left_out(dict, path, checkpoint_);
  return {};
}

Status StateDictReader::add(const StateDictTensor& tensor, std::uint32_t file) {
  const auto [first, is_new] = seen_.emplace(tensor.name, file);
  if (!is_new) {
    return fail(Code::kDuplicateName, "tensor {}: found in both {} and {}", tensor.name,
                checkpoint_.catalog.files[first->second], checkpoint_.catalog.files[file]);
  }
  const Dims& shape = tensor.place.shape;
  const LegacyPart whole{
      {tensor.name, tensor.place.dtype, shape}, Box::whole(shape), 0, row_major_strides(shape)};
  return chunks_.add("", {file, tensor.place, whole, true});
}

}  // namespace shardwright
