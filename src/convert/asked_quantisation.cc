// SPDX-License-Identifier: Apache-2.0
#include "convert/asked_quantisation.h"

#include "base/fail.h"

namespace shardwright {

Status check_quantisable(const ConvertRequest& request, const TargetTraits& target) {
  const bool is_asked = request.quantise != WeightForm::kPlain;
  if (!is_asked || target.names == TargetNames::kHf) return {};
  return fail(Code::kUsage,
              "--quantise does not apply to --to {}: only Hugging Face models are stored so; leave "
              "it out, or convert --to hf",
              target.name);
}

Result<QuantiseChoice> choose_quantisation(const ConvertRequest& request,
                                           std::string_view config_text,
                                           const ReleasedQuantisation& released) {
  const WeightForm form = request.quantise;
  const auto scheme =
      form == WeightForm::kMxfp4 ? Quantising::Scheme::kMxfp4 : Quantising::Scheme::kFp8;
  return choose_quantisation(scheme, form == WeightForm::kFp8BlockUe8m0, config_text, released);
}

}  // namespace shardwright
