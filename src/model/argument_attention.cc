// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/translated.h"
#include "model/argument_facts.h"

namespace shardwright {
namespace {

using Layer = LanguageTensors::Layer;
using Number = std::optional<std::int64_t>;

const TensorDesc* matrix(const Layer& layer, std::string_view name) {
  const auto found = layer.find(name);
  return found == layer.end() || found->second->shape.size() != 2 ? nullptr : found->second;
}

constexpr std::string_view kHeadsOfLayers = "num_attention_heads_per_layer";

std::int64_t rows_of(const TensorDesc* tensor) { return tensor->shape[0]; }
std::int64_t columns_of(const TensorDesc* tensor) { return tensor->shape[1]; }

// Attention of heads that share keys and values in groups.
class GroupedAttention {
 public:
  GroupedAttention(Number hidden, StatedArguments& stated) : stated_(stated) {
    heads_ = stated.number({"num_attention_heads"});
    channels_ = stated.number({"kv_channels"});
    if (!channels_ && heads_ && hidden && *heads_ > 0) channels_ = *hidden / *heads_;
    is_grouped_ = stated.flag("group_query_attention");
    groups_ = stated.number({"num_query_groups"});
    const bool is_told_none = !groups_ && stated.named({"num_query_groups"});
    if (is_grouped_ == false || is_told_none) groups_ = heads_;
    is_gated_ = stated.flag("attention_output_gate");
    sliding_heads_ = stated.number({"sliding_attention_setting.num_attention_heads"});
    if (const ArgValue* const each = stated.find(kHeadsOfLayers)) {
      heads_of_layers_ = std::get_if<std::vector<std::int64_t>>(each);
    }
  }

  void check(std::int64_t number, const Layer& layer) {
    const TensorDesc* const projection = matrix(layer, "self_attention.linear_proj.weight");
    const TensorDesc* const fused = matrix(layer, "self_attention.linear_qkv.weight");
    if (projection == nullptr || fused == nullptr || !heads_ || !channels_) return;
    // Step 3.5 has layers with heads of their own.
    if (sliding_heads_ && *sliding_heads_ * *channels_ == columns_of(projection)) return;
    check_channels(layer, columns_of(projection));
    if (heads_of_layers_ != nullptr) {
      check_own_heads(number, *projection);
      return;
    }
    stated_.hold("num_attention_heads");
    stated_.hold("kv_channels");
    if (*heads_ * *channels_ != columns_of(projection)) {
      tell_heads(*projection);
      return;
    }
    if (groups_) check_groups(*fused);
  }

 private:
  // A norm of each head has its channels; a norm of all heads has all of theirs.
  void check_channels(const Layer& layer, std::int64_t all) {
    const auto norm = layer.find("self_attention.q_layernorm.weight");
    if (norm == layer.end() || norm->second->shape.size() != 1) return;
    const std::int64_t channels = norm->second->shape[0];
    if (channels != all) stated_.expect("kv_channels", channels_, channels, *norm->second);
  }

  // Laguna's list has those of each layer.
  void check_own_heads(std::int64_t number, const TensorDesc& projection) {
    stated_.hold(kHeadsOfLayers);
    const auto at = static_cast<std::size_t>(number);
    const Number own = at < heads_of_layers_->size() ? Number((*heads_of_layers_)[at]) : Number();
    if (own && *own > 0 && columns_of(&projection) % *own == 0 &&
        columns_of(&projection) / *own == *channels_) {
      return;
    }
    stated_.contradict(kHeadsOfLayers,
                       translated("{} has {} columns, for {} heads", shown_by(projection),
                                  columns_of(&projection), own.value_or(0)));
  }

  void tell_heads(const TensorDesc& projection) {
    const std::int64_t all = columns_of(&projection);
    const bool is_whole = *channels_ > 0 && all % *channels_ == 0;
    if (stated_.find("kv_channels") == nullptr || is_whole) {
      const std::string heads =
          is_whole ? translated("{} heads of {}", all / *channels_, *channels_) : "others";
      stated_.contradict("num_attention_heads",
                         fmt::format("{} shows {}", shown_by(projection), heads));
    } else {
      stated_.contradict("kv_channels", translated("{} has {} columns, for {} heads",
                                                   shown_by(projection), all, *heads_));
    }
  }

  void check_groups(const TensorDesc& fused) {
    if (is_grouped_) stated_.hold("group_query_attention");
    if (is_grouped_ != false) stated_.hold("num_query_groups");
    if (is_gated_) stated_.hold("attention_output_gate");
    const auto rows = [&](bool is_gated) {
      return (*heads_ * (is_gated ? 2 : 1) + 2 * *groups_) * *channels_;
    };
    if (rows_of(&fused) == rows(is_gated_.value_or(false))) return;
    if (!is_gated_ && rows_of(&fused) == rows(true)) return;  // an argument of newer runs
    if (is_gated_ && rows_of(&fused) == rows(!*is_gated_)) {
      stated_.contradict("attention_output_gate",
                         shown_by(fused) + (*is_gated_ ? " has no gate" : " has one"));
      return;
    }
    const std::int64_t queries = *heads_ * *channels_ * (is_gated_.value_or(false) ? 2 : 1);
    const std::int64_t rest = rows_of(&fused) - queries;
    const bool is_whole = *channels_ > 0 && rest > 0 && rest % (2 * *channels_) == 0;
    const std::string shown =
        is_whole ? fmt::format("{} shows {}", shown_by(fused), rest / (2 * *channels_))
                 : translated("{} has not the rows for it", shown_by(fused));
    const bool is_flag = is_grouped_ == false || stated_.find("num_query_groups") == nullptr;
    stated_.contradict(is_flag ? "group_query_attention" : "num_query_groups", shown);
  }

  StatedArguments& stated_;
  Number heads_;
  Number channels_;
  Number groups_;
  Number sliding_heads_;
  const std::vector<std::int64_t>* heads_of_layers_ = nullptr;
  std::optional<bool> is_grouped_;
  std::optional<bool> is_gated_;
};

// Layers with a sliding window may have key-value heads of their own; heads of values then have
// their own width too (MiMo-V2-Flash).
class WindowedAttention {
 public:
  explicit WindowedAttention(StatedArguments& stated) : stated_(stated) {
    heads_ = stated.number({"num_attention_heads"});
    channels_ = stated.number({"kv_channels"});
    values_ = stated.number({"v_head_dim"});
    groups_ = stated.number({"num_query_groups"});
    windowed_ = stated.number({"swa_num_query_groups"});
  }

  [[nodiscard]] bool is_told() const { return windowed_.has_value(); }

  void check(const Layer& layer) {
    const TensorDesc* const projection = matrix(layer, "self_attention.linear_proj.weight");
    const TensorDesc* const fused = matrix(layer, "self_attention.linear_qkv.weight");
    if (projection == nullptr || fused == nullptr || !heads_ || !channels_ || !values_ ||
        !groups_) {
      return;
    }
    for (const std::string_view name : {"num_attention_heads", "kv_channels", "v_head_dim",
                                        "num_query_groups", "swa_num_query_groups"}) {
      stated_.hold(name);
    }
    if (columns_of(projection) != *heads_ * *values_) {
      stated_.contradict("v_head_dim",
                         translated("{} has {} columns, for {} heads", shown_by(*projection),
                                    columns_of(projection), *heads_));
      return;
    }
    // Layers with sinks are those with a window.
    const bool is_windowed = layer.contains("self_attention.core_attention.softmax_offset");
    const std::int64_t groups = is_windowed ? *windowed_ : *groups_;
    if (rows_of(fused) == *heads_ * *channels_ + groups * (*channels_ + *values_)) return;
    stated_.contradict(is_windowed ? "swa_num_query_groups" : "num_query_groups",
                       shown_by(*fused) + translated(" has not the rows for it"));
  }

 private:
  StatedArguments& stated_;
  Number heads_;
  Number channels_;
  Number values_;
  Number groups_;
  Number windowed_;
};

// Multi-latent attention, by the tensors that it has instead of `linear_qkv`.
class LatentAttention {
 public:
  explicit LatentAttention(StatedArguments& stated)
      : stated_(stated), names_query_rank_(stated.named({"q_lora_rank"})) {}

  void check(const Layer& layer) {
    const TensorDesc* const down = matrix(layer, "self_attention.linear_kv_down_proj.weight");
    const TensorDesc* const up = matrix(layer, "self_attention.linear_kv_up_proj.weight");
    if (down == nullptr && up == nullptr) return;
    const Number rank = stated_.number({"kv_lora_rank"});
    const Number positions = stated_.number({"qk_pos_emb_head_dim"});
    if (up != nullptr) stated_.expect("kv_lora_rank", rank, columns_of(up), *up);
    if (up != nullptr && down != nullptr) {
      stated_.expect("qk_pos_emb_head_dim", positions, rows_of(down) - columns_of(up), *down);
    }
    check_query_rank(layer);
    if (up != nullptr) check_heads(layer, *up, positions);
  }

 private:
  void check_query_rank(const Layer& layer) {
    const TensorDesc* const down = matrix(layer, "self_attention.linear_q_down_proj.weight");
    const TensorDesc* const whole = matrix(layer, "self_attention.linear_q_proj.weight");
    const Number rank = stated_.number({"q_lora_rank"});
    if (down != nullptr || whole != nullptr) stated_.hold("q_lora_rank");
    if (down != nullptr) {
      stated_.expect("q_lora_rank", rank, rows_of(down), *down);
      if (names_query_rank_ && !rank) {
        stated_.contradict("q_lora_rank", translated("{} is there", shown_by(*down)));
      }
    } else if (whole != nullptr && rank) {
      stated_.contradict("q_lora_rank",
                         translated("{} projects queries at once", shown_by(*whole)));
    }
  }

  void check_heads(const Layer& layer, const TensorDesc& up, Number positions) {
    const TensorDesc* queries = matrix(layer, "self_attention.linear_q_up_proj.weight");
    if (queries == nullptr) queries = matrix(layer, "self_attention.linear_q_proj.weight");
    const TensorDesc* const projection = matrix(layer, "self_attention.linear_proj.weight");
    const Number heads = stated_.number({"num_attention_heads"});
    const Number values = stated_.number({"v_head_dim"});
    const Number plain = stated_.number({"qk_head_dim"});
    if (queries == nullptr || projection == nullptr || !heads || !values || !plain || !positions) {
      return;
    }
    for (const std::string_view name : {"num_attention_heads", "v_head_dim", "qk_head_dim"}) {
      stated_.hold(name);
    }
    // As many heads as all three agree about, if they do: then only their number is wrong.
    const std::int64_t shown = *values > 0 ? columns_of(projection) / *values : 0;
    const bool agree = columns_of(projection) == shown * *values &&
                       rows_of(&up) == shown * (*plain + *values) &&
                       rows_of(queries) == shown * (*plain + *positions);
    if (agree) {
      stated_.expect("num_attention_heads", heads, shown, *projection);
      return;
    }
    if (columns_of(projection) != *heads * *values) {
      stated_.contradict("v_head_dim",
                         translated("{} has {} columns, for {} heads", shown_by(*projection),
                                    columns_of(projection), *heads));
    }
    if (rows_of(queries) != *heads * (*plain + *positions)) {
      stated_.contradict("qk_head_dim",
                         translated("{} has {} rows, for {} heads with {} positional channels",
                                    shown_by(*queries), rows_of(queries), *heads, *positions));
    }
    if (rows_of(&up) != *heads * (*plain + *values)) {
      stated_.contradict("qk_head_dim",
                         translated("{} has {} rows, for {} heads with {} channels of values",
                                    shown_by(up), rows_of(&up), *heads, *values));
    }
  }

  StatedArguments& stated_;
  std::optional<std::string_view> names_query_rank_;
};

void check_latent_flag(const LanguageTensors& model, StatedArguments& stated) {
  const TensorDesc* const latent = model.in_some_layer(
      {"self_attention.linear_kv_down_proj.weight", "self_attention.linear_kv_up_proj.weight"});
  const TensorDesc* const plain = model.in_some_layer({"self_attention.linear_qkv.weight"});
  const std::optional<bool> is_latent = stated.flag("multi_latent_attention");
  if (is_latent && (latent != nullptr || plain != nullptr)) stated.hold("multi_latent_attention");
  if (is_latent == false && latent != nullptr) {
    stated.contradict("multi_latent_attention", shown_by(*latent) + translated(" is there"));
  } else if (is_latent == true && latent == nullptr && plain != nullptr) {
    stated.contradict("multi_latent_attention", shown_by(*plain) + translated(" is there"));
  }
}

void check_norms(const LanguageTensors& model, StatedArguments& stated) {
  const std::optional<bool> has_norms = stated.flag("qk_layernorm");
  if (!has_norms) return;
  const TensorDesc* const attention = model.in_some_layer(
      {"self_attention.linear_qkv.weight", "self_attention.linear_kv_up_proj.weight"});
  const TensorDesc* const norm = model.in_some_layer(
      {"self_attention.q_layernorm.weight", "self_attention.k_layernorm.weight",
       "self_attention.kv_layernorm.weight", "self_attention.linear_q_up_proj.layer_norm_weight",
       "self_attention.linear_kv_up_proj.layer_norm_weight"});
  if (norm != nullptr || attention != nullptr) stated.hold("qk_layernorm");
  if (!*has_norms && norm != nullptr) {
    stated.contradict("qk_layernorm", shown_by(*norm) + translated(" is there"));
  } else if (*has_norms && norm == nullptr && attention != nullptr) {
    stated.contradict("qk_layernorm", "no layer has norms of queries and keys");
  }
}

void check_attention_bias(const LanguageTensors& model, StatedArguments& stated) {
  const std::optional<bool> of_all = stated.flag("add_bias_linear");
  const std::optional<bool> of_fused = stated.flag("add_qkv_bias");
  const TensorDesc* const weight = model.in_some_layer({"self_attention.linear_qkv.weight"});
  const TensorDesc* const bias = model.in_some_layer({"self_attention.linear_qkv.bias"});
  if (weight == nullptr || !of_all) return;
  stated.hold("add_bias_linear");
  if (of_fused) stated.hold("add_qkv_bias");
  if (of_fused == false && of_all == false && bias != nullptr) {
    stated.contradict("add_qkv_bias", shown_by(*bias) + translated(" is there"));
  } else if (bias == nullptr && of_fused == true) {
    stated.contradict("add_qkv_bias", "no layer has such a bias");
  } else if (bias == nullptr && of_all == true) {
    stated.contradict("add_bias_linear", "no layer's linear_qkv has a bias");
  }
}

}  // namespace

void check_attention(const LanguageTensors& model, StatedArguments& stated) {
  check_latent_flag(model, stated);
  check_norms(model, stated);
  check_attention_bias(model, stated);
  if (is_heterogeneous(stated)) return;
  const Number heads = stated.number({"num_attention_heads"});
  const Number groups = stated.number({"num_query_groups"});
  const bool is_grouped = stated.flag("group_query_attention").value_or(groups.has_value());
  const TensorDesc* const fused = model.in_some_layer({"self_attention.linear_qkv.weight"});
  const bool is_told_by_layer = stated.find(kHeadsOfLayers) != nullptr;
  if (fused != nullptr && is_grouped && heads && groups && !is_told_by_layer &&
      (*groups == 0 || *heads % *groups != 0)) {
    stated.contradict("num_query_groups",
                      translated("it must divide num_attention_heads, {}", *heads));
  }
  GroupedAttention grouped(stated.number({"hidden_size"}), stated);
  WindowedAttention windowed(stated);
  LatentAttention latent(stated);
  for (const auto& [number, layer] : model.layers()) {
    if (windowed.is_told()) {
      windowed.check(layer);
    } else {
      grouped.check(number, layer);
    }
    latent.check(layer);
  }
}

}  // namespace shardwright
