// SPDX-License-Identifier: Apache-2.0
#include "model/argument_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/translated.h"
#include "model/argument_facts.h"

namespace shardwright {
namespace {

using Number = std::optional<std::int64_t>;

const TensorDesc* embedding_of(const LanguageTensors& model) {
  const TensorDesc* const table = model.outside("embedding.word_embeddings.weight");
  return table == nullptr || table->shape.size() != 2 ? nullptr : table;
}

void check_layers(const LanguageTensors& model, StatedArguments& stated) {
  const Number layers = stated.number({"decoder_num_layers", "num_layers"});
  const std::int64_t count = model.layer_count();
  if (layers && count > 0) {
    const bool is_apart = stated.find("decoder_num_layers") != nullptr;
    const std::string_view name = is_apart ? "decoder_num_layers" : "num_layers";
    stated.hold(name);
    // Megatron's pretrain_t5.py builds both stacks by num_layers, whatever is said of the
    // decoder's.
    if (*layers != count && !(is_apart && stated.number({"num_layers"}) == count)) {
      stated.contradict(name, translated("the tensors are of {} layers", count));
    }
  }
  constexpr std::string_view kPrediction = "mtp_num_layers";
  if (!stated.named({kPrediction}) || count == 0) return;
  stated.hold(kPrediction);
  const bool repeats = stated.flag("mtp_use_repeated_layer").value_or(false);
  const std::int64_t predicted = stated.number({kPrediction}).value_or(0);
  const std::int64_t expected = repeats ? std::min<std::int64_t>(predicted, 1) : predicted;
  if (expected != model.prediction_layers()) {
    stated.contradict(kPrediction, translated("the tensors are of {} prediction layers",
                                              model.prediction_layers()));
  }
}

void check_width(const LanguageTensors& model, StatedArguments& stated) {
  const Number hidden = stated.number({"hidden_size"});
  // Embeddings may be narrower than the layers, and are projected then.
  const TensorDesc* const projection = model.outside("decoder.project_in.weight");
  const TensorDesc* const table = embedding_of(model);
  if (projection != nullptr && projection->shape.size() == 2) {
    stated.expect("hidden_size", hidden, projection->shape[0], *projection);
  } else if (table != nullptr) {
    stated.expect("hidden_size", hidden, table->shape[1], *table);
  }
  // What reads the residual stream, in every layer.
  constexpr std::array<std::string_view, 3> kReaders = {
      "self_attention.linear_qkv.weight", "mlp.linear_fc1.weight", "mlp.router.weight"};
  constexpr std::array<std::string_view, 5> kNorms = {
      "self_attention.linear_qkv.layer_norm_weight", "mixer.in_proj.layer_norm_weight",
      "mlp.linear_fc1.layer_norm_weight", "input_layernorm.weight", "pre_mlp_layernorm.weight"};
  const auto check = [&](std::span<const std::string_view> names, const auto& layer, int axes) {
    for (const std::string_view name : names) {
      const auto found = layer.find(name);
      if (found == layer.end() || found->second->shape.size() != axes) continue;
      stated.expect("hidden_size", hidden, found->second->shape[axes - 1], *found->second);
    }
  };
  for (const auto& [number, layer] : model.layers()) {
    check(kReaders, layer, 2);
    check(kNorms, layer, 1);
  }
}

// Rows that the run's padding makes of the tokens it knows, where it says how.
Number padded_rows(StatedArguments& stated) {
  if (const Number rows = stated.number({"padded_vocab_size"})) return rows;
  const std::optional<bool> pads = stated.flag("should_pad_vocab");
  const Number tokens = stated.number({"vocab_size"});
  if (!pads || !tokens) return std::nullopt;
  if (!*pads) return tokens;
  const Number divisor = stated.number({"make_vocab_size_divisible_by"});
  const Number ranks = stated.number({"tensor_model_parallel_size"});
  const auto step = divisor && ranks ? checked_mul(*divisor, *ranks) : std::nullopt;
  if (!step || *step < 1) return std::nullopt;
  return (*tokens + *step - 1) / *step * *step;
}

void check_vocabulary(const LanguageTensors& model, StatedArguments& stated) {
  const TensorDesc* const table = embedding_of(model);
  if (table == nullptr) return;
  const std::int64_t rows = table->shape[0];
  const bool is_padded = stated.find("padded_vocab_size") != nullptr;
  stated.expect(is_padded ? "padded_vocab_size" : "vocab_size", padded_rows(stated), rows, *table);
  const Number tokens = stated.number({"vocab_size"});
  if (tokens) stated.hold("vocab_size");
  if (tokens && *tokens > rows) {
    stated.contradict("vocab_size", translated("{} has fewer rows", shown_by(*table)));
  }
}

void check_output(const LanguageTensors& model, StatedArguments& stated) {
  const TensorDesc* const table = embedding_of(model);
  if (table == nullptr) return;
  constexpr std::string_view kTied = "share_embeddings_and_output_weights";
  constexpr std::string_view kUntied = "untie_embeddings_and_output_weights";
  const std::optional<bool> untied = stated.flag(kUntied);
  std::optional<bool> tied = stated.flag(kTied);
  const std::string_view name = tied ? kTied : kUntied;
  if (!tied && untied) tied = !*untied;
  if (tied) stated.hold(name);
  const TensorDesc* const head = model.outside("output_layer.weight");
  if (tied == true && head != nullptr) {
    stated.contradict(name, shown_by(*head) + translated(" is there"));
  } else if (tied == false && head == nullptr) {
    stated.contradict(name, "output_layer.weight is missing");
  }
}

// Layer norms have biases in Megatron, root-mean-square norms have none.
void check_norm(const LanguageTensors& model, StatedArguments& stated) {
  const std::optional<std::string> kind = stated.text("normalization");
  for (const std::string_view norm : {"decoder.final_layernorm.", "decoder.final_norm."}) {
    const TensorDesc* const weight = model.outside(std::string(norm) + "weight");
    const TensorDesc* const bias = model.outside(std::string(norm) + "bias");
    if (weight != nullptr && (kind == "RMSNorm" || kind == "LayerNorm")) {
      stated.hold("normalization");
    }
    if (kind == "RMSNorm" && bias != nullptr) {
      stated.contradict("normalization", shown_by(*bias) + translated(" is there"));
    } else if (kind == "LayerNorm" && weight != nullptr && bias == nullptr) {
      stated.contradict("normalization", weight->name + translated(" has no bias beside it"));
    }
  }
}

void check_positions(const LanguageTensors& model, StatedArguments& stated) {
  constexpr std::string_view kName = "position_embedding_type";
  if (embedding_of(model) == nullptr) return;
  const TensorDesc* const table = model.outside("embedding.position_embeddings.weight");
  const std::optional<std::string> kind = stated.text(kName);
  // Flags of older runs that decide it instead.
  const bool is_overruled = stated.flag("use_rotary_position_embeddings").value_or(false) ||
                            !stated.flag("add_position_embedding").value_or(true);
  if (kind && !is_overruled) {
    const bool is_learned = *kind == "learned_absolute";
    stated.hold(kName);
    if (is_learned && table == nullptr) {
      stated.contradict(kName, "embedding.position_embeddings.weight is missing");
    } else if (!is_learned && table != nullptr) {
      stated.contradict(kName, shown_by(*table) + translated(" is there"));
    }
  }
  if (table == nullptr || table->shape.size() != 2) return;
  stated.expect("max_position_embeddings", stated.number({"max_position_embeddings"}),
                table->shape[0], *table);
}

}  // namespace

ArgumentCheck check_arguments(const Arguments& args, std::span<const TensorDesc> canonical) {
  const LanguageTensors model(canonical);
  StatedArguments stated(args);
  if (args.empty()) return {};
  check_layers(model, stated);
  check_width(model, stated);
  check_attention(model, stated);
  check_mlp(model, stated);
  check_hybrid(model, stated);
  check_vocabulary(model, stated);
  check_output(model, stated);
  check_norm(model, stated);
  check_positions(model, stated);
  return stated.take();
}

std::vector<Contradiction> contradicted_arguments(const Arguments& args,
                                                  std::span<const TensorDesc> canonical) {
  return check_arguments(args, canonical).contradictions;
}

}  // namespace shardwright
