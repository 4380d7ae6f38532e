// SPDX-License-Identifier: Apache-2.0
#include "cli/value_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.h"
#include "cli/quantity.h"
#include "codec/torch_tensor.h"

namespace shardwright::cli {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr int kTextColumns = 100;
constexpr std::size_t kMostInline = 16;
// Only the beginning of a text is shown.
constexpr std::size_t kMostTextBytes = 1024;

std::string quoted(std::string_view text) {
  return "'" + fit_width(printable(text.substr(0, kMostTextBytes)), kTextColumns) + "'";
}

std::string global_name(Value value) {
  if (!value.is(Kind::kGlobal)) return value ? std::string(pickle::kind_name(value.kind())) : "";
  return fmt::format("{}.{}", value.module(), value.name());
}

// Values that are their own text; "" for the others.
std::string scalar_text(Value value) {
  switch (value.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.as_bool().value_or(false) ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.as_int().value_or(0));
    case Kind::kBigInt:
      return fmt::format("integer of {} bytes", value.text().size());
    case Kind::kFloat:
      return fmt::format("{}", value.as_double().value_or(0.0));
    case Kind::kString:
      return quoted(value.text());
    case Kind::kBytes:
    case Kind::kByteArray:
      return fmt::format("{}", format_count(value.text().size(), "byte"));
    case Kind::kGlobal:
      return global_name(value);
    default:
      return "";
  }
}

// `[1, 2, 3]` for short sequences of scalars; "" for the others.
std::string inline_sequence(Value value) {
  if (value.size() == 0 || value.size() > kMostInline || value.state()) return "";
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string element = scalar_text(value[i]);
    if (element.empty()) return "";
    text += (i > 0 ? ", " : "") + element;
  }
  if (display_width(text) > kTextColumns) return "";
  return value.is(Kind::kTuple) ? "(" + text + ")" : "[" + text + "]";
}

std::string tensor_text(Value value) {
  const Result<TorchTensor> recipe = read_torch_tensor(value);
  if (!recipe) return recipe.error().message;
  return fmt::format("{} {}, storage {}", torch_name(recipe->dtype), to_string(recipe->shape),
                     recipe->storage_key);
}

class Describer {
 public:
  explicit Describer(const TreeLimits& limits)
      : limits_(limits),
        nodes_left_(limits.nodes),
        children_(static_cast<std::size_t>(std::max<std::int64_t>(10, limits.nodes / 10))) {}

  ValueNode describe(std::string label, Value value) {
    --nodes_left_;
    ValueNode node;
    node.label = std::move(label);
    if (!value) return node;
    node.kind = pickle::kind_name(value.kind());
    if (std::find(path_.begin(), path_.end(), value) != path_.end()) {
      node.text = "within itself: a cycle";
      return node;
    }
    path_.push_back(value);
    fill(node, value);
    path_.pop_back();
    return node;
  }

 private:
  void fill(ValueNode& node, Value value) {
    node.text = scalar_text(value);
    if (!node.text.empty()) return;
    if (is_tensor(value)) {
      node.kind = "tensor";
      node.text = tensor_text(value);
      return;
    }
    if (is_sequence(value.kind())) {
      node.text = inline_sequence(value);
      if (!node.text.empty()) return;
      node.text = format_count(value.size(), "element");
      add_elements(node, value);
    } else if (value.is(Kind::kDict)) {
      node.text = format_count(value.size(), "entry");
      if (value.size() != 1) node.text = format_count(value.size()) + " entries";
      add_pairs(node, value);
    } else {
      fill_made(node, value);
    }
  }

  // What a pickle would make by calling something. We only name what.
  void fill_made(ValueNode& node, Value value) {
    const bool is_object = value.is(Kind::kObject);
    if (value.is(Kind::kReduce)) node.kind = "call";
    if (value.is(Kind::kPersistentId)) {
      add(node, "id", value[0]);
      return;
    }
    if (value.is(Kind::kExtension)) {
      node.text = fmt::format("copyreg code {}", value.as_int().value_or(0));
      return;
    }
    node.text = global_name(value.callable());
    if (value.args().size() > 0) add(node, is_object ? "new" : "arguments", value.args());
    if (value.kwargs() && value.kwargs().size() > 0) add(node, "keywords", value.kwargs());
    if (value.appended()) add_elements(node, value.appended());
    if (value.items()) add_pairs(node, value.items());
    if (!value.state()) return;
    if (value.state().is(Kind::kDict)) {
      add_pairs(node, value.state());
    } else {
      add(node, "state", value.state());
    }
  }

  void add(ValueNode& parent, std::string label, Value value) {
    if (can_add(parent)) {
      parent.children.push_back(describe(std::move(label), value));
    } else {
      ++parent.left_out;
    }
  }

  [[nodiscard]] bool can_add(const ValueNode& parent) const {
    return nodes_left_ > 0 && static_cast<std::int64_t>(path_.size()) <= limits_.depth &&
           parent.children.size() < children_;
  }

  void add_elements(ValueNode& parent, Value sequence) {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if (!can_add(parent)) {
        parent.left_out += sequence.size() - i;
        return;
      }
      add(parent, fmt::format("[{}]", i), sequence[i]);
    }
  }

  void add_pairs(ValueNode& parent, Value dict) {
    for (std::size_t i = 0; i < dict.size(); ++i) {
      if (!can_add(parent)) {
        parent.left_out += dict.size() - i;
        return;
      }
      add(parent, key_text(dict.key(i)), dict.value(i));
    }
  }

  static std::string key_text(Value key) {
    if (const auto text = key.as_string()) {
      return fit_width(printable(text->substr(0, kMostTextBytes)), kTextColumns);
    }
    const std::string text = scalar_text(key);
    if (!text.empty()) return text;
    const std::string sequence = is_sequence(key.kind()) ? inline_sequence(key) : "";
    return sequence.empty() ? std::string(pickle::kind_name(key.kind())) : sequence;
  }

  TreeLimits limits_;
  std::int64_t nodes_left_;
  std::size_t children_;
  std::vector<Value> path_;
};

// The kinds that a value's text shows by itself.
bool is_plain(std::string_view kind) {
  using pickle::kind_name;
  for (const Kind plain :
       {Kind::kNone, Kind::kBool, Kind::kInt, Kind::kFloat, Kind::kString, Kind::kBytes}) {
    if (kind == kind_name(plain)) return true;
  }
  return false;
}

void append_lines(const ValueNode& node, std::size_t indent, std::string& out) {
  out.append(indent, ' ');
  if (!node.label.empty()) out += node.label + ": ";
  if (!is_plain(node.kind)) out += node.kind + (node.text.empty() ? "" : " ");
  // Names of globals come from the file.
  out += printable(node.text) + "\n";
  constexpr std::size_t kIndent = 2;
  for (const ValueNode& child : node.children) append_lines(child, indent + kIndent, out);
  if (node.left_out > 0 && !node.children.empty()) {
    out.append(indent + kIndent, ' ');
    out += fmt::format("… {} more\n", format_count(node.left_out));
  }
}

}  // namespace

ValueNode describe_value(Value root, const TreeLimits& limits) {
  return Describer(limits).describe("", root);
}

std::string tree_text(const ValueNode& root) {
  std::string text;
  append_lines(root, 0, text);
  return text;
}

void write_tree(JsonWriter& json, const ValueNode& node) {
  json.open_object();
  if (!node.label.empty()) json.text("label", node.label);
  json.text("kind", node.kind).text("text", node.text);
  if (node.kind == kind_name(Kind::kBool)) json.flag("value", node.text == "True");
  if (node.kind == kind_name(Kind::kInt) || node.kind == kind_name(Kind::kFloat)) {
    json.key("value").number_text(node.text);
  }
  if (!node.children.empty()) {
    json.key("children").open_list();
    for (const ValueNode& child : node.children) write_tree(json, child);
    json.close();
  }
  if (node.left_out > 0) json.number("left_out", node.left_out);
  json.close();
}

}  // namespace shardwright::cli
