// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_rules.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "layout/adapter_shards.h"

namespace shardwright {
namespace {

constexpr std::string_view kLinearEnd = ".weight";

// A part of an adapter in both languages: Megatron-Bridge's, ms-swift's, and the latter's without
// the adapter's name.
struct AdapterPartNames {
  std::array<std::string_view, 3> megatron;
  std::string_view hf;
};
constexpr AdapterPartNames kInNames = {
    {".linear_in.weight", ".lora_A.default.weight", ".lora_A.weight"}, ".lora_A.weight"};
constexpr AdapterPartNames kOutNames = {
    {".linear_out.weight", ".lora_B.default.weight", ".lora_B.weight"}, ".lora_B.weight"};
constexpr std::string_view kMagnitude = ".adapter.weight_magnitude";
constexpr std::string_view kPeftMagnitude = ".lora_magnitude_vector";
constexpr std::string_view kAdapter = ".adapter";
constexpr std::string_view kGatedModule = ".linear_fc1";

// Of a module that is one of several in Megatron: the end of its name, and what the canonical form
// calls its adapter.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCanonicalNames = {{
    {".q_proj.weight", ".adapter_q"},
    {".k_proj.weight", ".adapter_k"},
    {".v_proj.weight", ".adapter_v"},
    {".gate_proj.weight", ".adapter_gate"},
    {".up_proj.weight", ".adapter_up"},
}};

std::string stem_of(const NameTemplate& name) {
  const std::string& text = name.text();
  return text.substr(0, text.size() - kLinearEnd.size());
}

// A matrix whose rows alone are rearranged: then B's are rearranged alike, and A is as it is.
bool is_linear_rule(const Rule& rule) {
  const bool is_one = rule.megatron.size() == 1 && !rule.hf.empty() && rule.shape.size() == 2;
  if (!is_one || !rule.stack.empty() || !rule.permute.empty() || rule.offset != 0.0) return false;
  const auto is_weight = [](const NameTemplate& name) { return name.text().ends_with(kLinearEnd); };
  if (!is_weight(rule.megatron[0]) || !std::ranges::all_of(rule.hf, is_weight)) return false;
  if (rule.megatron[0].text().ends_with("word_embeddings.weight")) return false;
  if (const auto* concat = std::get_if<Concat>(&rule.transform)) return concat->axis == 0;
  const auto* grouped = std::get_if<Grouped>(&rule.transform);
  return std::holds_alternative<Rename>(rule.transform) || (grouped != nullptr && !grouped->dealt);
}

// Each source's rows are shared out evenly, rank by rank.
Grouped in_rank_order(int sources, std::int64_t tensor, const SizeExpr& rows) {
  Grouped grouped;
  grouped.count = *SizeExpr::parse(std::to_string(tensor));
  for (int source = 0; source < sources; ++source) {
    GroupPart part;
    part.source = source;
    part.rows = part.stride = rows;
    part.repeat = part.copies = *SizeExpr::parse("1");
    part.offset = *SizeExpr::parse("0");
    grouped.parts.push_back(std::move(part));
  }
  return grouped;
}

class AdapterRules {
 public:
  AdapterRules(AdapterForm form, std::int64_t tensor) : form_(form), tensor_(tensor) {}

  Result<std::vector<Item>> of(std::span<const Item> items, const std::string& index) {
    std::vector<Item> made;
    for (const Item& item : items) {
      if (const auto* rule = std::get_if<Rule>(&item.value)) {
        if (is_linear_rule(*rule)) SW_TRY(add(*rule, index, made));
      } else if (const auto* section = std::get_if<Section>(&item.value)) {
        // Experts have adapters of other forms.
        if (!index.empty() && !section->index.empty()) continue;
        Section inner{section->index, section->condition, {}};
        inner.items = SW_TRY(of(section->items, section->index.empty() ? index : section->index));
        made.push_back({std::move(inner)});
      } else {
        Choice choice;
        for (const std::vector<Item>& option : std::get<Choice>(item.value).options) {
          choice.options.push_back(SW_TRY(of(option, index)));
        }
        made.push_back({std::move(choice)});
      }
    }
    return made;
  }

  std::vector<CopyRule> copies;

 private:
  Status add(const Rule& rule, const std::string& index, std::vector<Item>& made) {
    const bool is_apart = rule.hf.size() > 1 && form_ == AdapterForm::kCanonical;
    return is_apart ? add_canonical(rule, made) : add_fused(rule, index, made);
  }

  Status add_fused(const Rule& rule, const std::string& index, std::vector<Item>& made) {
    std::vector<std::string> stems;
    for (const NameTemplate& name : rule.hf) stems.push_back(stem_of(name));
    Rule in = SW_TRY(named(rule, kInNames, std::span(stems).first(1), ""));
    in.shape = {rank_, rule.shape[1]};
    Rule out = SW_TRY(named(rule, kOutNames, stems, ""));
    out.transform = rule.transform;
    if (form_ == AdapterForm::kSwift && is_gated(rule) && tensor_ > 1) {
      const auto sources = static_cast<int>(rule.hf.size());
      out.transform = in_rank_order(sources, tensor_, SW_TRY(rows_of_ranks(rule, sources)));
    }
    out.vocabulary = rule.vocabulary;
    out.shape = {rule.shape[0], rank_};
    Rule magnitude = base_of(rule);
    magnitude.megatron.push_back(
        SW_TRY(NameTemplate::parse(stem_of(rule.megatron[0]) + std::string(kMagnitude))));
    for (const std::string& stem : stems) {
      magnitude.hf.push_back(SW_TRY(peft_name(stem, kPeftMagnitude)));
    }
    magnitude.transform = rule.transform;
    if (is_gated(rule) && tensor_ > 1) {
      const auto sources = static_cast<int>(rule.hf.size());
      magnitude.transform = in_rank_order(sources, tensor_, SW_TRY(rows_of_ranks(rule, sources)));
    }
    magnitude.vocabulary = rule.vocabulary;
    magnitude.shape = {rule.shape[0]};
    for (Rule* each : {&in, &out, &magnitude}) made.push_back({std::move(*each)});
    for (const std::string& stem : std::span(stems).subspan(1)) {
      CopyRule copy;
      copy.hf = {SW_TRY(peft_name(stem, kInNames.hf)), index};
      copy.originals.push_back(SW_TRY(peft_name(stems[0], kInNames.hf)));
      copy.emitted_by_default = true;
      const auto is_it = [&](const CopyRule& other) {
        return other.hf.hf.text() == copy.hf.hf.text();
      };
      if (std::ranges::none_of(copies, is_it)) copies.push_back(std::move(copy));
    }
    return {};
  }

  Status add_canonical(const Rule& rule, std::vector<Item>& made) {
    for (std::size_t i = 0; i < rule.hf.size(); ++i) {
      const NameTemplate& name = rule.hf[i];
      const auto part = std::ranges::find_if(
          kCanonicalNames, [&](const auto& entry) { return name.text().ends_with(entry.first); });
      if (part == kCanonicalNames.end()) continue;
      const std::string stem = stem_of(name);
      Rule in = SW_TRY(named(rule, kInNames, std::span(&stem, 1), part->second));
      in.shape = {rank_, rule.shape[1]};
      Rule out = SW_TRY(named(rule, kOutNames, std::span(&stem, 1), part->second));
      if (const auto rows = rows_of_source(rule, i)) out.shape = {*rows, rank_};
      if (is_gated(rule) && tensor_ > 1) {
        constexpr int kHalves = 2;
        const auto sources = static_cast<std::int64_t>(rule.hf.size());
        Grouped halves =
            in_rank_order(kHalves, tensor_, SW_TRY(rows_of_ranks(rule, kHalves * sources)));
        halves.packed = halves.dealt = true;
        out.transform = std::move(halves);
      }
      made.push_back({std::move(in)});
      made.push_back({std::move(out)});
    }
    return {};
  }

  // How many of the rule's rows are one source's; nullopt where that is no sum of products.
  static std::optional<SizeExpr> rows_of_source(const Rule& rule, std::size_t source) {
    std::string sum;
    const auto add = [&](std::initializer_list<std::string> factors) {
      if (!sum.empty()) sum += " + ";
      std::string product;
      for (const std::string& factor : factors) {
        if (factor.find_first_of("+-") != std::string::npos) return false;
        product += (product.empty() ? "" : " * ") + factor;
      }
      sum += product;
      return true;
    };
    bool is_known = true;
    if (const auto* concat = std::get_if<Concat>(&rule.transform)) {
      if (!concat->extents.empty()) return concat->extents[source];
      is_known = add({fmt::format("{} / {}", rule.shape[0].text(), rule.hf.size())});
    } else if (const auto* grouped = std::get_if<Grouped>(&rule.transform)) {
      for (const GroupPart& part : grouped->parts) {
        if (part.is_absent || part.source != static_cast<int>(source)) continue;
        is_known = is_known && add({grouped->count.text(), part.rows.text(), part.repeat.text()});
      }
    }
    if (!is_known || sum.empty()) return std::nullopt;
    const Result<SizeExpr> rows = SizeExpr::parse(sum);
    return rows ? std::optional(*rows) : std::nullopt;
  }

  static bool is_gated(const Rule& rule) {
    const auto* concat = std::get_if<Concat>(&rule.transform);
    return concat != nullptr && concat->extents.empty() &&
           stem_of(rule.megatron[0]).ends_with(kGatedModule);
  }

  // Of a module's rows what each rank has of `parts` equal parts. The rule's number of rows is one
  // product.
  Result<SizeExpr> rows_of_ranks(const Rule& rule, std::int64_t parts) const {
    return SizeExpr::parse(fmt::format("{} / {} / {}", rule.shape[0].text(), parts, tensor_));
  }

  static Rule base_of(const Rule& rule) {
    Rule made;
    made.condition = rule.condition;
    made.path = rule.path;
    made.optional = true;
    return made;
  }

  static Result<NameTemplate> peft_name(const std::string& stem, std::string_view end) {
    return NameTemplate::parse(std::string(kPeftPrefix) + stem + std::string(end));
  }

  // The name that is written first.
  [[nodiscard]] std::array<std::string_view, 3> ends_of(const AdapterPartNames& part) const {
    const auto& [bridge, swift, bare] = part.megatron;
    if (form_ == AdapterForm::kSwift) return {swift, bridge, bare};
    return part.megatron;
  }

  [[nodiscard]] Result<Rule> named(const Rule& rule, const AdapterPartNames& part,
                                   std::span<const std::string> stems, std::string_view own) const {
    Rule made = base_of(rule);
    std::vector<std::string> modules = {stem_of(rule.megatron[0])};
    for (const NameTemplate& alias : rule.aliases) {
      if (alias.text().ends_with(kLinearEnd)) modules.push_back(stem_of(alias));
    }
    for (const std::string& module : modules) {
      for (const std::string_view end : ends_of(part)) {
        const bool is_bridge = end == part.megatron[0];
        if (!is_bridge && !own.empty()) continue;
        const std::string middle = is_bridge ? std::string(kAdapter) + std::string(own) : "";
        NameTemplate name = SW_TRY(NameTemplate::parse(module + middle + std::string(end)));
        (made.megatron.empty() ? made.megatron : made.aliases).push_back(std::move(name));
      }
    }
    for (const std::string& stem : stems) made.hf.push_back(SW_TRY(peft_name(stem, part.hf)));
    return made;
  }

  AdapterForm form_;
  std::int64_t tensor_;
  SizeExpr rank_ = *SizeExpr::parse(kAdapterRank);
};

// The other half of what ends so; empty for other names.
std::string partner_of(const std::string& name) {
  for (std::size_t i = 0; i < kInNames.megatron.size(); ++i) {
    for (const auto& [own, other] : {std::pair(kInNames.megatron[i], kOutNames.megatron[i]),
                                     std::pair(kOutNames.megatron[i], kInNames.megatron[i])}) {
      if (name.ends_with(own)) {
        return name.substr(0, name.size() - own.size()) + std::string(other);
      }
    }
  }
  return {};
}

bool has_end_of(std::string_view name, const AdapterPartNames& part) {
  if (name.ends_with(part.megatron[0])) return name.find(".adapter.") != std::string_view::npos;
  return name.ends_with(part.megatron[1]) || name.ends_with(part.megatron[2]);
}

}  // namespace

bool is_adapter_name(std::string_view name) {
  return has_end_of(name, kInNames) || has_end_of(name, kOutNames) || name.ends_with(kMagnitude) ||
         name.ends_with(kPeftMagnitude);
}

Result<std::optional<std::int64_t>> adapter_rank(std::span<const TensorDesc> tensors) {
  std::unordered_set<std::string_view> names;
  for (const TensorDesc& tensor : tensors) {
    if (is_adapter_name(tensor.name)) names.insert(tensor.name);
  }
  for (const TensorDesc& tensor : tensors) {
    if (!names.contains(tensor.name)) continue;
    const std::string& name = tensor.name;
    const std::string partner = partner_of(name);
    if (partner.empty() || names.contains(partner)) continue;
    return fail(Code::kUnmatchedTarget, "tensor {}: found no {} beside it, which is its other half",
                name, partner);
  }
  const TensorDesc* first = nullptr;
  std::int64_t rank = 0;
  for (const TensorDesc& tensor : tensors) {
    const bool is_in = has_end_of(tensor.name, kInNames);
    if ((!is_in && !has_end_of(tensor.name, kOutNames)) || tensor.shape.size() != 2) continue;
    const std::int64_t own = tensor.shape[is_in ? 0 : 1];
    if (first == nullptr) {
      first = &tensor;
      rank = own;
    } else if (own != rank) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found rank {}, expected {} as in {}; adapters of one rank can be "
                  "converted, for Megatron has one setting for all",
                  tensor.name, own, rank, first->name);
    }
  }
  return first == nullptr ? std::optional<std::int64_t>() : rank;
}

std::optional<std::string> adapted_module(std::string_view name) {
  const auto last_word = [](std::string_view stem) {
    return std::string(stem.substr(stem.rfind('.') + 1));
  };
  for (const std::string_view end : {kOutNames.megatron[1], kOutNames.megatron[2]}) {
    if (name.ends_with(end)) return last_word(name.substr(0, name.size() - end.size()));
  }
  const std::size_t adapter = name.find(std::string(kAdapter) + ".");
  if (adapter == std::string_view::npos || !name.ends_with(kOutNames.megatron[0])) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(adapter + kAdapter.size() + 1);
  rest = rest.substr(0, rest.find('.'));
  std::string module = last_word(name.substr(0, adapter));
  if (rest == "adapter_up") return module + "_up";
  if (rest == "adapter_gate") return module + "_gate";
  constexpr std::string_view kPart = "adapter_";
  if (rest.starts_with(kPart)) return "linear_" + std::string(rest.substr(kPart.size()));
  return module;
}

AdapterForm adapter_form(std::span<const TensorDesc> canonical) {
  for (const TensorDesc& tensor : canonical) {
    if (tensor.name.find(".adapter.adapter_") != std::string::npos) return AdapterForm::kCanonical;
    for (const AdapterPartNames& part : {kInNames, kOutNames}) {
      if (tensor.name.ends_with(part.megatron[1]) || tensor.name.ends_with(part.megatron[2])) {
        return AdapterForm::kSwift;
      }
    }
  }
  return AdapterForm::kFused;
}

bool is_in_rank_order(std::string_view name) {
  const std::optional<AdapterTensor> adapter = adapter_tensor(name);
  if (!adapter || adapter->part == AdapterTensor::Part::kIn) return false;
  const bool is_gated = adapter->module.ends_with(kGatedModule);
  if (!is_gated && !adapter->module.ends_with(".in_proj")) return false;
  return adapter->is_swift || adapter->is_half || adapter->part == AdapterTensor::Part::kMagnitude;
}

Result<Mapping> adapter_mapping(const Mapping& family, AdapterForm form, std::int64_t tensor) {
  AdapterRules rules(form, tensor);
  Mapping made = family;
  made.items = SW_TRY(rules.of(family.items, ""));
  made.copies = std::move(rules.copies);
  made.alike.clear();
  made.ignore.clear();
  return made;
}

}  // namespace shardwright
