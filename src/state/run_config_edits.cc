// SPDX-License-Identifier: Apache-2.0
#include "state/run_config_edits.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "state/run_config.h"
#include "state/yaml_lines.h"

namespace shardwright {
namespace {

using Path = YamlLines::Path;

constexpr std::string_view kMimoFolder = "megatron.bridge.models.megatron_mimo.";

// What Megatron-Bridge calls some of Megatron's arguments.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOtherNames = {
    std::pair{"decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"},
    std::pair{"decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"},
    std::pair{"num_experts", "num_moe_experts"},
};
constexpr std::array<std::string_view, 11> kSizes = {
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
    "pipeline_model_parallel_layout",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "hybrid_layer_pattern",
};

std::string_view flag(bool value) { return value ? "true" : "false"; }

std::string plain(const ArgValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return std::string(flag(*truth));
  const auto* word = std::get_if<std::string>(&value);
  return word != nullptr ? *word : "null";
}

std::string_view provider_name(std::string_view argument) {
  const auto other = std::ranges::find(kOtherNames, argument,
                                       &std::pair<std::string_view, std::string_view>::first);
  return other == kOtherNames.end() ? argument : other->second;
}

Path operator/(Path path, std::string_view key) {
  path.emplace_back(key);
  return path;
}

class Editor {
 public:
  Editor(YamlLines yaml, const RunConfigEdits& edits) : yaml_(std::move(yaml)), edits_(edits) {}

  Result<std::string> run() {
    const bool was_mimo = yaml_.has({"model", "standard_provider"});
    const bool is_mimo = !edits_.components.empty();
    if (is_mimo && !was_mimo) SW_TRY(wrap());
    if (!is_mimo && was_mimo) {
      const std::vector<std::string> lines =
          SW_TRY(yaml_.lines_below({"model", "standard_provider"}));
      SW_TRY(yaml_.set_lines({"model"}, lines));
    }
    if (is_mimo) SW_TRY(set_components());
    provider_ = is_mimo ? Path{"model", "standard_provider"} : Path{"model"};
    SW_TRY(set_sizes());
    SW_TRY(set_dtype());
    SW_TRY(set_model());
    SW_TRY(set_checkpoint());
    return yaml_.text();
  }

 private:
  // An ordinary model's provider becomes the one inside that of a MIMO model.
  Status wrap() {
    const std::vector<std::string> inner = SW_TRY(yaml_.lines_below({"model"}));
    const auto said = [&](const char* name) {
      return yaml_.scalar({"model", name}).value_or("false");
    };
    const std::string folder(kMimoFolder);
    std::vector<std::string> lines = {
        "_target_: " + folder + "megatron_mimo_provider.MegatronMIMOProvider",
        "bf16: " + said("bf16"),
        "fp16: " + said("fp16"),
        "freeze_language_model: false",
        "freeze_modality_encoders: {}",
        "freeze_modality_projections: {}",
        "init_model_with_meta_device: false",
        "language_model_spec: null",
        "megatron_mimo_parallelism_config:",
        "  _target_: " + folder + "megatron_mimo_config.MegatronMIMOParallelismConfig",
        "  special_token_ids: {}",
        "modality_submodules_spec: {}",
        "module_output_ndim: null",
        "special_token_ids: {}",
        "standard_provider:",
    };
    for (const std::string& line : inner) lines.push_back("  " + line);
    lines.emplace_back("topology: null");
    lines.emplace_back("use_cpu_initialization: false");
    return yaml_.set_lines({"model"}, lines);
  }

  Status set_components() {
    std::vector<const Component*> sorted;
    for (const Component& component : edits_.components) sorted.push_back(&component);
    std::ranges::sort(sorted, {}, &Component::name);
    std::vector<std::string> lines;
    for (const Component* c : sorted) {
      lines.push_back(c->name + ":");
      const auto add = [&](std::string_view name, std::int64_t size) {
        lines.push_back(fmt::format("  {}: {}", name, size));
      };
      lines.push_back(
          fmt::format("  _target_: {}megatron_mimo_config.ModuleParallelismConfig", kMimoFolder));
      add("context_parallel_size", c->context);
      add("data_parallel_size", c->data);
      add("expert_model_parallel_size", c->expert);
      add("expert_tensor_parallel_size", c->expert_tensor);
      add("pipeline_model_parallel_size", c->pipeline);
      add("rank_offset", c->rank_offset);
      add("tensor_model_parallel_size", c->tensor);
      if (c->name != "language") continue;
      SW_TRY(set_if_there({"model", "standard_provider", "context_parallel_size"},
                          std::to_string(c->context)));
    }
    return yaml_.set_lines({"model", "megatron_mimo_parallelism_config", "module_parallelisms"},
                           lines);
  }

  Status set_sizes() {
    for (const auto& [argument, value] : edits_.layout) {
      const std::string_view name = provider_name(argument);
      if (std::ranges::find(kSizes, name) == kSizes.end()) continue;
      const bool is_number = std::holds_alternative<std::int64_t>(value);
      // What a provider does not name has its default, which is None.
      if (!is_number && !yaml_.has(provider_ / name)) continue;
      // A pattern may begin with what means something else in YAML.
      const bool is_text = std::holds_alternative<std::string>(value);
      SW_TRY(set_size(name, is_text ? fmt::format("'{}'", plain(value)) : plain(value)));
    }
    return {};
  }

  Status set_size(std::string_view name, const std::string& value) {
    const Path path = provider_ / name;
    const std::optional<std::string> before = yaml_.scalar(path);
    SW_TRY(yaml_.set(path, value));
    if (name == "tensor_model_parallel_size") {
      if (value == "1") SW_TRY(set_if_there(provider_ / "sequence_parallel", "false"));
      return set_if_there({"tokenizer", "tensor_model_parallel_size"}, value);
    }
    if (name != "pipeline_model_parallel_size") return {};
    // Its default is the number of stages.
    const Path group = provider_ / "microbatch_group_size_per_vp_stage";
    if (before && yaml_.scalar(group) == before) SW_TRY(yaml_.set(group, value));
    const Path type = provider_ / "pipeline_dtype";
    const auto weights = yaml_.scalar(provider_ / "params_dtype" / "_target_");
    const bool lacks_type = yaml_.has(type) && !yaml_.has(type / "_target_");
    if (value == "1" || !lacks_type || !weights) return {};
    return yaml_.set_lines(type,
                           std::vector<std::string>{"_call_: false", "_target_: " + *weights});
  }

  // Of the model, of what is inside its provider, and of the settings of its encoders.
  Status set_dtype() {
    if (!edits_.dtype) return {};
    for (const Path& path : {Path{"model"}, provider_}) {
      SW_TRY(set_if_there(path / "bf16", flag(*edits_.dtype == DType::kBF16)));
      SW_TRY(set_if_there(path / "fp16", flag(*edits_.dtype == DType::kF16)));
      for (const std::string& key : yaml_.keys(path)) SW_TRY(set_dtype_of(path, key));
    }
    return {};
  }

  Status set_dtype_of(const Path& path, const std::string& key) {
    constexpr std::array<std::string_view, 4> kNames = {"params_dtype", "autocast_dtype",
                                                        "pipeline_dtype", "dtype"};
    const bool is_type = std::ranges::find(kNames, key) != kNames.end();
    const Path type = (is_type ? path / key : path / key / "dtype") / "_target_";
    const auto said = yaml_.scalar(type);
    if (!said || !said->starts_with("torch.")) return {};
    return yaml_.set(type, fmt::format("torch.{}", torch_name(*edits_.dtype)));
  }

  Status set_model() {
    for (const auto& [argument, value] : edits_.model) {
      SW_TRY(yaml_.set(provider_ / provider_name(argument), plain(value)));
    }
    const Path layers = provider_ / "mtp_num_layers";
    if (!edits_.has_prediction_layers) SW_TRY(set_if_there(layers, "null"));
    if (edits_.vocabulary) {
      SW_TRY(set_if_there(provider_ / "vocab_size", std::to_string(*edits_.vocabulary)));
    }
    if (!edits_.vocabulary_divisor) return {};
    SW_TRY(set_if_there(provider_ / "should_pad_vocab", "true"));
    return set_if_there(provider_ / "make_vocab_size_divisible_by",
                        std::to_string(*edits_.vocabulary_divisor));
  }

  Status set_checkpoint() {
    const Path checkpoint = {"checkpoint"};
    SW_TRY(set_if_there(checkpoint / "ckpt_format", edits_.format));
    SW_TRY(set_if_there(checkpoint / "save", "null"));
    if (!edits_.has_optimizer) SW_TRY(set_if_there(checkpoint / "save_optim", "false"));
    if (!edits_.has_rng) SW_TRY(set_if_there(checkpoint / "save_rng", "false"));
    return {};
  }

  Status set_if_there(const Path& path, std::string_view value) {
    return yaml_.has(path) ? yaml_.set(path, value) : Status();
  }

  YamlLines yaml_;
  const RunConfigEdits& edits_;
  Path provider_;
};

}  // namespace

Result<std::string> edited_run_config(std::string_view yaml, const RunConfigEdits& edits) {
  YamlLines lines = SW_TRY(YamlLines::read(yaml));
  SW_TRY(read_run_config(yaml));
  return Editor(std::move(lines), edits).run();
}

}  // namespace shardwright
