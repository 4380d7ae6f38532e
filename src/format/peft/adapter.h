// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/peft/lora_config.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What an adapter has for one module of the base model; tensors are indexes into
/// PeftAdapter::catalog.
struct LoraModule {
  std::string name;  ///< in the base model, without `.weight`
  bool is_embedding = false;
  std::uint32_t in = 0;                    ///< lora_A: [rank, inputs]
  std::uint32_t out = 0;                   ///< lora_B: [outputs, rank]
  std::optional<std::uint32_t> bias;       ///< of lora_B: [outputs]
  std::optional<std::uint32_t> magnitude;  ///< of DoRA: [outputs]
  std::string configured = {};  ///< what the config's patterns match: the module or the parameter
  /// Of an expert in a parameter that holds all (target_parameters): the stored tensors that `in`
  /// and `out` are parts of.
  std::string stored_in = {};
  std::string stored_out = {};
  std::int64_t experts = 0;  ///< how many it holds
};

/// What an adapter has for a parameter that holds all experts of a layer (target_parameters), as a
/// base model has it whose files hold them in one tensor too. `modules` have its experts one by
/// one.
struct LoraParameter {
  std::string name;              ///< in the base model
  std::uint32_t in = 0;          ///< [experts, rank, inputs]
  std::uint32_t out = 0;         ///< [experts, outputs, rank]
  std::uint32_t stored_in = 0;   ///< what they are parts of: [experts · rank, inputs]
  std::uint32_t stored_out = 0;  ///< [outputs, rank · experts]
};

/// A tensor of the base model that the adapter has a whole new one for.
struct SavedTensor {
  std::string name;  ///< in the base model
  std::uint32_t tensor = 0;
  /// Of a resized embedding or head that has trained rows besides: what they are put into.
  bool is_under_rows = false;
};

/// Rows of an embedding or a head that an adapter has new ones for.
struct TokenRows {
  std::string module;        ///< in the base model, without `.weight`
  std::uint32_t tensor = 0;  ///< [tokens, width]
  std::vector<std::int64_t> tokens;
};

/// A folder that PEFT wrote: adapter_config.json and its tensors, which lie in one file.
struct PeftAdapter {
  std::string path;
  std::string weights_file;            ///< which one that is
  std::shared_ptr<SourceFiles> files;  ///< by the catalog's numbers
  std::vector<std::string> notes;      ///< what of its files is left out
  LoraConfig config;
  Catalog catalog;  ///< its one file; behind the stored tensors parts of them, for each expert
  std::vector<LoraModule> modules;
  std::vector<LoraParameter> parameters;
  std::vector<SavedTensor> saved;
  std::vector<TokenRows> rows;
  /// The first stored name that is not as PEFT writes it; empty where all are.
  std::string other_name;
};

/// What to tell of an adapter whose names are not as PEFT writes them; empty where they are.
[[nodiscard]] std::string note_on_names(const PeftAdapter& adapter);

/// What PEFT calls the file of an adapter's settings.
inline constexpr std::string_view kPeftConfigFile = "adapter_config.json";

/// Reads a folder's adapter_config.json. Errors: kConfigMissing where there is none; those of
/// reading and of read_lora_config.
[[nodiscard]] Result<LoraConfig> read_peft_config(const Directory& folder);

/// Opens an adapter and reads its config and where its tensors lie. Errors: kConfigMissing without
/// an adapter_config.json; those of read_peft_weights and of read_lora_config; kUnmatchedSource
/// naming tensors whose names mean nothing, or of which a half is missing; kUnsupportedFormat
/// naming parameters that are neither those of experts nor a module's weight; kShapeMismatch with
/// both where lora_A, lora_B and the config do not have the same rank.
[[nodiscard]] Result<PeftAdapter> open_peft_adapter(const std::string& path);

}  // namespace shardwright
