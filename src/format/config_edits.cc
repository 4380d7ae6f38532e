// SPDX-License-Identifier: Apache-2.0
#include "format/config_edits.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"
#include "model/apply.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kDtypeKeys = {"torch_dtype", "dtype"};
constexpr std::string_view kQuantisation = "quantization_config";
constexpr std::string_view kExpertDtype = "expert_dtype";

// The quantisation that a config speaks of, at its top or of its language model.
bool erase_quantisation(Json& document) {
  bool erased = document.erase(std::string(kQuantisation)) > 0;
  const auto text = document.find("text_config");
  if (text != document.end() && text->is_object()) {
    erased = text->erase(std::string(kQuantisation)) > 0 || erased;
  }
  return erased;
}

// Where the config has one, else at its top.
Status set_quantisation(const std::string& quantisation, Json& document,
                        std::vector<std::string>& notes) {
  const std::string key(kQuantisation);
  const auto text = document.find("text_config");
  const bool is_of_text =
      text != document.end() && text->is_object() && text->contains(key) && !document.contains(key);
  Json& place = is_of_text ? *text : document;
  Json wanted = SW_TRY(parse_ordered_json(quantisation, key));
  if (place.contains(key) && place[key] == wanted) return {};
  place[key] = std::move(wanted);
  notes.push_back("config.json: quantization_config says how weights are stored now");
  return {};
}

// The numbers of prediction layers that a config speaks of become 0, as Megatron-Bridge writes
// them.
std::vector<std::string> erase_prediction(Json& object) {
  std::vector<std::string> changed;
  for (const std::string_view key : kPredictionKeys) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer() || *found == 0) continue;
    *found = 0;
    changed.emplace_back(key);
  }
  return changed;
}

// Wherever the whole or its language model says how many tokens there are.
void set_vocabulary(Json& object, const std::string& path, std::int64_t rows,
                    std::vector<std::string>& notes) {
  constexpr std::string_view kKey = "vocab_size";
  const auto found = object.find(kKey);
  if (found != object.end() && found->is_number_integer() && *found != rows) {
    *found = rows;
    notes.push_back(translated("config.json: {}{} becomes {}", path, kKey, rows));
  }
  for (const std::string_view part :
       {"text_config", "llm_config", "language_config", "thinker_config"}) {
    const auto inner = object.find(part);
    if (inner == object.end() || !inner->is_object()) continue;
    set_vocabulary(*inner, fmt::format("{}{}.", path, part), rows, notes);
  }
}

// The class that has such a head, where the config names a language model.
void set_head_class(Json& document, const ConfigHead& head, std::vector<std::string>& notes) {
  const auto names = document.find("architectures");
  if (names == document.end() || !names->is_array() || names->empty()) return;
  Json& name = names->front();
  if (!name.is_string()) return;
  const std::string said = name.get<std::string>();
  constexpr std::array<std::string_view, 3> kLanguage = {"ForCausalLM", "LMHeadModel",
                                                         "ForConditionalGeneration"};
  for (const std::string_view end : kLanguage) {
    if (!said.ends_with(end)) continue;
    // Only heads of tokens have a bias.
    const std::string_view kind =
        head.has_bias ? "ForTokenClassification" : "ForSequenceClassification";
    // Language models of families that have vision-language models too (qwen3_5_text).
    const auto type = document.find("model_type");
    const bool is_text = !head.has_bias && type != document.end() && type->is_string() &&
                         type->get_ref<const std::string&>().ends_with("_text");
    name = said.substr(0, said.size() - end.size()) + (is_text ? "Text" : "") + std::string(kind);
    notes.push_back(
        translated("config.json: architecture {} becomes {}: {} is no language "
                   "model's head",
                   said, name.get<std::string>(), head.name));
    return;
  }
}

// transformers counts two labels where nothing tells.
void set_labels(Json& document, const ConfigHead& head, std::vector<std::string>& notes) {
  constexpr std::int64_t kDefaultLabels = 2;
  constexpr std::int64_t kMostLabels = 100000;
  const auto listed = document.find("id2label");
  const auto stated = document.find("num_labels");
  std::int64_t labels = kDefaultLabels;
  if (listed != document.end() && listed->is_object()) {
    labels = static_cast<std::int64_t>(listed->size());
  } else if (stated != document.end() && stated->is_number_integer()) {
    labels = stated->get<std::int64_t>();
  }
  if (labels == head.rows || head.rows > kMostLabels) return;
  Json names = Json::object();
  Json numbers = Json::object();
  for (std::int64_t i = 0; i < head.rows; ++i) {
    names[std::to_string(i)] = fmt::format("LABEL_{}", i);
    numbers[fmt::format("LABEL_{}", i)] = i;
  }
  document["id2label"] = std::move(names);
  document["label2id"] = std::move(numbers);
  document.erase("num_labels");
  notes.push_back(translated(
      "config.json: id2label has {} now: {} has so many rows",
      head.rows == 1 ? translated("one label") : translated("{} labels", head.rows), head.name));
}

// `bfloat16`, also with torch's name before it.
std::optional<DType> dtype_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  std::string_view name = value.get_ref<const std::string&>();
  if (name.starts_with("torch.")) name.remove_prefix(6);
  const std::optional<DType> dtype = dtype_from_torch(name);
  return dtype && is_castable_float(*dtype) ? dtype : std::nullopt;
}

// Says one dtype wherever a config tells the model's, or that of a part of it.
class DtypeEdit {
 public:
  DtypeEdit(DType dtype, DtypeScope scope, std::vector<std::string>& notes)
      : dtype_(dtype), scope_(scope), notes_(notes) {}

  void apply(Json& document) {
    for (const std::string_view key : kDtypeKeys) {
      const auto found = document.find(key);
      if (found != document.end() && !before_) before_ = dtype_of(*found);
      is_said_ |= found != document.end();
    }
    edit(document, "", true);
    if (is_said_ || scope_ != DtypeScope::kAll) return;
    document["dtype"] = torch_name(dtype_);
    tell("dtype");
  }

 private:
  void edit(Json& object, const std::string& path, bool is_top) {
    for (auto& [key, value] : object.items()) {
      const bool is_key = std::ranges::find(kDtypeKeys, key) != kDtypeKeys.end();
      if (is_key) {
        edit_value(value, path + key, is_top);
      } else if (value.is_object() && key != kQuantisation && scope_ != DtypeScope::kTop) {
        edit(value, path + key + ".", false);
      }
    }
  }

  void edit_value(Json& value, const std::string& path, bool is_top) {
    const std::optional<DType> said = dtype_of(value);
    const bool is_null = is_top && value.is_null() && scope_ == DtypeScope::kAll;
    if ((!said && !is_null) || said == dtype_) return;
    // A part that differs from the whole was said to be so on purpose.
    if (!is_top && scope_ == DtypeScope::kSame && before_ && said != before_) return;
    value = torch_name(dtype_);
    tell(path);
  }

  void tell(const std::string& path) {
    notes_.push_back(translated("config.json: {} becomes {}", path, torch_name(dtype_)));
  }

  DType dtype_;
  DtypeScope scope_;
  std::vector<std::string>& notes_;
  std::optional<DType> before_;  // of the whole
  bool is_said_ = false;
};

}  // namespace

Result<std::string> edited_config(std::string_view config, const ConfigEdits& edits,
                                  std::vector<std::string>& notes) {
  Json document = SW_TRY(parse_ordered_json(config, "config.json"));
  if (!document.is_object()) return fail(Code::kJsonCorrupt, "config.json: expected an object");
  const std::size_t told = notes.size();
  if (edits.is_dequantised && erase_quantisation(document)) {
    notes.push_back("config.json: quantization_config is removed: no tensor is quantised now");
  }
  if (!edits.quantisation.empty()) {
    SW_TRY(set_quantisation(edits.quantisation, document, notes));
  }
  const auto experts = document.find(kExpertDtype);
  if (!edits.expert_dtype.empty() && experts != document.end() && *experts != edits.expert_dtype) {
    *experts = edits.expert_dtype;
    notes.push_back(translated("config.json: {} becomes {}", kExpertDtype, edits.expert_dtype));
  }
  if (edits.without_prediction) {
    std::vector<std::string> changed = erase_prediction(document);
    const auto text = document.find("text_config");
    if (text != document.end() && text->is_object()) {
      for (std::string& key : erase_prediction(*text)) changed.push_back("text_config." + key);
    }
    for (const std::string& key : changed) {
      notes.push_back(translated("config.json: {} becomes 0: there are no such layers", key));
    }
  }
  if (edits.vocabulary) set_vocabulary(document, "", *edits.vocabulary, notes);
  if (edits.head) {
    set_head_class(document, *edits.head, notes);
    set_labels(document, *edits.head, notes);
  }
  if (edits.dtype) DtypeEdit(*edits.dtype, edits.scope, notes).apply(document);
  return notes.size() > told ? document.dump(2) + "\n" : std::string();
}

bool has_quantised(const std::vector<DraftTensor>& tensors) {
  return std::ranges::any_of(tensors, [](const DraftTensor& tensor) {
    const DType dtype = tensor.desc.dtype;
    if (tensor.recipe.quantising != nullptr) return false;
    return dtype >= DType::kF8E4M3 && dtype <= DType::kF4E2M1X2;
  });
}

std::optional<DType> written_dtype(const std::vector<DraftTensor>& tensors) {
  if (has_quantised(tensors)) return std::nullopt;
  std::map<DType, double> elements;
  for (const DraftTensor& tensor : tensors) {
    const TensorDesc& desc = tensor.desc;
    if (!is_castable_float(desc.dtype) || is_optimizer_name(desc.name)) continue;
    if (tensor.recipe.quantising != nullptr) continue;
    if (desc.name.starts_with(kHfExtraPrefix)) continue;
    elements[desc.dtype] += static_cast<double>(Box::whole(desc.shape).volume());
  }
  const auto most = std::ranges::max_element(elements, {}, &decltype(elements)::value_type::second);
  return most == elements.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace shardwright
