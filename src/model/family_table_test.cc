// SPDX-License-Identifier: Apache-2.0
// docs/families.md is made of the mapping files and of what the tests cover; `./dev families`
// writes it anew.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "model/golden_family.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

void collect_rules(const std::vector<Item>& items, std::vector<const Rule*>& rules) {
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) rules.push_back(rule);
    if (const auto* section = std::get_if<Section>(&item.value)) {
      collect_rules(section->items, rules);
    }
    if (const auto* choice = std::get_if<Choice>(&item.value)) {
      for (const auto& option : choice->options) collect_rules(option, rules);
    }
  }
}

/// What the rules of a family say about its models.
class Traits {
 public:
  explicit Traits(const Mapping& mapping) : mapping_(mapping) {
    collect_rules(mapping.items, rules_);
    // The columns are about the language model.
    has_vision_ = std::erase_if(rules_, [](const Rule* rule) {
                    const std::string& name = rule->megatron[0].text();
                    return name.find("vision") != std::string::npos ||
                           name.find("visual") != std::string::npos ||
                           name.find("projector") != std::string::npos;
                  }) > 0;
  }

  [[nodiscard]] std::string attention() const {
    std::vector<std::string> words;
    if (has("q_conv1d")) words.emplace_back("delta attention");
    if (has("linear_kv_up_proj") || has("kv_b_proj") || has("linear_kv_proj")) {
      words.emplace_back("latent");
    }
    if (has("linear_qkv.weight")) words.emplace_back("grouped");
    if (has("self_attention.in_proj")) words.emplace_back("gated delta net");
    if (has("mixer.in_proj") || has("mixer.A_log")) words.emplace_back("Mamba");
    if (has("linear_qkv.bias")) words.emplace_back("biases");
    if (const Rule* norm = find("self_attention.q_layernorm"); norm != nullptr) {
      const bool whole = !norm->shape.empty() && norm->shape[0].text().find("heads") == 0;
      words.emplace_back(whole ? "norms over all heads" : "norms per head");
    }
    if (has("softmax_offset") || has("attn_sink")) words.emplace_back("sinks");
    if (has_window()) words.emplace_back("window");
    return fmt::format("{}", fmt::join(words, ", "));
  }

  [[nodiscard]] std::string mlp() const {
    std::vector<std::string> words;
    const Rule* first = find(".mlp.linear_fc1.weight");
    if (first == nullptr) first = find(".mlps.0.linear_fc1.weight");
    if (first != nullptr) {
      const bool gated = first->hf.size() == 2 ||
                         (!first->shape.empty() && first->shape[0].text().starts_with("2 *"));
      words.emplace_back(gated ? "gated" : "plain");
    }
    if (has("experts.experts")) words.emplace_back("experts");
    if (has("shared_experts")) words.emplace_back("shared experts");
    if (has("expert_bias")) words.emplace_back("expert bias");
    return fmt::format("{}", fmt::join(words, ", "));
  }

  [[nodiscard]] std::string norms() const {
    std::vector<std::string> words;
    if (has("layer_norm_weight") || has("input_layernorm")) words.emplace_back("before");
    if (has("post_layernorm")) words.emplace_back("behind");
    std::string text = fmt::format("{}", fmt::join(words, " and "));
    return has("layer_norm_bias") ? text + ", with bias" : text;
  }

  [[nodiscard]] std::string more() const {
    std::vector<std::string> words;
    if (has("mtp.")) words.emplace_back("MTP");
    if (has("dspark.")) words.emplace_back("drafts");
    if (has("position_embeddings")) words.emplace_back("learned positions");
    if (has_vision_) words.emplace_back("vision");
    if (!mapping_.inferred) words.emplace_back("needs config.json or `--family`");
    return fmt::format("{}", fmt::join(words, ", "));
  }

 private:
  [[nodiscard]] const Rule* find(std::string_view part) const {
    for (const Rule* rule : rules_) {
      for (const NameTemplate& name : rule->megatron) {
        if (name.text().find(part) != std::string::npos) return rule;
      }
    }
    return nullptr;
  }
  [[nodiscard]] bool has(std::string_view part) const { return find(part) != nullptr; }
  [[nodiscard]] bool has_window() const {
    return std::ranges::any_of(mapping_.config, [](const ConfigRule& rule) {
      return rule.kind == ConfigRule::Kind::kWindow;
    });
  }

  const Mapping& mapping_;
  std::vector<const Rule*> rules_;
  bool has_vision_ = false;
};

/// Where the tests mention a family: golden imports, and the Python tests by model type.
class Evidence {
 public:
  Evidence() {
    for (const std::string& folder : golden_folders()) {
      imports_.insert(load_golden(folder).mapping->family);
    }
    for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/interop"))) {
      const std::string name = entry.path().filename();
      if (name.starts_with("test_")) texts_[name] = read_file(entry.path());
    }
  }

  [[nodiscard]] bool has_import(const Mapping& mapping) const {
    return imports_.contains(mapping.family);
  }
  /// By the type that is the family's own: further ones are also those of others.
  [[nodiscard]] bool has_same_logits(const Mapping& mapping) const {
    Mapping own = mapping;
    own.model_types.resize(std::min<std::size_t>(1, own.model_types.size()));
    return is_in("test_same_outputs", own) || is_in("test_vision_outputs", own);
  }
  /// Whether a Python test whose name begins so has a model of the family.
  [[nodiscard]] bool is_in(std::string_view file, const Mapping& mapping) const {
    return std::ranges::any_of(texts_, [&](const auto& test) {
      const auto& [name, text] = test;
      // Of diffusers' models a test has the configuration by the class.
      const bool has_class = mapping.is_of_diffusers &&
                             text.contains(fmt::format("\"{}\": dict(", mapping.architectures[0]));
      return name.starts_with(file) &&
             (has_class || std::ranges::any_of(mapping.model_types, [&](const std::string& type) {
                return text.find(fmt::format("\"{}\",", type)) != std::string::npos;
              }));
    });
  }

 private:
  std::set<std::string> imports_;
  std::map<std::string, std::string> texts_;
};

constexpr std::string_view kHead = R"(# Model families

<!-- Made from models/*.json and the tests by `./dev families`; a test compares. -->

A family is a mapping file; `--map FILE` adds one or replaces one. What is lost or changed on the
way stands in [losses.md](losses.md).

* **Norms**: before or behind attention and MLP.
* **Import**: equal, bit by bit, to what Megatron-Bridge or mbridge made of the same files.
* **Round trip**: models that transformers made come back bit by bit, also with a config.json alone
  and from Megatron's arguments alone. Of those that transformers lacks (MiMo, InternLM,
  InternVLChatModel, LLaVA in its own code's names, LLaVA-OneVision 1.5 and 2, Kimi-VL, DeepSeek-MoE, DeepSeek-V4.1, Ling,
  Sarvam, LLaDA, MiniCPM, Nemotron Nano V2 VL and 3 Omni, Llama-Nemotron, Step 3.5's prediction layers, Kimi K3, Ovis
  2.5's visual tokenizer, Gemma 3n's towers) tensors of the published names come back. Flux and Wan are written by the tests
  themselves, with the names and shapes that both models of diffusers 0.42.1 had when they were compared.
* **Same logits**: Megatron-Core, built from the arguments written, computes what transformers does
  (of InternLM, what a Llama of the same weights does); where [no argument says](#what-no-argument-of-megatron-core-says)
  that norms follow, embeddings are scaled and the like, a test adds that to its modules. Of models that see or hear it is the
  language model, with text.

| Family | Architectures | Attention | MLP | Norms | More | Import | Round trip | Same logits |
|---|---|---|---|---|---|---|---|---|
)";

// The architectures that Megatron-Bridge registers, as of August 2026, and DeepSeek-V4.1's, which
// came later.
constexpr std::string_view kRegistry[] = {
    "BailingMoeV2ForCausalLM",
    "DeciLMForCausalLM",
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV41ForCausalLM",
    "DeepseekV4ForCausalLM",
    "Ernie4_5_MoeForCausalLM",
    "Ernie4_5_VLMoeForConditionalGeneration",
    "Exaone4ForCausalLM",
    "Exaone4_5_ForConditionalGeneration",
    "ExaoneMoeForCausalLM",
    "FalconH1ForCausalLM",
    "FluxTransformer2DModel",
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration",
    "GemmaForCausalLM",
    "Glm4MoeForCausalLM",
    "Glm4MoeLiteForCausalLM",
    "Glm4vMoeForConditionalGeneration",
    "GlmMoeDsaForCausalLM",
    "GptOssForCausalLM",
    "HYV3ForCausalLM",
    "KimiK25ForConditionalGeneration",
    "KimiK2ForCausalLM",
    "KimiK3ForConditionalGeneration",
    "LLaDAModelLM",
    "LlamaForCausalLM",
    "MiMoForCausalLM",
    "MiMoV2FlashForCausalLM",
    "MiniMaxM2ForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration",
    "Mistral3ForConditionalGeneration",
    "MistralForCausalLM",
    "NemotronForCausalLM",
    "NemotronHForCausalLM",
    "NemotronH_Nano_Omni_Reasoning_V3",
    "NemotronH_Nano_VL_V2",
    "NemotronH_Super_Omni_Reasoning_V3",
    "OlmoeForCausalLM",
    "Qwen2AudioForConditionalGeneration",
    "Qwen2ForCausalLM",
    "Qwen2_5OmniForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3ASRForConditionalGeneration",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3NextForCausalLM",
    "Qwen3OmniMoeForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Qwen3_5ForCausalLM",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5ForTokenClassification",
    "Qwen3_5MoeForCausalLM",
    "Qwen3_5MoeForConditionalGeneration",
    "SarvamMLAForCausalLM",
    "SarvamMoEForCausalLM",
    "Step3p5ForCausalLM",
    "Step3p7ForConditionalGeneration",
    "WanTransformer3DModel",
};

std::string truth_of(const Evidence& evidence, const Mapping& mapping) {
  std::vector<std::string_view> truths;
  if (evidence.has_import(mapping)) truths.emplace_back("Megatron-Bridge's or mbridge's own files");
  if (evidence.has_same_logits(mapping)) {
    truths.emplace_back("same logits in Megatron-Core");
  }
  if (!truths.empty()) return fmt::format("{}", fmt::join(truths, "; "));
  return mapping.names_from.empty() ? "transformers' names, back bit by bit"
                                    : "published key lists, back bit by bit";
}

std::string by_registry(const Evidence& evidence, std::span<const Mapping> mappings) {
  std::string text =
      "\n## By Megatron-Bridge's registry\n\n"
      "| Registered architecture | Families here | Truth |\n|---|---|---|\n";
  for (const std::string_view name : kRegistry) {
    std::vector<std::string> families;
    std::set<std::string> truths;
    // A head in place of the output layer is that of any family (head_rules).
    constexpr std::string_view kOfTokens = "TokenClassification";
    const bool has_head = name.ends_with(kOfTokens);
    const std::string_view trunk = name.substr(0, name.size() - (has_head ? kOfTokens.size() : 0));
    for (const Mapping& mapping : mappings) {
      const bool is_it = std::ranges::any_of(mapping.architectures, [&](const std::string& each) {
        return has_head ? each.starts_with(trunk) : each == name;
      });
      if (!is_it) continue;
      families.push_back(mapping.family);
      truths.insert(has_head ? "transformers' names, back bit by bit"
                             : truth_of(evidence, mapping));
    }
    text +=
        fmt::format("| {} | {} | {} |\n", name,
                    families.empty() ? "none yet" : fmt::format("{}", fmt::join(families, ", ")),
                    fmt::join(truths, " / "));
  }
  return text;
}

std::string by_model(const Evidence& evidence, std::span<const Mapping> mappings) {
  std::map<std::string, std::string> rows;  // by the name in small letters
  for (const Mapping& mapping : mappings) {
    for (const std::string& model : mapping.models) {
      std::string key = model + mapping.family;
      std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
      rows[key] = fmt::format(
          "| {} | {} | {} | {} | {} |\n", model, mapping.family,
          fmt::join(mapping.architectures, ", "),
          mapping.names_from.empty() ? "nobody; Megatron-Core's modules" : mapping.names_from,
          truth_of(evidence, mapping));
    }
  }
  std::string text =
      "\n## By model\n\nWhere nobody publishes Megatron names for an architecture, they are those "
      "that Megatron-Core's own\nmodules of the same form have; parts that no module of it has "
      "keep Hugging Face's names.\n\n"
      "| Model | Family | Architectures | Megatron names by | Truth |\n|---|---|---|---|---|\n";
  for (const auto& [key, row] : rows) text += row;
  return text;
}

std::string families_page() {
  const Evidence evidence;
  std::string page(kHead);
  std::vector<std::string> beyond;
  const auto mark = [](bool yes) { return yes ? "yes" : ""; };
  const std::vector<Mapping> mappings = shipped_mappings();
  for (const Mapping& mapping : mappings) {
    const Traits traits(mapping);
    page += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", mapping.family,
                        fmt::join(mapping.architectures, ", "), traits.attention(), traits.mlp(),
                        traits.norms(), traits.more(), mark(evidence.has_import(mapping)),
                        mark(evidence.is_in("test_families", mapping)),
                        mark(evidence.has_same_logits(mapping)));
    for (const std::string& fact : mapping.beyond_args) {
      beyond.push_back(fmt::format("* {}: {}.\n", mapping.family, fact));
    }
  }
  page += by_model(evidence, mappings) + by_registry(evidence, mappings);
  page += "\n## What no argument of Megatron-Core says\n\n";
  page +=
      "The weights are converted all the same; training such a model takes its own modules, as "
      "Megatron-Bridge\nhas them. `convert` says so too.\n\n";
  for (const std::string& line : beyond) page += line;
  return page;
}

TEST(FamiliesPage, EachFamilyNamesItsModels) {
  for (const Mapping& mapping : shipped_mappings()) {
    EXPECT_FALSE(mapping.models.empty()) << mapping.family;
    const auto is_registered = [](const std::string& name) {
      return std::ranges::find(kRegistry, name) != std::ranges::end(kRegistry);
    };
    EXPECT_EQ(std::ranges::any_of(mapping.architectures, is_registered),
              mapping.names_from == "Megatron-Bridge")
        << mapping.family;
  }
}

TEST(FamiliesPage, IsWhatTheMappingFilesAndTestsSay) {
  const std::string page = families_page();
  const std::string path = source_path("docs/families.md");
  if (std::getenv("SHARDWRIGHT_WRITE_DOCS") != nullptr) {
    std::ofstream(path, std::ios::binary) << page;
  }
  EXPECT_TRUE(read_file(path) == page) << "docs/families.md is stale; run ./dev families";
}

}  // namespace
}  // namespace shardwright
