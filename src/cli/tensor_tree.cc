// SPDX-License-Identifier: Apache-2.0
#include "cli/tensor_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "cli/quantity.h"
#include "cli/table.h"

namespace shardwright::cli {
namespace {

struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    return natural_less(a, b) || (!natural_less(b, a) && a < b);
  }
};

struct ModuleNode {
  std::map<std::string, ModuleNode, NaturalOrder> children;
  const StoredTensor* tensor = nullptr;  // of exactly this name
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

std::uint64_t bytes_of_tensor(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(byte_count(tensor.desc.shape, tensor.desc.dtype).value_or(0));
}

std::string kind_of_tensor(const StoredTensor& tensor) {
  return fmt::format("{} {}", torch_name(tensor.desc.dtype), to_string(tensor.desc.shape));
}

// Names may have as many dots as bytes; deeper ones are one word.
constexpr int kDeepestModule = 64;

void enter(ModuleNode& root, const StoredTensor& tensor) {
  const std::uint64_t bytes = bytes_of_tensor(tensor);
  ModuleNode* node = &root;
  std::string_view rest = tensor.desc.name;
  for (int depth = 1; node != nullptr; ++depth) {
    ++node->tensors;
    node->bytes += bytes;
    if (rest.data() == nullptr) break;
    const std::size_t dot = depth < kDeepestModule ? rest.find('.') : std::string_view::npos;
    node = &node->children[std::string(rest.substr(0, dot))];
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  node->tensor = &tensor;
}

bool are_alike(const ModuleNode& a, const ModuleNode& b) {
  if (a.tensors != b.tensors || a.bytes != b.bytes || a.children.size() != b.children.size() ||
      (a.tensor == nullptr) != (b.tensor == nullptr)) {
    return false;
  }
  if (a.tensor != nullptr && kind_of_tensor(*a.tensor) != kind_of_tensor(*b.tensor)) return false;
  return std::ranges::equal(a.children, b.children, [](const auto& x, const auto& y) {
    return x.first == y.first && are_alike(x.second, y.second);
  });
}

std::optional<std::int64_t> number_of(const std::string& name) {
  constexpr std::int64_t kLargest = 1'000'000'000;
  if (name == "0") return 0;
  return name.starts_with('0') ? std::nullopt : parse_count(name, kLargest);
}

class TreePrinter {
 public:
  explicit TreePrinter(std::int64_t depth) : depth_(depth) {}

  void add_children(const ModuleNode& node, std::int64_t level) {
    if (depth_ > 0 && level >= depth_) return;
    for (auto at = node.children.begin(); at != node.children.end();) {
      // The run of numbers that follow each other and are alike.
      auto end = std::next(at);
      auto last = number_of(at->first);
      std::string name = at->first;
      std::uint64_t count = 1;
      while (last && end != node.children.end() && number_of(end->first) == *last + 1 &&
             are_alike(at->second, end->second)) {
        last = number_of(end->first);
        ++count;
        ++end;
      }
      if (count > 1) name = fmt::format("{{{}..{}}}", at->first, *last);
      add_node(name, at->second, count, level);
      at = end;
    }
  }

  [[nodiscard]] std::string text() const { return table_.text(); }

 private:
  void add_node(const std::string& name, const ModuleNode& node, std::uint64_t count,
                std::int64_t level) {
    const std::string indent(static_cast<std::size_t>(2 * level), ' ');
    std::string kind = node.tensor == nullptr ? "" : kind_of_tensor(*node.tensor);
    if (!kind.empty() && count > 1) kind = "each " + kind;
    table_.add_row({indent + name, format_count(node.tensors * count),
                    format_bytes(node.bytes * count), kind});
    add_children(node, level + 1);
  }

  std::int64_t depth_;
  Table table_{
      {{"module"}, {"tensors", Table::Align::kRight}, {"bytes", Table::Align::kRight}, {"tensor"}}};
};

}  // namespace

std::string tensor_tree_text(const Catalog& catalog, const std::vector<std::size_t>& tensors,
                             std::int64_t depth) {
  ModuleNode root;
  for (const std::size_t index : tensors) enter(root, catalog.tensors[index]);
  TreePrinter printer(depth);
  printer.add_children(root, 0);
  return root.children.empty() ? "" : printer.text();
}

}  // namespace shardwright::cli
