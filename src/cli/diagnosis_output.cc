// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnosis_output.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "base/text.h"
#include "cli/json_output.h"
#include "cli/table.h"
#include "diagnose/finding_words.h"
#include "format/formats.h"
#include "layout/texts.h"

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
std::string component_text(const RecordedComponent& component, Language language) {
  std::string text = sizes_text(named_sizes(component));
  if (text.empty()) text = phrase("label.unknown").in(language);
  if (component.tensors) {
    text = phrase("label.component_tensors", {{"sizes", text}, {"count", *component.tensors}})
               .in(language);
  }
  return fmt::format("{}: {}", component.name, text);
}

std::string certainty_text(Confidence confidence, Language language) {
  switch (confidence) {
    case Confidence::kCertain:
      return phrase("label.certain").in(language);
    case Confidence::kLikely:
      return phrase("label.likely").in(language);
    case Confidence::kAmbiguous:
      return phrase("label.ambiguous").in(language);
  }
  return "";
}

std::string layout_text(const Diagnosis& diagnosis, Language language) {
  std::string text = diagnosis.format;
  if (diagnosis.layout == LayoutClass::kNone) {
    if (!diagnosis.disk_arity) {
      text += fmt::format(" ({})", phrase("label.names_carry_no_ranks").in(language));
    }
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
  return text + "; " + certainty_text(diagnosis.confidence, language);
}

}  // namespace

std::string diagnosis_json(const Diagnosis& diagnosis, Language language) {
  JsonWriter json;
  begin_document(json, "diagnose");
  json.text("path", diagnosis.path).text("format", diagnosis.format);
  json.text("container", shown_container(diagnosis.format));
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

std::string diagnosis_text(const Diagnosis& diagnosis, const Console& console) {
  const Language language = console.language();
  Table facts({{}, {}});
  const auto word = [&](TextKey key) { return phrase(key).in(language); };
  const auto add = [&](TextKey label, std::string_view text) {
    if (!text.empty()) facts.add_row({word(label), std::string(text)});
  };
  add("label.layout", layout_text(diagnosis, language));
  for (const RecordedComponent& component : diagnosis.components) {
    add("label.component", component_text(component, language));
  }
  add("label.reason", diagnosis.reason.in(language));
  for (const Phrase& evidence : diagnosis.evidence) add("label.evidence", evidence.in(language));
  add("label.pattern", diagnosis.expected_pattern);
  if (diagnosis.disk_pattern != diagnosis.expected_pattern)
    add("label.on_disk", diagnosis.disk_pattern);
  if (diagnosis.loader != Loader::kNone) {
    add("label.loader",
        fmt::format("{}: {}", loader_name(diagnosis.loader), diagnosis.loader_note.in(language)));
  }
  add("label.complete", !diagnosis.complete   ? word("label.unknown")
                        : *diagnosis.complete ? word("label.yes")
                                              : word("label.no"));
  add("label.missing", listed(diagnosis.missing));
  add("label.unexpected", listed(diagnosis.unexpected));
  std::string text = console.bold(printable(diagnosis.path)) + "\n" + facts.text(2) + "\n";
  for (const Finding& finding : diagnosis.findings) {
    text += fmt::format("{} {}: {}\n", finding.code, severity_name(finding.severity),
                        printable(finding.message.in(language)));
  }
  if (diagnosis.findings.empty()) text += fmt::format("{}\n", word("label.none"));
  if (!diagnosis.next.empty()) {
    text += fmt::format("\n{}: {}\n", word("label.next"), printable(diagnosis.next));
  }
  return text;
}

}  // namespace shardwright::cli
