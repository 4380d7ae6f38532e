// SPDX-License-Identifier: Apache-2.0
#include "canonical/classifier_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

struct ClassifierTask {
  std::string_view task_type;
  std::string_view class_end;
};

constexpr std::array kTasks = {ClassifierTask{"SEQ_CLS", "ForSequenceClassification"},
                               ClassifierTask{"TOKEN_CLS", "ForTokenClassification"}};
constexpr std::array kGenerators = {std::string_view("ForCausalLM"),
                                    std::string_view("LMHeadModel")};

const ClassifierTask* task_of(std::string_view task_type) {
  const auto* const found = std::ranges::find(kTasks, task_type, &ClassifierTask::task_type);
  return found == kTasks.end() ? nullptr : found;
}

std::string text_at(const Json& config, std::string_view key) {
  const auto value = config.find(key);
  return value != config.end() && value->is_string() ? value->get<std::string>() : std::string();
}

std::string first_class(const Json& config) {
  const auto names = config.find("architectures");
  const bool has_one = names != config.end() && names->is_array() && !names->empty();
  return has_one && names->front().is_string() ? names->front().get<std::string>() : std::string();
}

// Empty where there is none. Of a language model that is a part of another, the whole one has the
// plain name: Gemma3ForCausalLM, Gemma3TextForSequenceClassification.
std::string class_with_head(const Json& config, std::string_view class_end) {
  const std::string name = first_class(config);
  if (name.ends_with(class_end)) return name;
  for (const std::string_view end : kGenerators) {
    if (!name.ends_with(end)) continue;
    const bool is_part = text_at(config, "model_type").ends_with("_text");
    return name.substr(0, name.size() - end.size()) + (is_part ? "Text" : "") +
           std::string(class_end);
  }
  return {};
}

// transformers counts its names of labels, which are two where nothing is said.
std::size_t labels_of(const Json& config) {
  const auto names = config.find("id2label");
  if (names != config.end() && names->is_object()) return names->size();
  const auto count = config.find("num_labels");
  return count != config.end() && count->is_number_unsigned() ? count->get<std::size_t>() : 2;
}

void name_labels(std::size_t labels, Json& config) {
  for (const char* const key : {"num_labels", "id2label", "label2id"}) config.erase(key);
  if (labels == 2) return;
  Json names = Json::object();
  Json numbers = Json::object();
  for (std::size_t i = 0; i < labels; ++i) {
    const std::string name = "LABEL_" + std::to_string(i);
    names[std::to_string(i)] = name;
    numbers[name] = i;
  }
  config["id2label"] = std::move(names);
  config["label2id"] = std::move(numbers);
}

}  // namespace

bool is_classifier_task(std::string_view task_type) { return task_of(task_type) != nullptr; }

Result<std::string> classifier_config(const std::string& config, std::string_view task_type,
                                      std::int64_t labels) {
  Json document = SW_TRY(parse_ordered_json(config, "config.json"));
  const std::string_view end = task_of(task_type)->class_end;
  const std::string name = document.is_object() ? class_with_head(document, end) : std::string();
  if (name.empty()) {
    return fail(Code::kUnsupportedFormat,
                "config.json: the adapter has a head of its own, and nothing is known of such a "
                "head on {}; save the base as a model {} and give that folder",
                document.is_object() ? printable(first_class(document)) : std::string("no model"),
                end);
  }
  const auto count = static_cast<std::size_t>(labels);
  if (name == first_class(document) && labels_of(document) == count) return config;
  document["architectures"] = Json::array({name});
  if (labels_of(document) != count) name_labels(count, document);
  return document.dump(2) + "\n";
}

}  // namespace shardwright
