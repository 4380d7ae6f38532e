// SPDX-License-Identifier: Apache-2.0
#include "format/consolidated/meta_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::string_view kParams = "params.json";
constexpr const char* kScaledRope = "use_scaled_rope";

// Those that are read, and those that shapes tell too or that say nothing of the model.
constexpr auto kKnownParams = std::to_array<std::string_view>(
    {"dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "norm_eps", "rope_theta",
     "use_scaled_rope", "vocab_size", "hidden_dim", "multiple_of", "ffn_dim_multiplier",
     "max_batch_size", "max_seq_len", "model_parallel_size"});

const TensorDesc* desc_of(const Catalog& catalog, std::string_view name) {
  const auto found = std::ranges::find_if(
      catalog.tensors, [&](const StoredTensor& each) { return each.desc.name == name; });
  return found == catalog.tensors.end() ? nullptr : &found->desc;
}

Result<std::int64_t> rows_of_tensor(const Catalog& catalog, std::string_view name) {
  const TensorDesc* const desc = desc_of(catalog, name);
  if (desc != nullptr && !desc->shape.empty()) return desc->shape[0];
  return fail(Code::kConfigMissing, "{}: there is no tensor {} to tell the model's sizes", kParams,
              name);
}

bool is_given(const nlohmann::json& params, const char* key) {
  const auto found = params.find(key);
  return found != params.end() && !found->is_null();
}

Result<std::int64_t> whole_number(const nlohmann::json& params, const char* key) {
  if (params.contains(key) && params[key].is_number_integer()) {
    return params[key].get<std::int64_t>();
  }
  return fail(Code::kConfigMissing, "{}: {} is missing or no whole number", kParams, key);
}

Result<double> real_number(const nlohmann::json& params, const char* key, double otherwise) {
  if (!is_given(params, key)) return otherwise;
  if (params[key].is_number()) return params[key].get<double>();
  return fail(Code::kConfigMissing, "{}: {} is no number", kParams, key);
}

// `sliding_window = 4096`; of a long value the key alone.
std::string setting_text(const std::string& key, const nlohmann::json& value) {
  constexpr std::size_t kMostShown = 32;
  const std::string text = value.is_structured() ? "" : value.dump();
  return text.empty() || text.size() > kMostShown ? key : fmt::format("{} = {}", key, text);
}

// What the config would not say of the model that these settings describe.
Status refuse_unread(const nlohmann::json& params) {
  if (is_given(params, kScaledRope) && params[kScaledRope] != false) {
    return fail(Code::kConfigMissing,
                "{}: it says use_scaled_rope, but not by what factor; give the model's config.json "
                "with --hf-config",
                kParams);
  }
  std::vector<std::string> unread;
  for (const auto& [key, value] : params.items()) {
    const bool is_there = !value.is_null() && value != false;
    const bool is_known = std::ranges::find(kKnownParams, key) != kKnownParams.end();
    if (is_there && !is_known) unread.push_back(setting_text(key, value));
  }
  if (unread.empty()) return {};
  return fail(Code::kConfigMissing,
              "{}: it says {}, which a config.json written from it would lack; give the model's "
              "config.json with --hf-config",
              kParams, name_list(unread));
}

// The sizes that shapes show too. A vocabulary of -1 leaves it to the tokenizer.
Status check_shown(const nlohmann::json& params, const Catalog& catalog) {
  const auto check = [&](const char* key, std::int64_t shown, std::string_view by) -> Status {
    const bool is_said = params.contains(key) && params[key].is_number_integer();
    if (!is_said || params[key] == shown || params[key] == -1) return {};
    return fail(Code::kConfigMissing,
                "{}: found {} = {}, expected {} as {} shows; give the model's config.json with "
                "--hf-config",
                kParams, key, params[key].dump(), shown, by);
  };
  if (const TensorDesc* const table = desc_of(catalog, "tok_embeddings.weight")) {
    if (table->shape.size() != 2) return {};
    SW_TRY(check("vocab_size", table->shape[0], table->name));
    SW_TRY(check("dim", table->shape[1], table->name));
  }
  std::int64_t layers = 0;
  while (desc_of(catalog, fmt::format("layers.{}.attention.wq.weight", layers)) != nullptr) {
    ++layers;
  }
  if (layers == 0) return {};
  return check("n_layers", layers, fmt::format("layers.{}.attention.wq.weight", layers - 1));
}

}  // namespace

Result<std::string> config_from_params(std::string_view params, const Catalog& catalog,
                                       Notes& notes) {
  const auto json = SW_TRY(parse_json(params, kParams));
  if (!json.is_object()) return fail(Code::kJsonCorrupt, "{}: it is no object", kParams);
  SW_TRY(refuse_unread(json));
  SW_TRY(check_shown(json, catalog));
  const std::int64_t heads = SW_TRY(whole_number(json, "n_heads"));
  const double theta = SW_TRY(real_number(json, "rope_theta", 10000.0));
  constexpr double kThetaOfLlama3 = 500000.0;
  const TensorDesc* const head = desc_of(catalog, "output.weight");
  const std::int64_t width = SW_TRY(whole_number(json, "dim"));
  nlohmann::ordered_json config = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"hidden_size", width},
      {"intermediate_size", SW_TRY(rows_of_tensor(catalog, "layers.0.feed_forward.w1.weight"))},
      {"num_hidden_layers", SW_TRY(whole_number(json, "n_layers"))},
      {"num_attention_heads", heads},
      {"num_key_value_heads",
       is_given(json, "n_kv_heads") ? SW_TRY(whole_number(json, "n_kv_heads")) : heads},
      {"vocab_size", SW_TRY(rows_of_tensor(catalog, "tok_embeddings.weight"))},
      {"rms_norm_eps", SW_TRY(real_number(json, "norm_eps", 1e-5))},
      {"rope_theta", theta},
      {"max_position_embeddings", theta == kThetaOfLlama3 ? 8192 : 4096},
      {"hidden_act", "silu"},
      {"tie_word_embeddings", head == nullptr},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"torch_dtype", torch_name(desc_of(catalog, "tok_embeddings.weight")->dtype)}};
  if (is_given(json, "head_dim")) {
    const std::int64_t head_dim = SW_TRY(whole_number(json, "head_dim"));
    if (checked_mul(head_dim, heads) != width) config["head_dim"] = head_dim;
  }
  notes.push_back(translated(
      "config.json is written from {}; max_position_embeddings is guessed; --hf-config settles it",
      kParams));
  constexpr int kIndent = 2;
  return config.dump(kIndent) + "\n";
}

std::optional<ToldHeads> told_heads(std::string_view settings) {
  const auto json = parse_json(settings, kParams);
  if (!json || !json->is_object()) return std::nullopt;
  for (const char* const key : {"n_heads", "num_attention_heads"}) {
    const auto heads = whole_number(*json, key);
    if (!heads || *heads <= 0) continue;
    const auto size = whole_number(*json, "head_dim");
    return ToldHeads{*heads, size ? std::optional(*size) : std::nullopt};
  }
  return std::nullopt;
}

std::optional<std::int64_t> ToldHeads::rows_in(std::int64_t width) const {
  const auto rows = size ? checked_mul(count, *size) : width;
  return rows && *rows > 0 ? rows : std::nullopt;
}

std::optional<std::int64_t> ToldHeads::size_in(std::int64_t width) const {
  if (size) return size;
  return width % count == 0 ? std::optional(width / count) : std::nullopt;
}

}  // namespace shardwright
