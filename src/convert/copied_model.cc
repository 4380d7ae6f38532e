// SPDX-License-Identifier: Apache-2.0
#include "convert/copied_model.h"

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "layout/state_name.h"
#include "model/apply.h"

namespace shardwright {
namespace {

// What makes a copy a model that its loader fills with random values, or can't read.
bool is_loss(Code code) {
  return code == Code::kUnmatchedTarget || code == Code::kUnmatchedSource ||
         code == Code::kShapeMismatch;
}

// Without optimizer states, which no family names. The copy of the catalog ends here: it would be a
// tenth of what planning takes.
Result<ModelTensors> tensors_of(const Checkpoint& source, std::string_view config) {
  Catalog catalog = source.catalog;
  std::erase_if(catalog.tensors,
                [](const StoredTensor& tensor) { return is_optimizer_name(tensor.desc.name); });
  return model_tensors(catalog, config, source.files.get());
}

// Such integers are codes: what they stand for is in tensors beside them.
bool has_integer_weights(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return is_integer(tensor.desc.dtype) && tensor.desc.name.ends_with(".weight");
  });
}

// A model that no family's rules were held against is copied, but not cast.
Status tell_unknown(const Error& error, Drafting& drafting) {
  if (drafting.request().dtype && has_integer_weights(drafting.source().catalog)) {
    return fail(error.code,
                "{}; --dtype would cast the scales that such integers need: leave it out, or give "
                "a config.json that names the quantisation",
                error.message);
  }
  drafting.tell(translated("the model's tensors are not held against a family: ") + error.message);
  return {};
}

Status refuse(const Error& error, Drafting& drafting) {
  if (!is_loss(error.code)) return tell_unknown(error, drafting);
  if (drafting.request().accept_loss) {
    drafting.tell(error.message);
    return {};
  }
  return fail(error.code, "{}; --accept-loss copies what is there", error.message);
}

}  // namespace

Status check_copied_model(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  const bool is_copy = drafting.is_from_hf() && drafting.traits().names == TargetNames::kHf;
  const bool is_whole = request.include.empty() && request.exclude.empty();
  if (!is_copy || !is_whole) return {};
  const Checkpoint& source = drafting.source();
  const std::string config = SW_TRY(config_text_of(request, source));
  if (config.empty()) return {};
  SW_TRY(load_mappings(drafting));
  Notes guesses;  // told where the values are used
  const auto facts = find_model_facts(request, source, drafting.mappings, {}, guesses);
  if (!facts) return tell_unknown(facts.error(), drafting);
  const auto model = tensors_of(source, facts->config_text);
  if (!model) return refuse(model.error(), drafting);
  std::vector<std::string> unknown;
  FromHfOptions options;
  options.unknown = &unknown;
  const auto mapped = map_from_hf(*facts->mapping, facts->sizes, model->tensors, options);
  if (!mapped) return refuse(mapped.error(), drafting);
  if (unknown.empty()) return {};
  drafting.tell(translated("family {} has no rule for what is copied as it is: {}",
                           facts->mapping->family, name_list(unknown)));
  return {};
}

}  // namespace shardwright
