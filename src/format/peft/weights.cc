// SPDX-License-Identifier: Apache-2.0
#include "format/peft/weights.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "format/model_file.h"
#include "format/safetensors_reader.h"
#include "format/torch_files/state_dict_reader.h"

namespace shardwright {
namespace {

Status read_torch_weights(const Directory& folder, const std::string& file, Checkpoint& checkpoint,
                          Defects& defects) {
  const std::uint32_t number = add_model_file(file, *checkpoint.files, checkpoint.catalog);
  checkpoint.location.traits.records = Records::kFiles;
  return StateDictReader(checkpoint, defects)
      .read(file, open_model_file(folder, file, number, *checkpoint.files));
}

}  // namespace

std::string_view peft_weights_in(const std::function<bool(std::string_view name)>& has_file) {
  for (const std::string_view file : {kPeftWeightsFile, kPeftTorchFile}) {
    if (has_file(file)) return file;
  }
  return {};
}

Result<std::string> read_peft_weights(const Directory& folder, Checkpoint& checkpoint,
                                      Defects& defects) {
  const std::vector<DirectoryEntry> entries = SW_TRY(folder.list(""));
  const auto has_file = [&](std::string_view name) {
    return std::ranges::find(entries, name, &DirectoryEntry::name) != entries.end();
  };
  std::string file(peft_weights_in(has_file));
  if (file.empty()) {
    return fail(Code::kNotFound,
                "{}: not found, nor {}; give the folder that has the adapter's tensors in one of "
                "them",
                kPeftWeightsFile, kPeftTorchFile);
  }
  if (file == kPeftTorchFile) {
    SW_TRY(defects.report(read_torch_weights(folder, file, checkpoint, defects)));
    return file;
  }
  if (has_file(kPeftTorchFile)) {
    checkpoint.notes.push_back(translated("{} is read, as PEFT does; {} beside it is left out",
                                          kPeftWeightsFile, kPeftTorchFile));
  }
  SW_TRY(defects.report(add_safetensors(folder, file, *checkpoint.files, checkpoint.catalog)));
  return file;
}

}  // namespace shardwright
