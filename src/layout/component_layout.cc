// SPDX-License-Identifier: Apache-2.0
#include "layout/component_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostComponentRanks = std::int64_t{1} << 20;
constexpr std::size_t kMostComponents = 16;
// Ways that are tried before the caller is asked for more: layouts of real models need a handful.
constexpr int kMostTries = 200'000;
constexpr std::string_view kLanguage = "language";

struct NamedSize {
  std::string_view key;
  std::int64_t size;
};

Result<Component> component_of(const ComponentSpec& spec) {
  Component component;
  component.name = spec.name;
  component.tensor = spec.tensor.value_or(1);
  component.pipeline = spec.pipeline.value_or(1);
  component.context = spec.context.value_or(1);
  component.expert = spec.expert.value_or(1);
  component.expert_tensor = spec.expert_tensor.value_or(1);
  component.data = spec.data.value_or(1);
  component.rank_offset = spec.rank_offset.value_or(0);
  for (const NamedSize& named :
       {NamedSize{"tp", component.tensor}, NamedSize{"pp", component.pipeline},
        NamedSize{"cp", component.context}, NamedSize{"ep", component.expert},
        NamedSize{"etp", component.expert_tensor}, NamedSize{"dp", component.data}}) {
    if (named.size < 1) {
      return fail(Code::kComponentLayout, "component {}: found {}={}, expected at least 1",
                  spec.name, named.key, named.size);
    }
    if (named.size > kMostComponentRanks) {
      return fail(Code::kLimit, "component {}: found {}={}, expected at most {}", spec.name,
                  named.key, named.size, kMostComponentRanks);
    }
  }
  if (component.rank_offset < 0 || component.rank_offset > kMostComponentRanks) {
    return fail(Code::kComponentLayout, "component {}: found rank_offset={}, expected 0 to {}",
                spec.name, component.rank_offset, kMostComponentRanks);
  }
  if (component.tensor * component.context > kMostComponentRanks ||
      component.tensor * component.context * component.pipeline > kMostComponentRanks ||
      component.ranks() > kMostComponentRanks) {
    return fail(Code::kLimit, "component {}: found tp*cp*pp*dp beyond {} ranks", spec.name,
                kMostComponentRanks);
  }
  if (!std::has_single_bit(static_cast<std::uint64_t>(component.tensor))) {
    return fail(Code::kComponentLayout,
                "component {}: found tp={}, expected a power of two: modules exchange activations "
                "along it",
                spec.name, component.tensor);
  }
  if (spec.name != kLanguage && (component.expert > 1 || component.expert_tensor > 1)) {
    return fail(Code::kComponentLayout,
                "component {}: found ep={} and etp={}, expected 1: only language has experts",
                spec.name, component.expert, component.expert_tensor);
  }
  return component;
}

// Why a layout whose ranks are all known does not fit; empty where it does.
std::string misfit(const std::vector<Component>& components) {
  for (const Component& c : components) {
    if (c.tensor * c.context * c.data % (c.expert_tensor * c.expert) != 0) {
      return translated(
          "component {}: found tp={}, cp={}, dp={}, expected their product to be a multiple of "
          "etp*ep = {}",
          c.name, c.tensor, c.context, c.data, c.expert_tensor * c.expert);
    }
  }
  for (std::size_t i = 0; i < components.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const std::int64_t a = components[j].data;
      const std::int64_t b = components[i].data;
      if (a % b == 0 || b % a == 0) continue;
      return translated(
          "components {} and {}: found dp={} and dp={}, expected one to divide the other",
          components[j].name, components[i].name, a, b);
    }
  }
  return {};
}

class Solver {
 public:
  Solver(std::span<const ComponentSpec> specs, std::vector<Component> components,
         std::int64_t world)
      : specs_(specs), layout_{std::move(components), world} {}

  Result<ComponentLayout> solve() {
    SW_TRY(check_offsets());
    std::vector<std::size_t> open;
    std::int64_t left = layout_.world;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].data) {
        left -= layout_.components[i].ranks();
      } else {
        open.push_back(i);
      }
    }
    if (open.empty()) return finish();
    std::int64_t least = 0;
    for (const std::size_t i : open) least += layout_.components[i].ranks();  // with one replica
    if (left < least) {
      return fail(Code::kComponentLayout,
                  "found {} of {} ranks left for {}, expected at least {}; run on more ranks",
                  std::max<std::int64_t>(left, 0), layout_.world, names_of(open), least);
    }
    if (share_equally(open, left)) return layout_;
    return share_otherwise(open, left);
  }

 private:
  [[nodiscard]] std::string names_of(const std::vector<std::size_t>& open) const {
    std::string names;
    for (const std::size_t i : open) {
      names += (names.empty() ? "" : translated(" and ")) + layout_.components[i].name;
    }
    return names;
  }

  [[nodiscard]] Status check_offsets() const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!specs_[i].rank_offset || !specs_[j].rank_offset) continue;
        const Component& a = layout_.components[j];
        const Component& b = layout_.components[i];
        if (a.rank_offset < b.rank_offset + b.ranks() &&
            b.rank_offset < a.rank_offset + a.ranks()) {
          return fail(Code::kComponentLayout,
                      "components {} ({}) and {} ({}): found ranges that overlap, expected each "
                      "rank to have one component",
                      a.name, ranks_text(a), b.name, ranks_text(b));
        }
      }
    }
    return {};
  }

  // All sizes are known.
  Result<ComponentLayout> finish() {
    if (std::string reason = misfit(layout_.components); !reason.empty()) {
      return fail(Code::kComponentLayout, "{}", reason);
    }
    std::int64_t sum = 0;
    for (const Component& component : layout_.components) sum += component.ranks();
    if (sum != layout_.world) {
      return fail(
          Code::kComponentLayout,
          "found components with {} ranks in all, expected the {} ranks of the run; give dp "
          "for fewer of them, or another --world-size",
          sum, layout_.world);
    }
    if (place()) return layout_;
    return fail(Code::kComponentLayout, "{}", gap());
  }

  // The first rank that no component with a given offset leaves to a component that fits.
  [[nodiscard]] std::string gap() const {
    std::vector<const Component*> fixed;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].rank_offset) fixed.push_back(&layout_.components[i]);
    }
    std::ranges::sort(fixed, {}, [](const Component* c) { return c->rank_offset; });
    std::string ranges;
    for (const Component* c : fixed) {
      ranges += fmt::format("{}{} at {}", ranges.empty() ? "" : ", ", c->name, ranks_text(*c));
    }
    return translated(
        "found {}, expected offsets that leave no gap in ranks 0-{} for the other components",
        ranges, layout_.world - 1);
  }

  bool fits() {
    std::string reason = misfit(layout_.components);
    if (reason.empty()) return place();
    if (first_misfit_.empty()) first_misfit_ = " (" + std::move(reason) + ")";
    return false;
  }

  bool share_equally(const std::vector<std::size_t>& open, std::int64_t left) {
    const auto count = static_cast<std::int64_t>(open.size());
    if (left % count != 0) return false;
    const std::int64_t share = left / count;
    for (const std::size_t i : open) {
      Component& component = layout_.components[i];
      component.data = 1;
      if (share % component.ranks() != 0) return false;
      component.data = share / component.ranks();
    }
    return fits();
  }

  Result<ComponentLayout> share_otherwise(const std::vector<std::size_t>& open, std::int64_t left) {
    for (const std::size_t i : open) layout_.components[i].data = 1;
    tries_ = 0;
    found_.clear();
    try_sizes(open, 0, left);
    if (found_.size() == 1 && tries_ < kMostTries) return found_.front();
    if (found_.empty() && tries_ < kMostTries) {
      return fail(Code::kComponentLayout,
                  "no data-parallel sizes let {} use {} of the {} ranks{}; run on another number "
                  "of ranks (--world-size)",
                  names_of(open), left, layout_.world, first_misfit_);
    }
    if (found_.size() < 2) {
      return fail(Code::kComponentLayout,
                  "found too many layouts of {} ranks to try them all; give dp for {}",
                  layout_.world, names_of(open));
    }
    std::string ways;
    for (const ComponentLayout& way : found_) {
      std::string sizes;
      for (const std::size_t i : open) {
        sizes += fmt::format("{}{} dp={}", sizes.empty() ? "" : ", ", way.components[i].name,
                             way.components[i].data);
      }
      ways += (ways.empty() ? "" : translated(" or ")) + sizes;
    }
    return fail(Code::kComponentLayout, "found several layouts of {} ranks: {}; give dp for {}",
                layout_.world, ways, names_of(open));
  }

  // All ways to use up `left` ranks, until two are found.
  void try_sizes(const std::vector<std::size_t>& open, std::size_t at, std::int64_t left) {
    if (++tries_ >= kMostTries || found_.size() > 1) return;
    Component& component = layout_.components[open[at]];
    component.data = 1;
    const std::int64_t one = component.ranks();
    if (at + 1 == open.size()) {
      if (left < one || left % one != 0) return;
      component.data = left / one;
      if (fits()) found_.push_back(layout_);
      return;
    }
    for (std::int64_t data = 1; data * one < left; ++data) {
      layout_.components[open[at]].data = data;
      try_sizes(open, at + 1, left - data * one);
      if (tries_ >= kMostTries || found_.size() > 1) return;
    }
  }

  // Gives the components without an offset the free ranks.
  bool place() {
    int tries = 0;
    std::vector<bool> placed(specs_.size(), false);
    return place_from(0, placed, tries);
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as there are components
  bool place_from(std::int64_t rank, std::vector<bool>& placed, int& tries) {
    if (++tries > kMostTries) return false;
    if (rank == layout_.world) return std::ranges::all_of(placed, std::identity());
    std::int64_t end = layout_.world;  // of the free ranks
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (!specs_[i].rank_offset) continue;
      const Component& component = layout_.components[i];
      if (component.rank_offset == rank) {
        if (rank + component.ranks() > layout_.world) return false;
        placed[i] = true;
        if (place_from(rank + component.ranks(), placed, tries)) return true;
        placed[i] = false;
        return false;
      }
      if (component.rank_offset > rank) end = std::min(end, component.rank_offset);
    }
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      Component& component = layout_.components[i];
      if (specs_[i].rank_offset || placed[i] || rank + component.ranks() > end) continue;
      placed[i] = true;
      component.rank_offset = rank;
      if (place_from(rank + component.ranks(), placed, tries)) return true;
      placed[i] = false;
    }
    return false;
  }

  std::span<const ComponentSpec> specs_;
  ComponentLayout layout_;
  std::vector<ComponentLayout> found_;
  std::string first_misfit_;  ///< of the sizes that were tried
  int tries_ = 0;
};

}  // namespace

const Component* ComponentLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(components, name, &Component::name);
  return found == components.end() ? nullptr : &*found;
}

Result<ComponentLayout> solve_component_layout(std::span<const ComponentSpec> specs,
                                               std::optional<std::int64_t> world) {
  if (std::ranges::find(specs, kLanguage, &ComponentSpec::name) == specs.end()) {
    return fail(Code::kComponentLayout,
                "the component 'language' is missing; give it with --component language=tp=N");
  }
  if (specs.size() > kMostComponents) {
    return fail(Code::kLimit, "found {} components, expected at most {}", specs.size(),
                kMostComponents);
  }
  std::vector<Component> components;
  std::int64_t sum = 0;
  for (const ComponentSpec& spec : specs) {
    components.push_back(SW_TRY(component_of(spec)));
    sum += components.back().ranks();
  }
  if (world && (*world < 1 || *world > kMostComponentRanks)) {
    return fail(Code::kComponentLayout, "found a run of {} ranks, expected 1 to {}", *world,
                kMostComponentRanks);
  }
  if (world) return Solver(specs, std::move(components), *world).solve();
  // Each has one replica where the caller does not say, so all sizes are known.
  std::vector<ComponentSpec> whole(specs.begin(), specs.end());
  for (ComponentSpec& spec : whole) spec.data = spec.data.value_or(1);
  return Solver(whole, std::move(components), sum).solve();
}

}  // namespace shardwright
