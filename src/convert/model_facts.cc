// SPDX-License-Identifier: Apache-2.0
#include "convert/model_facts.h"

#include <algorithm>

#include "base/fail.h"
#include "format/run_config.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kConfigBytes = std::uint64_t{16} << 20;

Result<Arguments> arguments_of(const Checkpoint& source) {
  if (!source.arguments.empty() || source.run_config.empty()) return source.arguments;
  return read_run_config(source.run_config);
}

// Arguments have the vocabulary's height with padding, and without it where the run knew it. The
// latter is the model's.
Arguments with_true_vocabulary(Arguments arguments) {
  if (const auto rows = true_vocabulary(arguments)) {
    arguments.insert_or_assign("padded_vocab_size", *rows);
  }
  return arguments;
}

}  // namespace

Result<std::string> config_text_of(const ConvertRequest& request, const Checkpoint& source) {
  if (request.hf_config_dir.empty()) return source.hf_config;
  const std::unique_ptr<Directory> folder = SW_TRY(open_local_directory(request.hf_config_dir));
  return read_whole(*folder, "config.json", kConfigBytes);
}

std::optional<std::int64_t> true_vocabulary(const Arguments& arguments) {
  const auto padded = arguments.find("padded_vocab_size");
  const auto exact = arguments.find("vocab_size");
  const auto tokenizer = arguments.find("tokenizer_type");
  if (padded == arguments.end() || exact == arguments.end()) return std::nullopt;
  const auto* rows = std::get_if<std::int64_t>(&padded->second);
  const auto* tokens = std::get_if<std::int64_t>(&exact->second);
  // The null tokenizer counts one token more than it is told.
  const bool is_null =
      tokenizer == arguments.end() || tokenizer->second == ArgValue{std::string("NullTokenizer")};
  if (rows == nullptr || tokens == nullptr || *tokens <= 0 || *tokens > *rows || is_null) {
    return std::nullopt;
  }
  return *tokens;
}

Result<ModelFacts> find_model_facts(const ConvertRequest& request, const Checkpoint& source,
                                    std::span<const Mapping> mappings,
                                    std::span<const TensorDesc> canonical,
                                    std::vector<std::string>& notes) {
  ModelFacts facts;
  facts.has_prediction_layers = std::ranges::any_of(
      canonical, [](const TensorDesc& tensor) { return is_prediction_layer(tensor.name); });
  facts.config_text = SW_TRY(config_text_of(request, source));
  if (!facts.config_text.empty()) facts.config = SW_TRY(read_hf_config(facts.config_text));
  const Arguments arguments = with_true_vocabulary(SW_TRY(arguments_of(source)));
  if (!request.family.empty()) {
    facts.mapping = SW_TRY(find_family(mappings, request.family));
  } else if (facts.config) {
    facts.mapping = SW_TRY(find_family(mappings, *facts.config));
  } else if (canonical.empty()) {
    return fail(Code::kConfigMissing,
                "{}: found no config.json; give a folder that has it with --hf-config",
                source.location.path);
  } else {
    facts.mapping = SW_TRY(find_family(mappings, arguments, canonical));
  }
  if (facts.config) {
    facts.sizes = SW_TRY(sizes_from_hf_config(*facts.mapping, *facts.config));
    return facts;
  }
  facts.sizes = SW_TRY(sizes_from_args(*facts.mapping, arguments));
  ConfigFromArgs made = SW_TRY(config_from_args(*facts.mapping, arguments));
  facts.config_text = std::move(made.json);
  facts.config_is_ours = true;
  notes.push_back("config.json is written from the training arguments");
  for (const std::string& key : made.guessed) {
    notes.push_back(fmt::format("config.json: {} is guessed", key));
  }
  for (std::string& note : made.notes) notes.push_back(std::move(note));
  return facts;
}

}  // namespace shardwright
