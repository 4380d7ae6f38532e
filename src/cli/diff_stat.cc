// SPDX-License-Identifier: Apache-2.0
#include "cli/diff_stat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "layout/layer_name.h"

namespace shardwright::cli {
namespace {

struct DiffGroup {
  std::string name;
  std::uint64_t tensors = 0;
  std::uint64_t missing = 0;
  std::uint64_t mismatched = 0;
  std::uint64_t elements = 0;
  double max_delta = 0.0;
};

// `decoder.layers.7` of a layer's tensor, `embedding` and `model.norm` of others.
std::string group_of(std::string_view name) {
  const auto layer = split_layer_name(name);
  if (layer && layer->index) return fmt::format("{}.{}", layer->stack, *layer->index);
  if (layer) return std::string(layer->stack);
  constexpr std::string_view kModel = "model.";
  const std::size_t from = name.starts_with(kModel) ? kModel.size() : 0;
  return std::string(name.substr(0, std::min(name.find('.', from), name.size())));
}

class DiffGroups {
 public:
  DiffGroup& of(std::string_view name) {
    std::string group = group_of(name);
    const auto found = std::ranges::find(groups_, group, &DiffGroup::name);
    if (found != groups_.end()) return *found;
    groups_.push_back({.name = std::move(group)});
    return groups_.back();
  }
  /// Layers by their numbers, and what belongs together side by side.
  [[nodiscard]] std::vector<DiffGroup> sorted() && {
    std::ranges::sort(groups_, [](const DiffGroup& a, const DiffGroup& b) {
      const auto [stack_a, number_a] = key_of(a.name);
      const auto [stack_b, number_b] = key_of(b.name);
      return stack_a != stack_b ? stack_a < stack_b : number_a < number_b;
    });
    return std::move(groups_);
  }

 private:
  static std::pair<std::string_view, std::int64_t> key_of(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    std::int64_t number = 0;
    for (const char c : name.substr(dot == name.npos ? name.size() : dot + 1)) {
      if (c < '0' || c > '9') return {name, -1};
      number = number * 10 + (c - '0');
    }
    return dot == name.npos ? std::pair(name, std::int64_t{-1})
                            : std::pair(name.substr(0, dot), number);
  }

  std::vector<DiffGroup> groups_;
};

std::string bar_of(const DiffGroup& group, std::uint64_t most) {
  constexpr double kWidth = 30.0;
  if (group.elements == 0 || most == 0) return {};
  const double share = static_cast<double>(group.elements) / static_cast<double>(most);
  return std::string(static_cast<std::size_t>(std::ceil(share * kWidth)), '+');
}

std::string what_of(const DiffGroup& group) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(group.tensors, "differ");
  add(group.mismatched, "of another dtype or shape");
  add(group.missing, "on one side only");
  return text;
}

}  // namespace

std::string diff_stat_text(const DiffReport& report) {
  DiffGroups groups;
  for (const auto* missing : {&report.missing_left, &report.missing_right}) {
    for (const std::string& name : *missing) ++groups.of(name).missing;
  }
  for (const TensorDifference& difference : report.differences) {
    DiffGroup& group = groups.of(difference.left.name);
    if (difference.is_mismatch()) {
      ++group.mismatched;
      continue;
    }
    ++group.tensors;
    group.elements += difference.differing;
    group.max_delta = std::max(group.max_delta, difference.max_delta);
  }
  const std::vector<DiffGroup> sorted = std::move(groups).sorted();
  if (sorted.empty()) return {};
  const std::uint64_t most = std::ranges::max(sorted, {}, &DiffGroup::elements).elements;
  using enum Table::Align;
  Table table({{"where"}, {"tensors"}, {"elements", kRight}, {"max_delta", kRight}, {""}});
  for (const DiffGroup& group : sorted) {
    table.add_row({printable(group.name), what_of(group), format_count(group.elements),
                   fmt::format("{}", group.max_delta), bar_of(group, most)});
  }
  return table.text();
}

}  // namespace shardwright::cli
