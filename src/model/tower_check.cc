// SPDX-License-Identifier: Apache-2.0
#include "model/tower_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/translated.h"
#include "layout/numbered_name.h"

namespace shardwright {
namespace {

// A section of config.json, and what names of its tensors have in them.
struct TowerSection {
  std::string_view name;
  std::array<std::string_view, 2> parts;
};
constexpr std::array kTowerSections = {TowerSection{"vision_config", {"vision", "visual"}},
                                       TowerSection{"audio_config", {"audio", "audio"}}};
// What stands between a tower and the language model has the width of both.
constexpr std::array<std::string_view, 4> kBetweenTowers = {"projector", "connector", "merger",
                                                            "embed_"};
// What speaks beside a thinker has towers of its own.
constexpr std::array<std::string_view, 3> kBesideThinker = {"talker.", "token2wav.", "code2wav."};

// Sequences of a few modules have numbers too; a layer has more tensors than those.
constexpr std::size_t kLeastOfLayer = 5;

bool has_any_part(std::string_view name, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.contains(part); });
}

// Of the tensors of one tower.
class Tower {
 public:
  void add(const TensorDesc& tensor) {
    add_extents(tensor);
    for (const LayerName& name : split_at_numbers(tensor.name)) ++stacks_[name.stack][*name.index];
  }

  void add_extents(const TensorDesc& tensor) {
    extents_.insert(tensor.shape.begin(), tensor.shape.end());
  }

  [[nodiscard]] bool has_extent(std::int64_t extent) const {
    return extents_.contains(extent) || extents_.contains(2 * extent);  // gates in one linear
  }

  // How many each stack of layers has: a tower may have several.
  [[nodiscard]] std::set<std::int64_t> counts() const {
    std::set<std::int64_t> counts;
    for (const auto& [stack, layers] : stacks_) {
      const bool is_of_layers = std::ranges::all_of(
          layers, [](const auto& layer) { return layer.second >= kLeastOfLayer; });
      if (is_of_layers) counts.insert(static_cast<std::int64_t>(layers.size()));
    }
    return counts;
  }

 private:
  std::set<std::int64_t> extents_;
  std::map<std::string_view, std::map<std::int64_t, std::size_t>> stacks_;
};

Tower tower_of(const TowerSection& section, std::span<const TensorDesc> hf) {
  Tower tower;
  for (const TensorDesc& tensor : hf) {
    const bool is_beside = std::ranges::any_of(
        kBesideThinker, [&](std::string_view prefix) { return tensor.name.starts_with(prefix); });
    if (is_beside) continue;
    if (has_any_part(tensor.name, section.parts)) {
      tower.add(tensor);
    } else if (has_any_part(tensor.name, kBetweenTowers)) {
      tower.add_extents(tensor);
    }
  }
  return tower;
}

class TowerCheck {
 public:
  TowerCheck(const HfConfig& config, std::string path, const Tower& tower)
      : values_(config.values), path_(std::move(path)), tower_(tower) {}

  void run(std::vector<Contradiction>& found) const {
    check_layers(found);
    for (const std::string_view key :
         {"hidden_size", "intermediate_size", "d_model", "encoder_ffn_dim"}) {
      const auto width = stated(key);
      if (width && !tower_.has_extent(*width)) {
        contradict(key, translated("no tensor of that part has such a width"), found);
      }
    }
  }

 private:
  [[nodiscard]] std::optional<std::int64_t> stated(std::string_view key) const {
    const ArgValue* const value = find_set(values_, path_ + std::string(key));
    const auto* whole = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    return whole == nullptr || *whole < 1 || *whole > kMost ? std::nullopt : std::optional(*whole);
  }

  // Configurations of some towers say it twice.
  void check_layers(std::vector<Contradiction>& found) const {
    const std::set<std::int64_t> counts = tower_.counts();
    std::string_view first;
    for (const std::string_view key : {"depth", "encoder_layers", "num_hidden_layers"}) {
      const auto layers = stated(key);
      if (!layers) continue;
      if (counts.contains(*layers)) return;
      if (first.empty()) first = key;
    }
    if (first.empty()) return;
    contradict(first, translated("the tensors are of {} layers", *counts.rbegin()), found);
  }

  void contradict(std::string_view key, std::string_view shown,
                  std::vector<Contradiction>& found) const {
    const std::string path = path_ + std::string(key);
    const std::string text = to_string(values_.at(path));
    found.push_back({path, translated("config.json: {} is {}, but {}", path, text, shown)});
  }

  const Arguments& values_;
  std::string path_;  // with the dot behind it
  const Tower& tower_;
};

}  // namespace

std::vector<Contradiction> contradicted_towers(const HfConfig& config,
                                               std::span<const TensorDesc> hf) {
  std::vector<Contradiction> found;
  for (const TowerSection& section : kTowerSections) {
    std::set<std::string> paths;
    for (const auto& [path, value] : config.values) {
      for (const std::string_view outer : {"", "thinker_config."}) {
        std::string inner = std::string(outer) + std::string(section.name) + ".";
        if (path.starts_with(inner)) paths.insert(std::move(inner));
      }
    }
    if (paths.empty()) continue;
    const Tower tower = tower_of(section, hf);
    if (tower.counts().empty()) continue;
    for (const std::string& path : paths) TowerCheck(config, path, tower).run(found);
  }
  return found;
}

}  // namespace shardwright
