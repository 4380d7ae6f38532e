// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnosis_output.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "base/text.h"
#include "cli/json_output.h"
#include "cli/table.h"

namespace shardwright::cli {
namespace {

using NamedSize = std::pair<std::string_view, std::optional<std::int64_t>>;

std::array<NamedSize, 6> named_sizes(const AxisSizes& sizes) {
  return {{{"tp", sizes.tensor},
           {"pp", sizes.pipeline},
           {"vpp", sizes.virtual_pipeline},
           {"ep", sizes.expert},
           {"etp", sizes.expert_tensor},
           {"dp", sizes.data}}};
}

std::string_view class_name(LayoutClass layout) {
  switch (layout) {
    case LayoutClass::kNone:
      return "";
    case LayoutClass::kTensor:
      return "1D";
    case LayoutClass::kPipeline:
      return "2D";
    case LayoutClass::kExpert:
      return "3D";
  }
  return "";
}

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kCertain:
      return "certain";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kAmbiguous:
      return "ambiguous";
  }
  return "";
}

std::string_view loader_name(Loader loader) {
  switch (loader) {
    case Loader::kNone:
      return "";
    case Loader::kNonExpert:
      return "non-ep";
    case Loader::kExpertAware:
      return "ep-aware";
  }
  return "";
}

// Absent is null, not an empty text.
void write_text(JsonWriter& json, std::string_view name, std::string_view value) {
  json.key(name);
  if (value.empty()) {
    json.null();
  } else {
    json.text(value);
  }
}

void write_number(JsonWriter& json, std::string_view name,
                  const std::optional<std::int64_t>& value) {
  json.key(name);
  if (value) {
    json.number(*value);
  } else {
    json.null();
  }
}

std::string listed(const std::vector<std::string>& texts) {
  constexpr std::size_t kMostShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), kMostShown); ++i) {
    text += (i > 0 ? ", " : "") + texts[i];
  }
  if (texts.size() > kMostShown) text += fmt::format(", … {}", texts.size());
  return text;
}

struct Words {
  std::string_view layout, reason, evidence, pattern, on_disk, missing, unexpected, loader,
      complete, next, yes, no, unknown, none, names_carry_no_ranks, component, tensors;
};

constexpr Words kEnglishWords = {
    "layout",    "reason",     "evidence", "pattern",           "on disk",
    "missing",   "unexpected", "loader",   "complete",          "next",
    "yes",       "no",         "unknown",  "nothing to report", "names carry no ranks",
    "component", "tensors"};
constexpr Words kChineseWords = {
    "布局",   "依据", "证据", "目录模式", "磁盘实际",   "缺少",          "多余", "读取方式", "完整",
    "下一步", "是",   "否",   "未知",     "未发现问题", "名称不含 rank", "组件", "个张量"};

std::string sizes_text(std::span<const NamedSize> sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) {
    if (size) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, *size);
  }
  return text;
}

std::array<NamedSize, 7> named_sizes(const RecordedComponent& component) {
  const AxisSizes& sizes = component.sizes;
  return {{{"tp", sizes.tensor},
           {"pp", sizes.pipeline},
           {"cp", component.context},
           {"dp", sizes.data},
           {"ep", sizes.expert},
           {"etp", sizes.expert_tensor},
           {"rank_offset", component.rank_offset}}};
}

// `language: tp=2 pp=1 …; 60 tensors`, or without the tensors where nobody counted them.
std::string component_text(const RecordedComponent& component, const Words& words) {
  std::string sizes = sizes_text(named_sizes(component));
  if (sizes.empty()) sizes = words.unknown;
  std::string text = fmt::format("{}: {}", component.name, sizes);
  if (component.tensors) text += fmt::format("; {} {}", *component.tensors, words.tensors);
  return text;
}

std::string layout_text(const Diagnosis& diagnosis, const Words& words) {
  std::string text = diagnosis.container;
  if (diagnosis.layout == LayoutClass::kNone) {
    if (!diagnosis.disk_arity) text += fmt::format(" ({})", words.names_carry_no_ranks);
  } else {
    text += fmt::format(" {}", class_name(diagnosis.layout));
  }
  std::string coordinates;
  for (const std::string& name : diagnosis.coordinates) {
    coordinates += (coordinates.empty() ? "" : ",") + name;
  }
  if (!coordinates.empty()) text += fmt::format(" ({})", coordinates);
  const std::string sizes = sizes_text(named_sizes(diagnosis.sizes));
  if (!sizes.empty()) text += ": " + sizes;
  return text + fmt::format("; {}", confidence_name(diagnosis.confidence));
}

}  // namespace

std::string diagnosis_json(const Diagnosis& diagnosis, Language language) {
  JsonWriter json;
  begin_document(json, "diagnose");
  json.text("path", diagnosis.path).text("container", diagnosis.container);
  write_text(json, "layout_class", class_name(diagnosis.layout));
  write_number(json, "disk_arity", diagnosis.disk_arity);
  json.texts("coordinates", diagnosis.coordinates);
  json.key("sizes").open_object();
  for (const auto& [name, size] : named_sizes(diagnosis.sizes)) write_number(json, name, size);
  json.close();
  json.key("components").open_list();
  for (const RecordedComponent& component : diagnosis.components) {
    json.open_object().text("name", component.name);
    for (const auto& [name, size] : named_sizes(component)) write_number(json, name, size);
    json.key("tensors");
    if (component.tensors) {
      json.number(*component.tensors).close();
    } else {
      json.null().close();
    }
  }
  json.close();
  json.text("reason", diagnosis.reason.in(language));
  json.key("evidence").open_list();
  for (const Phrase& evidence : diagnosis.evidence) json.text(evidence.in(language));
  json.close();
  json.text("confidence", confidence_name(diagnosis.confidence));
  write_text(json, "expected_pattern", diagnosis.expected_pattern);
  write_text(json, "disk_pattern", diagnosis.disk_pattern);
  json.texts("missing", diagnosis.missing);
  json.texts("unexpected", diagnosis.unexpected);
  write_text(json, "loader", loader_name(diagnosis.loader));
  json.key("complete");
  if (diagnosis.complete) {
    json.flag(*diagnosis.complete);
  } else {
    json.null();
  }
  json.key("findings").open_list();
  for (const Finding& finding : diagnosis.findings) {
    json.open_object().text("code", finding.code);
    json.text("severity", severity_name(finding.severity));
    json.text("message", finding.message.in(language)).close();
  }
  json.close();
  write_text(json, "next", diagnosis.next);
  json.close();
  return json.take();
}

std::string diagnosis_text(const Diagnosis& diagnosis, Language language, const Console& console) {
  const Words& words = language == Language::kChinese ? kChineseWords : kEnglishWords;
  Table facts({{}, {}});
  const auto add = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) facts.add_row({std::string(name), std::string(text)});
  };
  add(words.layout, layout_text(diagnosis, words));
  for (const RecordedComponent& component : diagnosis.components) {
    add(words.component, component_text(component, words));
  }
  add(words.reason, diagnosis.reason.in(language));
  for (const Phrase& evidence : diagnosis.evidence) add(words.evidence, evidence.in(language));
  add(words.pattern, diagnosis.expected_pattern);
  if (diagnosis.disk_pattern != diagnosis.expected_pattern)
    add(words.on_disk, diagnosis.disk_pattern);
  if (diagnosis.loader != Loader::kNone) {
    add(words.loader,
        fmt::format("{}: {}", loader_name(diagnosis.loader), diagnosis.loader_note.in(language)));
  }
  add(words.complete, !diagnosis.complete   ? words.unknown
                      : *diagnosis.complete ? words.yes
                                            : words.no);
  add(words.missing, listed(diagnosis.missing));
  add(words.unexpected, listed(diagnosis.unexpected));
  std::string text = console.bold(printable(diagnosis.path)) + "\n" + facts.text(2) + "\n";
  for (const Finding& finding : diagnosis.findings) {
    text += fmt::format("{} {}: {}\n", finding.code, severity_name(finding.severity),
                        printable(finding.message.in(language)));
  }
  if (diagnosis.findings.empty()) text += fmt::format("{}\n", words.none);
  if (!diagnosis.next.empty()) {
    text += fmt::format("\n{}: {}\n", words.next, printable(diagnosis.next));
  }
  return text;
}

}  // namespace shardwright::cli
