// SPDX-License-Identifier: Apache-2.0
#include "model/kept_alike.h"

#include <algorithm>
#include <map>

#include "layout/lost_siblings.h"

namespace shardwright {
namespace {

/// The tensors of one part.
class Part {
 public:
  Part(const AlikePart& part, Side side, const TensorIndex& present)
      : part_(part), prefixes_(side == Side::kMegatron ? std::vector{part.megatron} : part.hf) {
    for (const TensorDesc& tensor : present.tensors()) {
      if (prefix_of(tensor.name) != nullptr) tensors_.push_back(&tensor);
    }
  }

  [[nodiscard]] const std::vector<const TensorDesc*>& tensors() const { return tensors_; }
  [[nodiscard]] std::string any_name() const { return prefixes_.front() + "*"; }

  /// Whole names, spelled as the part's others are.
  [[nodiscard]] std::set<std::string> lost() const {
    std::set<std::string> lost;
    if (tensors_.empty() || part_.holds.empty()) return lost;
    const std::string stem = stem_of_held();
    const std::size_t spelling = spelling_of_held(stem);
    for (const HeldTensor& held : part_.holds) {
      if (has_any(stem, held)) continue;
      lost.insert(stem + held.names[std::min(spelling, held.names.size() - 1)]);
    }
    return lost;
  }

 private:
  [[nodiscard]] const std::string* prefix_of(std::string_view tensor) const {
    const auto begins = [&](const std::string& prefix) { return tensor.starts_with(prefix); };
    const auto prefix = std::ranges::find_if(prefixes_, begins);
    return prefix == prefixes_.end() ? nullptr : &*prefix;
  }

  // What is in front of most of the names: a prefix, or one with a module more. A name may be that
  // of another module's tensor too.
  [[nodiscard]] std::string stem_of_held() const {
    std::map<std::string_view, std::size_t> stems;
    std::string_view best = *prefix_of(tensors_.front()->name);
    for (const HeldTensor& held : part_.holds) {
      for (const std::string& name : held.names) count_stems(name, stems);
    }
    for (const auto& [stem, count] : stems) {
      const auto most = stems.find(best);
      if (most == stems.end() || count > most->second) best = stem;
    }
    return std::string(best);
  }

  void count_stems(std::string_view name, std::map<std::string_view, std::size_t>& stems) const {
    for (const TensorDesc* tensor : tensors_) {
      const std::string_view whole = tensor->name;
      if (!whole.ends_with(name)) continue;
      const std::string_view stem = whole.substr(0, whole.size() - name.size());
      if (stem.ends_with('.') && stem.size() >= prefix_of(whole)->size()) ++stems[stem];
    }
  }

  // Which of several spellings the others have: the first ones go together, and so on.
  [[nodiscard]] std::size_t spelling_of_held(const std::string& stem) const {
    std::map<std::size_t, std::size_t> counts;
    for (const HeldTensor& held : part_.holds) {
      for (std::size_t i = 0; held.names.size() > 1 && i < held.names.size(); ++i) {
        counts[i] += has(stem + held.names[i]) ? 1U : 0U;
      }
    }
    const auto most =
        std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
    return most == counts.end() ? 0 : most->first;
  }

  [[nodiscard]] bool has(std::string_view whole) const {
    return std::ranges::any_of(tensors_,
                               [&](const TensorDesc* tensor) { return tensor->name == whole; });
  }

  [[nodiscard]] bool has_any(const std::string& stem, const HeldTensor& held) const {
    return std::ranges::any_of(held.names,
                               [&](const std::string& name) { return has(stem + name); });
  }

  const AlikePart& part_;
  std::vector<std::string> prefixes_;
  std::vector<const TensorDesc*> tensors_;
};

}  // namespace

std::optional<std::string> alike_in_megatron(const Mapping& mapping, std::string_view hf) {
  for (const AlikePart& part : mapping.alike) {
    for (const std::string& prefix : part.hf) {
      if (hf.starts_with(prefix)) return part.megatron + std::string(hf.substr(prefix.size()));
    }
  }
  return std::nullopt;
}

std::optional<std::string> alike_in_hf(const Mapping& mapping, std::string_view megatron,
                                       const TensorIndex* wanted) {
  for (const AlikePart& part : mapping.alike) {
    if (!megatron.starts_with(part.megatron)) continue;
    const std::string rest(megatron.substr(part.megatron.size()));
    const auto is_wanted = [&](const std::string& prefix) {
      return wanted != nullptr && wanted->contains(prefix + rest);
    };
    const auto prefix = std::ranges::find_if(part.hf, is_wanted);
    return (prefix == part.hf.end() ? part.hf.front() : *prefix) + rest;
  }
  return std::nullopt;
}

std::vector<std::string> lacking_parts(const Mapping& mapping, Side side,
                                       const TensorIndex& present) {
  std::vector<std::string> lacking;
  std::vector<const TensorDesc*> kept;
  std::set<std::string> lost;
  for (const AlikePart& alike : mapping.alike) {
    const Part part(alike, side, present);
    if (part.tensors().empty() && !alike.optional) lacking.push_back(part.any_name());
    kept.insert(kept.end(), part.tensors().begin(), part.tensors().end());
    lost.merge(part.lost());
  }
  lost.merge(lost_siblings(kept));
  lost.merge(lost_weights(kept));
  lacking.insert(lacking.end(), lost.begin(), lost.end());
  return lacking;
}

}  // namespace shardwright
