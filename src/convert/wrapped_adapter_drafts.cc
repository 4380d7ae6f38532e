// SPDX-License-Identifier: Apache-2.0
#include "convert/wrapped_adapter_drafts.h"

#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "convert/adapter_documents.h"
#include "format/wrapped_adapter.h"

namespace shardwright {

Status draft_wrapped_adapter(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  if (drafting.traits().names != TargetNames::kHf) {
    return fail(Code::kUsage,
                "{}: found an adapter in a run's own files, expected a model for --to {}; --to hf "
                "makes PEFT's files of it first",
                request.input, drafting.traits().name);
  }
  SW_TRY(check_changes_of_adapters(request));
  TargetParts& parts = drafting.parts;
  parts.tensors = draft_identity(drafting.catalog, {request.dtype, LayerKeys::kAllNumbered});
  std::set<std::string> names;
  for (DraftTensor& tensor : parts.tensors) {
    std::string name = *peft_name_of_wrapped(tensor.desc.name);
    if (!names.insert(name).second) {
      return fail(Code::kDuplicateName,
                  "tensor {}: found another one that PEFT's files call {} too",
                  printable(tensor.desc.name), printable(name));
    }
    tensor.desc.name = std::move(name);
  }
  const auto config = config_of_wrapped_adapter(drafting.source(), descs_of(parts.tensors));
  if (!config) return std::unexpected(Error(config.error()).within(request.input));
  parts.files.push_back({"adapter_config.json", config->text});
  parts.is_adapter = true;
  drafting.tell(
      translated("the adapter is written as PEFT's files, by what {} says of it; 'shardwright "
                 "merge-adapter' adds it to its base model",
                 config->told_by));
  return {};
}

}  // namespace shardwright
