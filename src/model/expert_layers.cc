// SPDX-License-Identifier: Apache-2.0
#include "model/expert_layers.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "model/layer_count.h"

namespace shardwright {
namespace {

constexpr std::string_view kSparseMlp = "sparse";
constexpr std::string_view kDenseMlp = "dense";

ExpertLayers where(std::int64_t layers, const auto& has_experts) {
  ExpertLayers experts;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    experts.push_back(has_experts(layer) ? 1 : 0);
  }
  return experts;
}

// A step that is missing or nonsense counts every layer.
std::int64_t usable(std::int64_t step) { return std::max<std::int64_t>(step, 1); }

}  // namespace

ExpertLayers experts_after_dense(std::int64_t dense, std::int64_t step, std::int64_t layers) {
  return where(layers, [dense, step = usable(step)](std::int64_t layer) {
    return layer >= dense && layer % step == 0;
  });
}

ExpertLayers experts_each_step(std::int64_t step, std::span<const std::int64_t> dense,
                               std::int64_t layers) {
  return where(layers, [dense, step = usable(step)](std::int64_t layer) {
    return std::ranges::find(dense, layer) == dense.end() && (layer + 1) % step == 0;
  });
}

ExpertLayers experts_in(const ExpertRange& range, std::int64_t layers) {
  const std::int64_t last = range.last < 0 ? layers - 1 : range.last;
  return where(layers, [&, step = usable(range.interval)](std::int64_t layer) {
    return layer >= range.first && layer <= last && (layer + 1) % step == 0;
  });
}

std::optional<ExpertRange> expert_range_of(const ExpertLayers& experts) {
  const std::int64_t layers = std::ssize(experts);
  const std::int64_t first = leading_dense(experts);
  const auto behind = std::ranges::find(experts.rbegin(), experts.rend(), 1);
  const std::int64_t last = layers - 1 - (behind - experts.rbegin());
  for (std::int64_t interval = 1; interval <= std::max<std::int64_t>(layers, 1); ++interval) {
    for (const std::int64_t end : {layers - 1, last}) {
      const ExpertRange range{first, end, interval};
      if (experts_in(range, layers) == experts) return range;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> step_after_dense(const ExpertLayers& experts, std::int64_t most) {
  const std::int64_t dense = leading_dense(experts);
  for (std::int64_t step = 1; step <= most; ++step) {
    if (experts_after_dense(dense, step, std::ssize(experts)) == experts) return step;
  }
  return std::nullopt;
}

std::int64_t leading_dense(const ExpertLayers& experts) {
  return std::ranges::find(experts, 1) - experts.begin();
}

ExpertLayers experts_numbered(std::span<const std::int64_t> numbers, std::int64_t layers) {
  return where(layers, [numbers](std::int64_t layer) {
    return std::ranges::find(numbers, layer) != numbers.end();
  });
}

Result<ExpertLayers> experts_of_types(std::string_view name, const std::vector<std::string>& types,
                                      std::int64_t layers) {
  SW_TRY(check_layer_count(name, types.size(), layers));
  ExpertLayers experts;
  for (const std::string& type : types) {
    if (type != kSparseMlp && type != kDenseMlp) {
      return fail(Code::kConfigMissing, "{}: found '{}', expected '{}' or '{}'", name, type,
                  kDenseMlp, kSparseMlp);
    }
    experts.push_back(type == kSparseMlp ? 1 : 0);
  }
  return experts;
}

std::vector<std::string> to_mlp_types(const ExpertLayers& experts) {
  std::vector<std::string> types;
  for (const std::int64_t has_experts : experts) {
    types.emplace_back(has_experts != 0 ? kSparseMlp : kDenseMlp);
  }
  return types;
}

ArgValue to_layer_frequency(ExpertLayers experts) {
  if (std::ranges::find(experts, 0) == experts.end()) return ArgValue{std::int64_t{1}};
  return ArgValue{std::move(experts)};
}

ExpertLayers from_layer_frequency(const ArgValue* frequency, std::int64_t layers) {
  const auto* list = frequency == nullptr ? nullptr : std::get_if<ExpertLayers>(frequency);
  const auto* number = frequency == nullptr ? nullptr : std::get_if<std::int64_t>(frequency);
  if (list == nullptr) return experts_after_dense(0, number == nullptr ? 1 : *number, layers);
  return where(layers, [list](std::int64_t layer) {
    return std::cmp_less(layer, list->size()) && (*list)[static_cast<std::size_t>(layer)] == 1;
  });
}

}  // namespace shardwright
