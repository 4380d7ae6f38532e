// SPDX-License-Identifier: Apache-2.0
#include "canonical/adapter_updates.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "base/text.h"
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

bool ends_in(std::string_view name, std::string_view end) {
  return name == end || (name.ends_with(end) && name[name.size() - end.size() - 1] == '.');
}

std::vector<std::string> names_that_end(std::span<const TensorDesc> model, const auto& ends) {
  std::vector<std::string> names;
  for (const TensorDesc& desc : model) {
    if (std::ranges::any_of(ends, [&](std::string_view end) { return ends_in(desc.name, end); })) {
      names.push_back(desc.name);
    }
  }
  return names;
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

class Matching {
 public:
  Matching(const PeftAdapter& adapter, std::span<const TensorDesc> model,
           const std::optional<TiedHead>& tied)
      : adapter_(adapter), tied_(tied) {
    for (const TensorDesc& desc : model) model_.emplace(desc.name, &desc);
    if (tied && !tied->is_stored && model_.contains(tied->embedding)) {
      model_.emplace(tied->head, model_.at(tied->embedding));
    }
  }

  Result<AdapterUpdates> run() {
    for (const SavedTensor& saved : adapter_.saved) SW_TRY(add_saved(saved));
    for (const LoraModule& module : adapter_.modules) SW_TRY(add_module(module));
    if (tied_ && std::ranges::any_of(changed_, [&](const std::string& name) {
          return name == tied_->embedding || name == tied_->head;
        })) {
      result_.untied = tied_;
    }
    SW_TRY(check_all_saved());
    return std::move(result_);
  }

 private:
  [[nodiscard]] const TensorDesc& own(std::uint32_t tensor) const {
    return adapter_.catalog.tensors[tensor].desc;
  }

  Result<const TensorDesc*> find(const std::string& name, std::uint32_t asked_by) {
    const auto found = model_.find(name);
    if (found != model_.end()) {
      changed_.push_back(name);
      return found->second;
    }
    return fail(Code::kUnmatchedSource,
                "{}: tensor {}: the base model has no tensor {}{}; is this the adapter of another "
                "model?",
                adapter_.path, printable(own(asked_by).name), printable(name), made_for());
  }

  [[nodiscard]] std::string made_for() const {
    const std::string& base = adapter_.config.base_model;
    return base.empty() ? "" : translated(" (the adapter was made for {})", printable(base));
  }

  std::unexpected<Error> wrong_shape(std::uint32_t tensor, const std::string& name,
                                     const TensorDesc& model) const {
    return fail(Code::kShapeMismatch, "{}: tensor {} {} does not fit the base model's {} {}{}",
                adapter_.path, printable(own(tensor).name), to_string(own(tensor).shape),
                printable(name), to_string(model.shape), made_for());
  }

  Status add_saved(const SavedTensor& saved) {
    const TensorDesc* const model = SW_TRY(find(saved.name, saved.tensor));
    if (!(own(saved.tensor).shape == model->shape)) {
      return wrong_shape(saved.tensor, saved.name, *model);
    }
    result_.saved.push_back(saved);
    return {};
  }

  // Trainers list modules that their model has not; of those that it has all was trained. What head
  // and embedding share may be saved once.
  [[nodiscard]] Status check_all_saved() const {
    std::set<std::string_view> saved;
    for (const SavedTensor& tensor : result_.saved) saved.insert(tensor.name);
    const auto is_saved = [&](const std::string& name) {
      if (saved.contains(name)) return true;
      if (!tied_ || (name != tied_->head && name != tied_->embedding)) return false;
      return saved.contains(name == tied_->head ? tied_->embedding : tied_->head);
    };
    std::vector<std::string> missing;
    for (const auto& [name, desc] : model_) {
      const std::string_view module = std::string_view(name).substr(0, name.rfind('.'));
      if (adapter_.config.saves(module) && !is_saved(name)) missing.push_back(name);
    }
    if (missing.empty()) return {};
    std::ranges::sort(missing);
    return fail(Code::kUnmatchedSource,
                "{}: {}: found nothing of {}, which {} lists in modules_to_save and the base model "
                "has; the values that were trained are not there",
                adapter_.path, kPeftWeightsFile, name_list(missing), kPeftConfigFile);
  }

  // Of a parameter that holds all experts.
  [[nodiscard]] Status check_experts(const LoraModule& module) const {
    const std::string tensor = module.name + ".weight";
    if (!model_.contains(tensor)) {
      return fail(Code::kUnsupportedFormat,
                  "{}: tensor {}: the base model has no tensor {}; what is trained of a parameter "
                  "of all experts (target_parameters) is added to experts that lie one by one in "
                  "its files; let PEFT merge this adapter (merge_and_unload)",
                  adapter_.path, printable(module.stored_out), printable(tensor));
    }
    const std::string around = module.configured.substr(0, module.configured.rfind('.') + 1);
    const std::string projection = tensor.substr(tensor.find('.', around.size()));
    const std::string next = around + std::to_string(module.experts) + projection;
    if (!model_.contains(next)) return {};
    return fail(Code::kShapeMismatch,
                "{}: tensor {}: found {} experts by the rank that {} tells, but the base model has "
                "{} too{}",
                adapter_.path, printable(module.stored_out), module.experts, kPeftConfigFile,
                printable(next), made_for());
  }

  Status add_module(const LoraModule& module) {
    ModelUpdate update{module.name + ".weight",
                       module.out,
                       module.in,
                       module.magnitude,
                       0,
                       1,
                       adapter_.config.scale_of(module.configured)};
    if (!module.stored_out.empty()) SW_TRY(check_experts(module));
    const TensorDesc* const model = SW_TRY(find(update.tensor, module.out));
    const std::int64_t outputs = own(module.out).shape[0];
    const std::int64_t inputs = own(module.in).shape[1];
    const Dims plain{outputs, inputs};
    const Dims transposed{inputs, outputs};
    // Linears of a model whose other weights are stored transposed are not.
    const bool may_be_plain = !module.is_embedding;
    const bool may_be_transposed = module.is_embedding || adapter_.config.is_fan_in_fan_out;
    if (may_be_transposed && model->shape == transposed) {
      update.out_axis = 1;
      update.in_axis = 0;
    } else if (!may_be_plain || !(model->shape == plain)) {
      const bool is_in = model->shape.size() == 2 && model->shape[0] == outputs;
      return wrong_shape(is_in ? module.in : module.out, update.tensor, *model);
    }
    if (module.magnitude && own(*module.magnitude).shape != Dims{outputs}) {
      return wrong_shape(*module.magnitude, update.tensor, *model);
    }
    result_.updates.push_back(update);
    if (!module.bias) return {};
    ModelUpdate bias{module.name + ".bias", *module.bias, std::nullopt, std::nullopt, 0, -1,
                     update.scale};
    const TensorDesc* const stored = SW_TRY(find(bias.tensor, *module.bias));
    if (stored->shape != own(*module.bias).shape || stored->shape.size() != 1) {
      return wrong_shape(*module.bias, bias.tensor, *stored);
    }
    result_.updates.push_back(std::move(bias));
    return {};
  }

  const PeftAdapter& adapter_;
  const std::optional<TiedHead>& tied_;
  std::unordered_map<std::string, const TensorDesc*> model_;
  std::vector<std::string> changed_;
  AdapterUpdates result_;
};

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

Result<AdapterUpdates> match_adapter(const PeftAdapter& adapter, std::span<const TensorDesc> model,
                                     const std::optional<TiedHead>& tied) {
  return Matching(adapter, model, tied).run();
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

}  // namespace shardwright
