// SPDX-License-Identifier: Apache-2.0
#include "model/config_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/translated.h"
#include "codec/json_text.h"
#include "model/quantisation_config.h"
#include "model/tower_check.h"

namespace shardwright {
namespace {

using Number = std::optional<std::int64_t>;

// No size of a model is larger; products of a few of them stay within 64 bits.
constexpr std::int64_t kMostConfigSize = std::int64_t{1} << 30;

// Gemma 3n has tokens of pictures and of sound, which its towers embed.
bool is_of_a_tower(std::string_view name) {
  return name.find("embed_vision.") != std::string_view::npos ||
         name.find("embed_audio.") != std::string_view::npos;
}

// Its rows count places, its columns are whatever is added there.
bool is_of_positions(std::string_view name) {
  return name.find("position") != std::string_view::npos;
}

// The layers of a model that are numbered beside its embedding.
class NumberedLayers {
 public:
  explicit NumberedLayers(std::span<const TensorDesc> hf) {
    for (const TensorDesc& tensor : hf) {
      if (tensor.name.starts_with("talker.")) continue;  // what speaks beside a thinker
      if (is_of_a_tower(tensor.name) || is_of_positions(tensor.name)) continue;
      for (const std::string_view name : kEmbeddings) {
        if (!tensor.name.ends_with(name) || tensor.shape.size() != 2) continue;
        const std::size_t at = tensor.name.size() - name.size();
        if (at > 0 && tensor.name[at - 1] != '.') continue;
        // The model's own is the outermost; prediction layers have copies.
        if (embedding_ != nullptr && prefix_.size() <= at) continue;
        embedding_ = &tensor;
        prefix_ = std::string_view(tensor.name).substr(0, at);
      }
    }
    if (embedding_ != nullptr) list(hf);
  }

  [[nodiscard]] const TensorDesc* embedding() const { return embedding_; }
  [[nodiscard]] const std::set<std::int64_t>& numbers() const { return numbers_; }

  // Lengths of one axis of the layers' tensors of that name.
  [[nodiscard]] std::set<std::int64_t> lengths(std::string_view name, int axis) const {
    std::set<std::int64_t> lengths;
    for (const auto& [rest, tensor] : tensors_) {
      if (rest == name && tensor->shape.size() == 2) lengths.insert(tensor->shape[axis]);
    }
    return lengths;
  }

 private:
  static constexpr std::array<std::string_view, 3> kEmbeddings = {
      "embed_tokens.weight", "embeddings.weight", "embedding.weight"};

  void list(std::span<const TensorDesc> hf) {
    const std::string layers = std::string(prefix_) + "layers.";
    for (const TensorDesc& tensor : hf) {
      if (!tensor.name.starts_with(layers)) continue;
      const char* const end = tensor.name.data() + tensor.name.size();
      std::int64_t number = 0;
      const auto [stop, error] = std::from_chars(tensor.name.data() + layers.size(), end, number);
      if (error != std::errc() || stop == end || *stop != '.') continue;
      numbers_.insert(number);
      tensors_.emplace_back(std::string_view(stop + 1, end), &tensor);
    }
  }

  const TensorDesc* embedding_ = nullptr;
  std::string_view prefix_;
  std::set<std::int64_t> numbers_;
  std::vector<std::pair<std::string_view, const TensorDesc*>> tensors_;
};

class ConfigCheck {
 public:
  ConfigCheck(const HfConfig& config, std::span<const TensorDesc> hf)
      : values_(config.values), layers_(hf) {
    for (const auto& [path, value] : values_) {
      for (const std::string_view section :
           {"text_config.", "llm_config.", "language_config.", "thinker_config.text_config."}) {
        if (path.starts_with(section)) section_ = section;
      }
    }
  }

  std::vector<Contradiction> run() {
    for (const std::string_view key :
         {"num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads"}) {
      check_size(key, 1);
    }
    for (const std::string_view key : {"intermediate_size", "head_dim", "num_key_value_heads"}) {
      check_size(key, 0);
    }
    check_heads();
    if (layers_.embedding() != nullptr) {
      check_embedding(*layers_.embedding());
      check_layers();
      check_widths();
    }
    return std::move(found_);
  }

  // Of no experts there may be any number to choose.
  std::vector<Contradiction> choices_of_experts() {
    Number experts;
    for (const std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts",
                                       "moe_num_experts", "num_routed_experts"}) {
      if (const Number count = stated(key)) experts = std::max(experts.value_or(0), *count);
    }
    if (experts.value_or(0) == 0) return {};
    for (const std::string_view key :
         {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts"}) {
      const Number chosen = stated(key);
      if (!chosen || (*chosen > 0 && *chosen <= *experts)) continue;
      contradict(key, translated("each token goes to some of {} experts", *experts));
    }
    return std::move(found_);
  }

 private:
  // The key as the file has it: in the language model's section, or at the top.
  [[nodiscard]] std::string path_of(std::string_view key) const {
    std::string inner = section_ + std::string(key);
    return find_set(values_, inner) != nullptr ? inner : std::string(key);
  }

  [[nodiscard]] Number stated(std::string_view key) const {
    const ArgValue* const value = find_set(values_, path_of(key));
    const auto* whole = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    return whole == nullptr || *whole < 0 || *whole > kMostConfigSize ? Number() : *whole;
  }

  void contradict(std::string_view key, std::string_view shown) {
    const std::string path = path_of(key);
    if (std::ranges::find(found_, path, &Contradiction::argument) != found_.end()) return;
    const auto value = values_.find(path);
    const std::string text = value == values_.end() ? "not set" : to_string(value->second);
    found_.push_back({path, translated("config.json: {} is {}, but {}", path, text, shown)});
  }

  void check_size(std::string_view key, std::int64_t least) {
    const ArgValue* const value = find_set(values_, path_of(key));
    const auto* whole = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (whole == nullptr || (*whole >= least && *whole <= kMostConfigSize)) return;
    contradict(key, "no model has such a size");
  }

  // Latent attention and linear attention count other heads; Laguna's layers have each their own.
  [[nodiscard]] bool has_plain_heads() const {
    return find_set(values_, path_of("kv_lora_rank")) == nullptr &&
           find_set(values_, path_of("num_attention_heads_per_layer")) == nullptr;
  }

  // By layer_types, or by numbers of which 1 is a window (MiMo's own files).
  [[nodiscard]] bool has_windows_alone() const {
    if (const ArgValue* const types = find_set(values_, path_of("layer_types"))) {
      const auto* list = std::get_if<std::vector<std::string>>(types);
      return list != nullptr && std::ranges::all_of(*list, [](const std::string& type) {
               return type == "sliding_attention";
             });
    }
    const ArgValue* const flags = find_set(values_, path_of("hybrid_layer_pattern"));
    const auto* list = flags == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(flags);
    return list != nullptr &&
           std::ranges::all_of(*list, [](std::int64_t flag) { return flag == 1; });
  }

  // What counts the groups of heads, of those layers that there are.
  [[nodiscard]] std::string_view key_of_groups() const {
    constexpr std::string_view kOfWindows = "swa_num_key_value_heads";
    if (stated(kOfWindows) && has_windows_alone()) return kOfWindows;
    return stated("num_attention_groups") ? "num_attention_groups" : "num_key_value_heads";
  }

  void check_heads() {
    const Number heads = stated("num_attention_heads");
    const Number groups = stated("num_key_value_heads");
    const Number hidden = stated("hidden_size");
    if (!heads || *heads == 0 || !has_plain_heads()) return;
    if (groups && (*groups == 0 || *heads % *groups != 0)) {
      contradict("num_key_value_heads",
                 translated("it must divide num_attention_heads, {}", *heads));
    }
    if (!stated("head_dim") && hidden && *hidden % *heads != 0) {
      contradict("num_attention_heads", translated("it must divide hidden_size, {}", *hidden));
    }
  }

  void check_embedding(const TensorDesc& table) {
    const std::string shown = translated("tensor {} {} shows ", table.name, to_string(table.shape));
    const Number tokens = stated("vocab_size");
    const Number hidden = stated("hidden_size");
    // More rows are some architectures' own (rows for images, padding): their mapping knows.
    if (tokens && *tokens > table.shape[0]) {
      contradict("vocab_size", shown + std::to_string(table.shape[0]));
    }
    // Some models embed in fewer channels and widen them.
    const auto widths = layers_.lengths("self_attn.q_proj.weight", 1);
    const bool is_embedded_apart = !widths.empty() && !widths.contains(table.shape[1]);
    if (hidden && *hidden != table.shape[1] && !is_embedded_apart) {
      contradict("hidden_size", shown + std::to_string(table.shape[1]));
    }
  }

  // Prediction layers are numbered on behind the others.
  void check_layers() {
    const Number layers = stated("num_hidden_layers");
    const std::set<std::int64_t>& numbers = layers_.numbers();
    if (!layers || numbers.empty()) return;
    const std::int64_t count = *numbers.rbegin() + 1;
    std::int64_t most = *layers;
    for (const std::string_view key :
         {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}) {
      most = std::max(most, *layers + stated(key).value_or(0));
    }
    if (count >= *layers && count <= most) return;
    // LongCat-Flash has two attentions in a layer, and transformers 4 saves how many those are.
    if (*layers == 2 * count && stated("num_layers") == count) return;
    contradict("num_hidden_layers", translated("the tensors are of {} layers", count));
  }

  void check_widths() {
    const auto check = [&](std::string_view key, std::string_view tensor, int axis, Number a,
                           Number b) {
      const std::set<std::int64_t> shown = layers_.lengths(tensor, axis);
      if (shown.empty() || !a || shown.contains(*a) || (b && shown.contains(*b))) return;
      contradict(key, translated("no layer's {} shows it", tensor));
    };
    // Where dense layers have a key of their own, the usual one is about experts.
    std::string_view width = "intermediate_size";
    for (const std::string_view own :
         {"dense_intermediate_size", "prefix_dense_intermediate_size"}) {
      if (stated(own)) width = own;
    }
    const Number ffn = stated(width);
    check(width, "mlp.down_proj.weight", 1, ffn, ffn ? Number(*ffn * 2) : ffn);
    const Number heads = stated("num_attention_heads");
    const Number hidden = stated("hidden_size");
    Number channels = stated("head_dim");
    if (!channels && heads && hidden && *heads > 0) channels = *hidden / *heads;
    if (!heads || !channels || !has_plain_heads()) return;
    // Queries may come with as many gates.
    const std::int64_t rows = *heads * *channels;
    check("num_attention_heads", "self_attn.q_proj.weight", 0, rows, rows * 2);
    // Where a search has shaped the layers (Llama-Nemotron), each has groups of its own.
    if (find_set(values_, path_of("block_configs")) != nullptr) return;
    const std::string_view key = key_of_groups();
    check(key, "self_attn.k_proj.weight", 0, stated(key).value_or(*heads) * *channels,
          std::nullopt);
  }

  const Arguments& values_;
  std::string section_;
  NumberedLayers layers_;
  std::vector<Contradiction> found_;
};

}  // namespace

std::vector<Contradiction> contradicted_config(const HfConfig& config,
                                               std::span<const TensorDesc> hf) {
  std::vector<Contradiction> found = ConfigCheck(config, hf).run();
  std::ranges::move(contradicted_towers(config, hf), std::back_inserter(found));
  return found;
}

std::vector<Contradiction> impossible_choices(const HfConfig& config) {
  return ConfigCheck(config, {}).choices_of_experts();
}

std::string contradicted_dtype(std::string_view config_json, std::span<const TensorDesc> hf) {
  const auto config = parse_json(config_json, "config.json");
  if (!config || !config->is_object()) return {};
  const char* const key = config->contains("torch_dtype") ? "torch_dtype" : "dtype";
  if (!config->contains(key) || !(*config)[key].is_string()) return {};
  const auto dtype = dtype_from_torch((*config)[key].get_ref<const std::string&>());
  if (!dtype) return {};
  const TensorDesc* other = nullptr;
  for (const TensorDesc& desc : hf) {
    const bool is_plain = is_castable_float(desc.dtype) || is_integer(desc.dtype);
    if (desc.dtype == *dtype || !is_plain) return {};
    if (is_castable_float(desc.dtype)) other = &desc;
  }
  if (other == nullptr) return {};
  return translated(
      "config.json: found dtype {}, expected that of some tensor, but none "
      "has it: {} is {}",
      torch_name(*dtype), other->name, torch_name(other->dtype));
}

std::string contradicted_quantisation(std::string_view config_json,
                                      std::span<const TensorDesc> hf) {
  const auto config = read_quantisation_config(config_json);
  const bool has_weights = config && !config->method.empty() && config->unsupported.empty() &&
                           (config->has_float8 || !config->packed.empty());
  const bool is_plain =
      std::ranges::all_of(hf, [](const TensorDesc& desc) { return is_castable_float(desc.dtype); });
  if (!has_weights || !is_plain || hf.empty()) return {};
  return translated(
      "config.json: quantization_config says that weights are quantised ({}), and no tensor is: "
      "loaders would miss their scales and begin with weights of no training; take "
      "quantization_config out",
      config->method);
}

}  // namespace shardwright
