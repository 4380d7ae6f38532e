// SPDX-License-Identifier: Apache-2.0
#include "canonical/contradictions.h"

#include <algorithm>
#include <iterator>

#include "base/fail.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "canonical/source_model.h"
#include "model/config_check.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostTold = 5;

}  // namespace

Result<std::vector<TensorDesc>> canonical_of(const Checkpoint& source) {
  if (is_disguised(source)) {
    Wrappers wrappers;
    Notes left_out;  // of the model only
    return canonical_descs(SW_TRY(megatron_catalog(source, {}, wrappers, left_out)));
  }
  if (!has_megatron_names(source.catalog)) return std::vector<TensorDesc>();
  return canonical_descs(source.catalog);
}

Result<ArgumentCheck> contradictions_of(const Checkpoint& source,
                                        std::span<const TensorDesc> canonical) {
  const Arguments arguments = SW_TRY(run_arguments(source));
  if (arguments.empty()) return ArgumentCheck();
  if (is_disguised(source) || !has_megatron_names(source.catalog)) {
    return check_arguments(arguments, canonical);
  }
  return check_arguments(arguments, SW_TRY(canonical_descs(source.catalog)));
}

Error contradiction_error(std::string_view path, std::string_view what,
                          std::span<const Contradiction> found, std::string_view way_out) {
  std::string told;
  for (const Contradiction& each : found.first(std::min(found.size(), kMostTold))) {
    told += (told.empty() ? "" : "; ") + each.message;
  }
  if (found.size() > kMostTold) told += translated("; and {} more", found.size() - kMostTold);
  return {Code::kArgumentsContradict,
          translated("{}: {} contradicts the tensors: {}; {}", path, what, told, way_out), 0};
}

Result<ArgumentList> corrected_arguments(const ConvertRequest& request, const Checkpoint& source,
                                         std::vector<std::string>& notes) {
  // A file that goes along unread is no statement.
  if (!run_arguments(source)) return ArgumentList();
  const auto tensors = canonical_of(source);
  if (!tensors) {  // of what is left out, else it would have been refused
    notes.push_back(translated("the run's arguments are not held against the tensors: ") +
                    tensors.error().message);
    return ArgumentList();
  }
  const std::vector<TensorDesc>& canonical = *tensors;
  const std::vector<Contradiction> found =
      SW_TRY(contradictions_of(source, canonical)).contradictions;
  if (found.empty()) return ArgumentList();
  if (request.hf_config_dir.empty() || source.arguments.empty()) {
    // Tensors are laid out by their shapes, so they are right all the same.
    notes.push_back(
        contradiction_error(source.location.path, "what the run's arguments say", found,
                            source.arguments.empty()
                                ? "run_config.yaml goes along with it; correct it"
                                : "the target repeats it; with the model's true config.json "
                                  "(--hf-config) they are written from that")
            .message);
    return ArgumentList();
  }
  const Mappings mappings = SW_TRY(load_mappings(request, source));
  std::vector<std::string> told;
  const ModelFacts facts = SW_TRY(find_model_facts(request, source, mappings, canonical, told));
  ArgsFromConfig made = SW_TRY(args_from_hf_config(*facts.mapping, *facts.config));
  const auto agrees = [&](const ArgumentList& corrected) {
    Arguments arguments = source.arguments;
    for (const auto& [name, value] : corrected) arguments.insert_or_assign(name, value);
    return contradicted_arguments(arguments, canonical).empty();
  };
  if (!agrees(made.values)) {
    return std::unexpected(
        contradiction_error(source.location.path, "what the run's arguments say", found,
                            translated("the config.json in {} does not agree with them either",
                                       request.hf_config_dir)));
  }
  // Only what is wrong is changed, unless another argument is to blame too.
  ArgumentList corrected;
  std::ranges::copy_if(made.values, std::back_inserter(corrected), [&](const auto& entry) {
    return std::ranges::find(found, entry.first, &Contradiction::argument) != found.end();
  });
  if (!agrees(corrected)) corrected = std::move(made.values);
  notes.push_back(translated("{}, {} in all; {} arguments are written from config.json",
                             found.front().message, found.size(), corrected.size()));
  return corrected;
}

Status check_config(std::string_view path, const HfConfig& config, std::span<const TensorDesc> hf) {
  const std::vector<Contradiction> found = contradicted_config(config, hf);
  if (found.empty()) return {};
  return std::unexpected(contradiction_error(path, "what config.json says", found,
                                             "Megatron's arguments would repeat it; correct "
                                             "config.json, or give the true one (--hf-config)"));
}

}  // namespace shardwright
