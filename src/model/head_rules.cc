// SPDX-License-Identifier: Apache-2.0
#include "model/head_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/fail.h"
#include "layout/model_head.h"

namespace shardwright {
namespace {

constexpr std::string_view kHeadWeight = ".weight";
constexpr std::string_view kHeadBias = ".bias";
constexpr std::string_view kOutput = "output_layer";
constexpr std::string_view kTable = "embedding.word_embeddings.weight";
constexpr std::string_view kAligner = "rm_head";
constexpr std::string_view kDefault = "score";

// Heads that a class has instead of the language model's, not beside it.
constexpr std::array<std::string_view, 2> kInstead = {"score", "classifier"};

constexpr std::array<std::string_view, 5> kHeadClasses = {
    "ForSequenceClassification", "ForTokenClassification", "ForRewardModel",
    "ForProcessRewardModel", "ForSequenceRegression"};

bool is_of_output(const Rule& rule) {
  return !rule.megatron.empty() &&
         rule.megatron[0].text().find(std::string(kOutput) + ".") != std::string::npos;
}

// Every way that the mapping has to call the output layer; the first is the one that is written.
void find_outputs(std::span<const Item> items, std::vector<const Rule*>& outputs) {
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) {
      const bool is_weight = is_of_output(*rule) && rule->megatron.size() == 1 &&
                             rule->hf.size() == 1 &&
                             rule->megatron[0].text().ends_with(kHeadWeight);
      if (is_weight) outputs.push_back(rule);
    } else if (const auto* section = std::get_if<Section>(&item.value)) {
      find_outputs(section->items, outputs);
    } else {
      for (const std::vector<Item>& option : std::get<Choice>(item.value).options) {
        find_outputs(option, outputs);
      }
    }
  }
}

void erase_output(std::vector<Item>& items) {
  std::erase_if(items, [](Item& item) {
    if (auto* section = std::get_if<Section>(&item.value)) erase_output(section->items);
    if (auto* choice = std::get_if<Choice>(&item.value)) {
      for (std::vector<Item>& option : choice->options) erase_output(option);
      return std::ranges::all_of(choice->options, &std::vector<Item>::empty);
    }
    const auto* rule = std::get_if<Rule>(&item.value);
    return rule != nullptr && is_of_output(*rule);
  });
}

// What stands in front of the module's own name: `language_model.` of `language_model.lm_head`.
std::string_view prefix_of(std::string_view weight) {
  const std::size_t end = weight.rfind('.');
  const std::size_t dot = weight.substr(0, end).rfind('.');
  return dot == std::string_view::npos ? std::string_view() : weight.substr(0, dot + 1);
}

// One head of a model: its tensors, and what stands in front of its module.
struct Head {
  std::string prefix;
  std::vector<const TensorDesc*> tensors;
};
using Heads = std::map<std::string, Head, std::less<>>;

Heads find_heads(const TensorIndex& index, std::string_view prefix) {
  Heads heads;
  for (const TensorDesc& tensor : index.tensors()) {
    std::string_view name = tensor.name;
    const bool is_inside = !prefix.empty() && name.starts_with(prefix);
    if (is_inside) name.remove_prefix(prefix.size());
    if (!is_in_head(name)) continue;
    Head& head = heads[std::string(name.substr(0, name.find('.')))];
    if (is_inside) head.prefix = prefix;
    head.tensors.push_back(&tensor);
  }
  return heads;
}

// One linear: a weight, and perhaps a bias.
bool is_linear(std::string_view module, const Head& head) {
  bool has_weight = false;
  for (const TensorDesc* tensor : head.tensors) {
    const std::string stem = head.prefix + std::string(module);
    const bool is_weight = tensor->name == stem + std::string(kHeadWeight);
    if (!is_weight && tensor->name != stem + std::string(kHeadBias)) return false;
    if (tensor->shape.size() != (is_weight ? 2 : 1)) return false;
    has_weight |= is_weight;
  }
  return has_weight;
}

// Of a linear's weight.
std::int64_t rows_of(std::span<const TensorDesc* const> linear) {
  const auto weight = std::ranges::find_if(
      linear, [](const TensorDesc* tensor) { return tensor->shape.size() == 2; });
  return weight == linear.end() ? 0 : (*weight)->shape[0];
}

// A family's mapping that becomes a head's.
class HeadMapping {
 public:
  HeadMapping(const Mapping& mapping, std::span<const Rule* const> outputs)
      : mapping_(mapping), outputs_(outputs), output_(*outputs.front()) {}

  // `rows` of the weight, which those of a bias must be too.
  Status put(const std::string& megatron, const std::string& hf, const TensorDesc& tensor,
             std::int64_t rows) {
    Rule rule;
    rule.megatron.push_back(SW_TRY(NameTemplate::parse(megatron)));
    rule.hf.push_back(SW_TRY(NameTemplate::parse(hf)));
    rule.path = output_.path;
    rule.shape.push_back(SW_TRY(SizeExpr::parse(std::to_string(rows))));
    if (!tensor.name.ends_with(kHeadBias) && output_.shape.size() == 2) {
      rule.shape.push_back(output_.shape[1]);
    }
    put_.push_back({std::move(rule)});
    return {};
  }

  void keep(std::string_view module) {
    const std::string prefix = std::string(module) + ".";
    kept_.push_back({prefix, {prefix}, true});
  }

  Mapping take(bool has_output) {
    Mapping made = mapping_;
    if (!has_output) {
      erase_output(made.items);
      std::erase_if(made.copies, [&](const CopyRule& copy) {
        return std::ranges::any_of(outputs_, [&](const Rule* output) {
          return copy.hf.hf.text() == output->hf[0].text();
        });
      });
    }
    made.items.insert(made.items.end(), std::make_move_iterator(put_.begin()),
                      std::make_move_iterator(put_.end()));
    made.alike.insert(made.alike.end(), std::make_move_iterator(kept_.begin()),
                      std::make_move_iterator(kept_.end()));
    return made;
  }

 private:
  const Mapping& mapping_;
  std::span<const Rule* const> outputs_;
  const Rule& output_;
  std::vector<Item> put_;
  std::vector<AlikePart> kept_;
};

bool is_instead(std::string_view module) {
  return std::ranges::find(kInstead, module) != kInstead.end();
}

std::unexpected<Error> two_heads(const Mapping& mapping, std::string_view head,
                                 std::string_view output) {
  return fail(Code::kUnmatchedSource,
              "family {}: found {} beside {}, expected one of them: the head of rewards, values or "
              "classes takes the place of the language model's; leave one out with --exclude",
              mapping.family, head, output);
}

// The name of a head, by what was imported or what the model's class calls it.
std::string name_of_head(std::string_view prefix, const TensorIndex* wanted,
                         std::string_view module) {
  if (wanted != nullptr) {
    for (const std::string_view each : kHeadModules) {
      for (const std::string_view front : {prefix, std::string_view()}) {
        std::string name = std::string(front) + std::string(each);
        if (wanted->contains(name + std::string(kHeadWeight))) return name;
      }
    }
  }
  return std::string(prefix) + std::string(module.empty() ? kDefault : module);
}

}  // namespace

std::string headless_stem(std::string_view architecture) {
  for (const std::string_view end : kHeadClasses) {
    if (architecture.ends_with(end)) {
      return std::string(architecture.substr(0, architecture.size() - end.size()));
    }
  }
  return {};
}

bool is_of_replaced_head(const HfConfig& config, std::string_view argument) {
  constexpr std::array<std::string_view, 2> kTying = {"untie_embeddings_and_output_weights",
                                                      "share_embeddings_and_output_weights"};
  return std::ranges::find(kTying, argument) != kTying.end() && !head_module(config).empty();
}

std::string head_module(const HfConfig& config) {
  if (config.architectures.empty()) return {};
  const std::string_view name = config.architectures[0];
  if (headless_stem(name).empty()) return {};
  if (name.ends_with("ForRewardModel") && name.starts_with("InternLM2")) return "v_head";
  // Of families that were there before transformers' generic classes.
  constexpr std::array<std::string_view, 6> kEarly = {"GPT2",   "GPTBigCode", "GPTNeoX",
                                                      "Falcon", "Bloom",      "Mpt"};
  const bool is_early =
      std::ranges::any_of(kEarly, [&](std::string_view early) { return name.starts_with(early); });
  return name.ends_with("ForTokenClassification") && is_early ? "classifier"
                                                              : std::string(kDefault);
}

Result<std::optional<Mapping>> with_head_of_hf(const Mapping& mapping, const TensorIndex& hf) {
  std::vector<const Rule*> outputs;
  find_outputs(mapping.items, outputs);
  if (outputs.empty()) return std::nullopt;
  const Rule* const output = outputs.front();
  const Heads heads = find_heads(hf, prefix_of(output->hf[0].text()));
  if (heads.empty()) return std::nullopt;
  const auto own = std::ranges::find_if(
      outputs, [&](const Rule* rule) { return hf.contains(rule->hf[0].text()); });
  std::vector<std::string_view> linears;
  for (const auto& [module, head] : heads) {
    if (own != outputs.end() && is_instead(module)) {
      return two_heads(mapping, head.tensors[0]->name, (*own)->hf[0].text());
    }
    if (is_linear(module, head)) linears.push_back(module);
  }
  HeadMapping made(mapping, outputs);
  const bool is_output = own == outputs.end() && linears.size() == 1;
  bool is_replaced = is_output;
  for (const auto& [module, head] : heads) {
    if (!is_output || module != linears[0]) {
      is_replaced |= is_instead(module);
      made.keep(head.prefix + module);
      continue;
    }
    const std::string& megatron = output->megatron[0].text();
    const std::string stem = megatron.substr(0, megatron.size() - kHeadWeight.size());
    for (const TensorDesc* tensor : head.tensors) {
      const std::string end = tensor->name.substr(tensor->name.rfind('.'));
      SW_TRY(made.put(stem + end, tensor->name, *tensor, rows_of(head.tensors)));
    }
  }
  return made.take(!is_replaced);
}

Result<std::optional<Mapping>> with_head_of_megatron(const Mapping& mapping,
                                                     const TensorIndex& canonical,
                                                     const TensorIndex* wanted,
                                                     std::string_view module) {
  std::vector<const Rule*> outputs;
  find_outputs(mapping.items, outputs);
  if (outputs.empty()) return std::nullopt;
  const Rule* const output = outputs.front();
  const std::string& name = output->megatron[0].text();
  const std::string stem = name.substr(0, name.size() - kHeadWeight.size());
  const TensorDesc* const table =
      canonical.find(std::string(prefix_of(name)) + std::string(kTable));
  const TensorDesc* const own = canonical.find(name);
  const bool is_head =
      own != nullptr && table != nullptr && OutputHeads(std::span(table, 1)).has(*own);
  const Heads heads = find_heads(canonical, prefix_of(output->hf[0].text()));
  if (!is_head && heads.empty()) return std::nullopt;
  HeadMapping made(mapping, outputs);
  const std::string hf = name_of_head(prefix_of(output->hf[0].text()), wanted, module);
  const auto put = [&](const std::string& from) -> Status {
    const TensorDesc* const weight = canonical.find(from + std::string(kHeadWeight));
    const TensorDesc* const bias = canonical.find(from + std::string(kHeadBias));
    if (weight == nullptr || weight->shape.size() != 2) return {};
    const std::int64_t rows = weight->shape[0];
    SW_TRY(made.put(weight->name, hf + std::string(kHeadWeight), *weight, rows));
    if (bias == nullptr) return {};
    return made.put(bias->name, hf + std::string(kHeadBias), *bias, rows);
  };
  if (is_head) SW_TRY(put(stem));
  bool is_replaced = is_head;
  for (const auto& [each, head] : heads) {
    if (each == kAligner) {
      if (own != nullptr) return two_heads(mapping, head.tensors[0]->name, name);
      SW_TRY(put(head.prefix + each));
      is_replaced = true;
      continue;
    }
    is_replaced |= is_instead(each) && own == nullptr;
    made.keep(head.prefix + each);
  }
  return made.take(!is_replaced);
}

Status check_labels(const HfConfig& config, std::span<const TensorDesc> hf) {
  const std::string module = head_module(config);
  if (module.empty()) return {};
  std::int64_t labels = 0;
  for (const auto& [key, value] : config.values) {
    if (key.starts_with("id2label.")) ++labels;
  }
  const auto stated = config.values.find("num_labels");
  if (labels == 0 && stated != config.values.end()) {
    if (const auto* count = std::get_if<std::int64_t>(&stated->second)) labels = *count;
  }
  if (labels == 0) return {};
  for (const TensorDesc& tensor : hf) {
    const bool is_it = tensor.name == module + std::string(kHeadWeight) ||
                       tensor.name.ends_with("." + module + std::string(kHeadWeight));
    if (!is_it || tensor.shape.size() != 2 || tensor.shape[0] == labels) continue;
    return fail(Code::kShapeMismatch,
                "tensor {}: found {} rows, expected {}: config.json has so many labels (id2label "
                "or num_labels); they belong to different models, or one of them was changed",
                tensor.name, tensor.shape[0], labels);
  }
  return {};
}

}  // namespace shardwright
