// SPDX-License-Identifier: Apache-2.0
#include "canonical/tied_head.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "codec/json_text.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTied = "tie_word_embeddings";
constexpr std::array kEmbeddings = {
    std::string_view("embed_tokens.weight"), std::string_view("wte.weight"),
    std::string_view("word_embeddings.weight"), std::string_view("embed_in.weight")};
constexpr std::array kHeads = {std::string_view("lm_head.weight"),
                               std::string_view("embed_out.weight")};
constexpr std::array kHeadBiases = {std::string_view("lm_head.bias"),
                                    std::string_view("embed_out.bias")};

bool ends_in(std::string_view name, std::string_view end) {
  return name == end || (name.ends_with(end) && name[name.size() - end.size() - 1] == '.');
}

bool ends_in_one(std::string_view name, const auto& ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return ends_in(name, end); });
}

std::vector<std::string> names_that_end(std::span<const TensorDesc> model, const auto& ends) {
  std::vector<std::string> names;
  for (const TensorDesc& desc : model) {
    if (ends_in_one(desc.name, ends)) names.push_back(desc.name);
  }
  return names;
}

std::optional<std::int64_t> columns_of(std::span<const TensorDesc> model, const auto& ends) {
  const auto found = std::ranges::find_if(model, [&](const TensorDesc& desc) {
    return ends_in_one(desc.name, ends) && desc.shape.size() == 2;
  });
  return found == model.end() ? std::nullopt : std::optional(found->shape[1]);
}

// What the config says, at its top or of its language model.
std::optional<bool> said_of_tying(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  const auto own = config.find(kTied);
  if (own != config.end() && own->is_boolean()) return own->get<bool>();
  const auto text = config.find("text_config");
  return text == config.end() ? std::nullopt : said_of_tying(*text);
}

// Configs leave out what their class has by default, so that nothing is said: a model that
// generates text and has no head in its files has the embedding for one.
bool generates_text(const Json& config) {
  const auto names = config.is_object() ? config.find("architectures") : config.end();
  if (names == config.end() || !names->is_array() || names->empty()) return false;
  const Json& name = names->front();
  if (!name.is_string()) return false;
  const std::string text = name.get<std::string>();
  return text.ends_with("ForCausalLM") || text.ends_with("ForConditionalGeneration") ||
         text.ends_with("LMHeadModel");
}

}  // namespace

Result<std::optional<TiedHead>> find_tied_head(std::string_view config_json,
                                               std::span<const TensorDesc> model) {
  const Json config = SW_TRY(parse_ordered_json(config_json, "config.json"));
  const std::vector<std::string> embeddings = names_that_end(model, kEmbeddings);
  const std::vector<std::string> heads = names_that_end(model, kHeads);
  const bool is_tied = said_of_tying(config).value_or(heads.empty() && generates_text(config));
  if (!is_tied || embeddings.size() != 1 || heads.size() > 1) return std::optional<TiedHead>();
  const bool is_stored = !heads.empty();
  return TiedHead{embeddings[0], is_stored ? heads[0] : std::string(kHeads[0]), is_stored};
}

bool has_head_alone(std::string_view config_json, std::span<const TensorDesc> model) {
  if (names_that_end(model, kHeads).size() != 1 || !names_that_end(model, kEmbeddings).empty()) {
    return false;
  }
  const Result<Json> config = parse_ordered_json(config_json, "config.json");
  return config && said_of_tying(*config).value_or(true);
}

std::optional<TiedHead> missing_head(std::span<const TensorDesc> model) {
  constexpr std::string_view kPlainEmbedding = "embed.weight";  // DeepSeek's own
  constexpr std::string_view kPlainHead = "head.weight";
  const auto has = [&](std::string_view name) {
    return std::ranges::find(model, name, &TensorDesc::name) != model.end();
  };
  if (has(kPlainEmbedding)) {
    if (has(kPlainHead)) return std::nullopt;
    return TiedHead{std::string(kPlainEmbedding), std::string(kPlainHead)};
  }
  const std::vector<std::string> embeddings = names_that_end(model, kEmbeddings);
  if (embeddings.size() != 1 || !names_that_end(model, kHeads).empty()) return std::nullopt;
  const bool is_of_neox = ends_in(embeddings[0], "embed_in.weight");
  return TiedHead{embeddings[0], std::string(kHeads[is_of_neox ? 1 : 0])};
}

std::vector<std::string> output_layer_names(std::span<const TensorDesc> model) {
  std::vector<std::string> names = names_that_end(model, kHeads);
  for (std::string& bias : names_that_end(model, kHeadBiases)) names.push_back(std::move(bias));
  return names;
}

std::optional<std::int64_t> output_layer_inputs(std::span<const TensorDesc> model) {
  const std::optional<std::int64_t> of_head = columns_of(model, kHeads);
  return of_head ? of_head : columns_of(model, kEmbeddings);
}

Result<std::string> untied_config(const std::string& config) {
  Json document = SW_TRY(parse_ordered_json(config, "config.json"));
  document[kTied] = false;
  const auto text = document.find("text_config");
  if (text != document.end() && text->is_object() && text->contains(kTied)) {
    (*text)[kTied] = false;
  }
  return document.dump(2) + "\n";
}

void add_tied_head(const TiedHead& head, Catalog& catalog) {
  const auto embedding = std::ranges::find_if(catalog.tensors, [&](const StoredTensor& tensor) {
    return tensor.desc.name == head.embedding;
  });
  if (embedding == catalog.tensors.end()) return;
  StoredTensor copy = *embedding;
  copy.desc.name = head.head;
  catalog.tensors.push_back(std::move(copy));
}

}  // namespace shardwright
