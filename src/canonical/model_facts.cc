// SPDX-License-Identifier: Apache-2.0
#include "canonical/model_facts.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.h"
#include "canonical/contradictions.h"
#include "canonical/stored_gates.h"
#include "format/model_config.h"
#include "layout/layer_name.h"
#include "remote/open_path.h"
#include "state/provider_arguments.h"
#include "state/run_config.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

const ArgValue kNullTokenizer = std::string("NullTokenizer");

// Arguments have the vocabulary's height with padding, and without it where the run knew it. The
// latter is the model's.
Arguments with_true_vocabulary(Arguments arguments) {
  if (const auto rows = true_vocabulary(arguments)) {
    arguments.insert_or_assign("padded_vocab_size", *rows);
  }
  return arguments;
}

// Arguments that contradict the tensors make no true config.json.
Status check_told(const Checkpoint& source, std::span<const TensorDesc> canonical) {
  const std::vector<Contradiction> found =
      SW_TRY(contradictions_of(source, canonical)).contradictions;
  if (found.empty()) return {};
  return std::unexpected(
      contradiction_error(source.location.path, "what the run's arguments say", found,
                          "config.json would repeat it; give the true one with --hf-config"));
}

// Arguments that nothing is made of may say what they like, but not unheard.
void tell_ignored(const std::vector<Contradiction>& found, std::vector<std::string>& notes) {
  notes.push_back(translated("{}, {} in all; config.json is used instead", found.front().message,
                             found.size()));
}

// A config.json of another model of the same shapes would cut tokens off, or give rows to heads
// that they are not of.
Status check_differing(const std::string& path, const ModelFacts& facts, const Arguments& run) {
  const auto rows = facts.sizes.find("vocab");
  const std::optional<std::int64_t> tokens = true_vocabulary(run);
  if (tokens && rows != facts.sizes.end() && *tokens > rows->second) {
    return fail(Code::kArgumentsContradict,
                "{}: config.json says a vocabulary of {} rows, and the training arguments {}, the "
                "rest of which would be lost; give the model's own config.json (--hf-config)",
                path, rows->second, *tokens);
  }
  std::vector<DifferingSetting> heads;
  std::ranges::copy_if(facts.differing, std::back_inserter(heads), &DifferingSetting::orders_rows);
  if (heads.empty()) return {};
  return fail(Code::kArgumentsContradict,
              "{}: the training arguments say otherwise than config.json, by which rows would be "
              "those of other heads: {}; give the model's own config.json (--hf-config)",
              path, text_of(heads));
}

// Holds the run's arguments against the tensors and against config.json, which is used.
Status check_said(const Checkpoint& source, std::span<const TensorDesc> canonical,
                  const Arguments& run, ModelFacts& facts, std::vector<std::string>& notes) {
  if (run.empty()) return {};
  auto differing = differing_settings(*facts.mapping, *facts.config, run);
  if (differing) {
    facts.differing = *std::move(differing);
  } else {
    facts.not_held = translated("config.json is not held against the training arguments: ") +
                     differing.error().message;
    notes.push_back(facts.not_held);
  }
  // The run has what the family has, whatever config.json says.
  if (const auto made = args_from_hf_config(*facts.mapping, *facts.config)) {
    notes.insert(notes.end(), made->fixed.begin(), made->fixed.end());
  }
  const auto check = canonical.empty() ? ArgumentCheck() : contradictions_of(source, canonical);
  if (check && !check->contradictions.empty()) {
    // They are no evidence against config.json.
    tell_ignored(check->contradictions, notes);
  } else if (check && !canonical.empty()) {
    SW_TRY(check_differing(source.location.path, facts, run));
  }
  if (!facts.differing.empty()) notes.push_back(differing_note(facts.differing));
  return {};
}

// Which arguments decided for the family, where it was not named.
std::string inferred_note(const Mapping& mapping, const Arguments& arguments, std::size_t tensors) {
  std::vector<std::string> told;
  for (const NeededArg& needed : mapping.needs_args) {
    const auto [name, value] = first_said(arguments, needed.name);
    if (value != nullptr) told.push_back(fmt::format("{} = {}", name, to_string(*value)));
  }
  return translated(
      "family {} is inferred from {} tensors and the training arguments{}; --family names another, "
      "--hf-config settles it",
      mapping.family, tensors, told.empty() ? "" : fmt::format(" ({})", fmt::join(told, ", ")));
}

// The family that the source was made with by a flag; null where it is not known any more.
Result<const Mapping*> recorded_family(const Checkpoint& source,
                                       std::span<const Mapping> mappings) {
  const RecordedMapping record = SW_TRY(read_recorded_mapping(source.source_keys));
  const auto found = std::ranges::find(mappings, record.family, &Mapping::family);
  return found == mappings.end() ? nullptr : &*found;
}

// What is not told may be one.
bool has_null_tokenizer(const Arguments& arguments) {
  const auto tokenizer = arguments.find("tokenizer_type");
  return tokenizer == arguments.end() || tokenizer->second == kNullTokenizer;
}

std::optional<std::int64_t> told_vocabulary(const Arguments& arguments) {
  const auto padded = arguments.find("padded_vocab_size");
  const auto exact = arguments.find("vocab_size");
  if (padded == arguments.end() || exact == arguments.end()) return std::nullopt;
  const auto* rows = std::get_if<std::int64_t>(&padded->second);
  const auto* tokens = std::get_if<std::int64_t>(&exact->second);
  const bool is_told = rows != nullptr && tokens != nullptr && *tokens > 0 && *tokens <= *rows;
  return is_told ? std::optional(*tokens) : std::nullopt;
}

// Providers of Megatron-Bridge pad what they are told, or don't; what they are told is a name of
// theirs alone.
std::optional<std::int64_t> words_of_provider(const Arguments& arguments) {
  const auto exact = arguments.find("vocab_size");
  if (exact == arguments.end() || !arguments.contains("should_pad_vocab")) return std::nullopt;
  const auto* tokens = std::get_if<std::int64_t>(&exact->second);
  return tokens != nullptr && *tokens > 0 ? std::optional(*tokens) : std::nullopt;
}

}  // namespace

std::string differing_note(const std::vector<DifferingSetting>& differing) {
  return translated(
      "the training arguments say otherwise than config.json, which conversions to Hugging Face "
      "use: {}",
      text_of(differing));
}

Result<Arguments> run_arguments(const Checkpoint& source) {
  if (!source.arguments.empty() || source.run_config.empty()) return source.arguments;
  return run_config_arguments(source);
}

Result<Arguments> run_config_arguments(const Checkpoint& source) {
  Arguments config = SW_TRY(read_run_config(source.run_config));
  // Of a MIMO model what says what its language model is stands one section further down.
  constexpr std::string_view kProvider = "standard_provider.";
  Arguments inner;
  for (auto& [name, value] : config) {
    if (name.starts_with(kProvider)) inner.emplace(name.substr(kProvider.size()), std::move(value));
  }
  if (inner.empty()) return config;
  add_arguments_of_provider(inner);
  return inner;
}

Result<std::string> config_text_of(const FamilyChoice& choice, const Checkpoint& source) {
  if (choice.hf_config_dir.empty()) return source.hf_config;
  const std::unique_ptr<Directory> folder = SW_TRY(open_directory(choice.hf_config_dir));
  return read_named_config(*folder);
}

std::optional<std::int64_t> true_vocabulary(const Arguments& arguments) {
  if (const auto words = words_of_provider(arguments)) return words;
  return has_null_tokenizer(arguments) ? std::nullopt : told_vocabulary(arguments);
}

std::optional<std::int64_t> open_vocabulary(const Arguments& arguments) {
  return has_null_tokenizer(arguments) ? told_vocabulary(arguments) : std::nullopt;
}

Result<ModelFacts> find_model_facts(const FamilyChoice& choice, const Checkpoint& source,
                                    std::span<const Mapping> mappings,
                                    std::span<const TensorDesc> canonical,
                                    std::vector<std::string>& notes) {
  ModelFacts facts;
  facts.has_prediction_layers = std::ranges::any_of(
      canonical, [](const TensorDesc& tensor) { return is_prediction_layer(tensor.name); });
  facts.config_text = SW_TRY(config_text_of(choice, source));
  if (!facts.config_text.empty()) facts.config = SW_TRY(read_hf_config(facts.config_text));
  const Mapping* const recorded = SW_TRY(recorded_family(source, mappings));
  const Arguments arguments = with_true_vocabulary(SW_TRY(run_arguments(source)));
  facts.gates = SW_TRY(stored_gates(source));
  if (has_blocks_in_run_only(facts.gates)) {
    notes.emplace_back(
        "run_config.yaml says that gates of experts lie in blocks (moe_mlp_glu_interleave_size): "
        "weights are read without them, as Megatron-Bridge loads them. It may have left them in "
        "blocks where it saved a torch_dist of a model in memory, which nothing here shows: see "
        "that the new model computes what the run's does");
  }
  if (!choice.family.empty()) {
    facts.mapping = SW_TRY(find_family(mappings, choice.family));
  } else if (recorded != nullptr && choice.hf_config_dir.empty()) {
    facts.mapping = recorded;
  } else if (facts.config) {
    const Result<const Mapping*> named = find_family(mappings, *facts.config);
    if (!named && recorded == nullptr) return std::unexpected(named.error());
    facts.mapping = named ? *named : recorded;
  } else if (canonical.empty() && !source.why_no_config.empty()) {
    return fail(Code::kConfigMissing, "{}: {}", source.location.path, source.why_no_config);
  } else if (canonical.empty()) {
    return fail(Code::kConfigMissing,
                "{} has no config.json; give a folder that has it with --hf-config",
                source.location.path);
  } else {
    SW_TRY(check_told(source, canonical));
    facts.mapping = SW_TRY(find_family(mappings, arguments, canonical));
    notes.push_back(inferred_note(*facts.mapping, arguments, canonical.size()));
  }
  if (facts.config) {
    facts.sizes = SW_TRY(sizes_from_hf_config(*facts.mapping, *facts.config));
    SW_TRY(check_said(source, canonical, arguments, facts, notes));
    return facts;
  }
  SW_TRY(check_told(source, canonical));
  facts.sizes = SW_TRY(sizes_from_args(*facts.mapping, arguments));
  ConfigFromArgs made = SW_TRY(config_from_args(*facts.mapping, arguments));
  facts.config_text = std::move(made.json);
  facts.config_is_ours = true;
  notes.push_back("config.json is written from the training arguments");
  if (!facts.mapping->config_section.empty()) {
    notes.push_back(
        translated("what no argument says outside {} (activations, windows, epsilons of towers) is "
                   "left to the model's class: --hf-config gives the model's own",
                   facts.mapping->config_section));
  }
  for (const std::string& key : made.guessed) {
    notes.push_back(translated("config.json: {} is guessed", key));
  }
  for (std::string& note : made.notes) notes.push_back(std::move(note));
  // None may have no words in it, and then means what the model's class has.
  const HfConfig written = SW_TRY(read_hf_config(facts.config_text));
  facts.differing = SW_TRY(differing_settings(*facts.mapping, written, arguments));
  if (!facts.differing.empty()) notes.push_back(differing_note(facts.differing));
  return facts;
}

}  // namespace shardwright
