// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "layout/adapter_shards.h"
#include "layout/expert_names.h"
#include "model/adapter_part_names.h"
#include "model/expert_parameter.h"

namespace shardwright {
namespace {

constexpr std::string_view kLinearEnd = ".weight";

// Of a module that is one of several in Megatron: the end of its name, and what the canonical form
// calls its adapter.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kCanonicalNames = {{
    {".q_proj.weight", ".adapter_q"},
    {".k_proj.weight", ".adapter_k"},
    {".v_proj.weight", ".adapter_v"},
    {".gate_proj.weight", ".adapter_gate"},
    {".up_proj.weight", ".adapter_up"},
    {".w1.weight", ".adapter_gate"},
    {".w3.weight", ".adapter_up"},
}};

std::string stem_of(const NameTemplate& name) {
  const std::string& text = name.text();
  return text.substr(0, text.size() - kLinearEnd.size());
}

// A matrix whose rows alone are rearranged: then B's are rearranged alike, and A is as it is. Those
// of experts may stand one behind another. What has no shape may be no matrix: it has no adapter
// then.
bool is_linear_rule(const Rule& rule) {
  const bool may_be_matrix = rule.shape.size() == 2 || rule.shape.empty();
  const bool is_one = rule.megatron.size() == 1 && !rule.hf.empty() && may_be_matrix;
  if (!is_one || !rule.permute.empty() || rule.offset != 0.0) return false;
  if (!rule.stack.empty() && name_in_experts(rule.megatron[0].text()).empty()) return false;
  const auto is_weight = [](const NameTemplate& name) { return name.text().ends_with(kLinearEnd); };
  if (!is_weight(rule.megatron[0]) || !std::ranges::all_of(rule.hf, is_weight)) return false;
  if (rule.megatron[0].text().ends_with("word_embeddings.weight")) return false;
  if (const auto* concat = std::get_if<Concat>(&rule.transform)) return concat->axis == 0;
  const auto* grouped = std::get_if<Grouped>(&rule.transform);
  return std::holds_alternative<Rename>(rule.transform) || (grouped != nullptr && !grouped->dealt);
}

// The experts of a layer in one tensor, of which PEFT has matrices that count them in front; rows
// may be rearranged.
bool is_packed_rule(const Rule& rule) {
  const bool is_one = rule.megatron.size() == 1 && rule.hf.size() == 1 && rule.shape.size() == 3;
  if (!is_one || !rule.stack.empty() || rule.offset != 0.0) return false;
  const std::string& megatron = rule.megatron[0].text();
  if (name_in_experts(megatron).empty() || !megatron.ends_with(kLinearEnd)) return false;
  const auto is_it = [&](std::string_view end) { return rule.hf[0].text().ends_with(end); };
  if (std::ranges::none_of(kExpertParameters, is_it)) return false;
  const auto* interleaved = std::get_if<Interleaved>(&rule.transform);
  return std::holds_alternative<Rename>(rule.transform) ||
         (interleaved != nullptr && interleaved->axis == 1);
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
  AdapterRules(const AdapterLayout& layout, std::span<const Item> family)
      : layout_(layout), is_turned_(stores_turned(family).value_or(false)) {}

  Result<std::vector<Item>> of(std::span<const Item> items, const std::string& index) {
    std::vector<Item> made;
    for (const Item& item : items) {
      if (const auto* rule = std::get_if<Rule>(&item.value)) {
        if (is_linear_rule(*rule)) SW_TRY(add(*rule, index, made));
        if (is_packed_rule(*rule)) SW_TRY(add_packed(*rule, made));
        if (layout_.form == AdapterForm::kSwift) SW_TRY(add_saved(*rule, made));
      } else if (const auto* section = std::get_if<Section>(&item.value)) {
        // A loop in that over layers has names of its own in Megatron too.
        if (!index.empty() && !section->index.empty()) continue;
        Section inner{section->index, section->condition, {}};
        inner.items = SW_TRY(of(section->items, section->index.empty() ? index : section->index));
        made.push_back({std::move(inner)});
      } else {
        Choice choice;
        for (const std::vector<Item>& option : std::get<Choice>(item.value).options) {
          choice.options.push_back(SW_TRY(of(option, index)));
        }
        // The first one that fits is written.
        if (layout_.packs_experts) std::ranges::stable_partition(choice.options, has_packed);
        made.push_back({std::move(choice)});
      }
    }
    return made;
  }

  std::vector<CopyRule> copies;

 private:
  Status add(const Rule& rule, const std::string& index, std::vector<Item>& made) {
    const bool is_apart = rule.hf.size() > 1 && layout_.form == AdapterForm::kCanonical;
    return is_apart ? add_canonical(rule, index, made) : add_fused(rule, index, made);
  }

  static bool has_packed(const std::vector<Item>& option) {
    return std::ranges::any_of(option, [](const Item& item) {
      const auto* rule = std::get_if<Rule>(&item.value);
      if (rule != nullptr) return rule->shape.size() == 3;
      const auto* section = std::get_if<Section>(&item.value);
      if (section != nullptr) return has_packed(section->items);
      const auto* choice = std::get_if<Choice>(&item.value);
      return choice != nullptr && std::ranges::any_of(choice->options, has_packed);
    });
  }

  // CanonicalLoRA's two of gate and up, by other names, are not one of both; nor have all experts
  // one in a parameter.
  Status add_packed(const Rule& rule, std::vector<Item>& made) const {
    const SizeExpr rank = *SizeExpr::parse(kExpertAdapterRank);
    const std::string& parameter = rule.hf[0].text();
    Rule in = SW_TRY(named(rule, kInNames, std::span(&parameter, 1), ""));
    in.shape = {rule.shape[0], rank, rule.shape[2]};
    Rule out = SW_TRY(named(rule, kOutNames, std::span(&parameter, 1), ""));
    out.shape = {rule.shape[0], rule.shape[1], rank};
    out.transform = rule.transform;
    if (is_of_all_experts(in) || is_of_all_experts(out)) return {};
    Choice choice;
    if (is_turned_) {
      // A over what the linear gives, B over what it takes.
      Rule left = out;
      Rule right = in;
      left.hf = in.hf;
      right.hf = out.hf;
      left.permute = right.permute = {0, 2, 1};
      choice.options.push_back({{std::move(left)}, {std::move(right)}});
    }
    choice.options.push_back({{std::move(in)}, {std::move(out)}});
    made.push_back({std::move(choice)});
    return {};
  }

  // A tensor that is trained whole.
  static Status add_saved(const Rule& rule, std::vector<Item>& made) {
    if (rule.hf.empty() || !rule.stack.empty() || rule.offset != 0.0) return {};
    Rule saved = rule;
    saved.optional = true;
    for (NameTemplate& name : saved.megatron) name = SW_TRY(saved_name(name.text(), 1));
    for (NameTemplate& name : saved.aliases) name = SW_TRY(saved_name(name.text(), 1));
    saved.aliases.push_back(SW_TRY(saved_name(rule.megatron[0].text(), 2)));
    for (NameTemplate& name : saved.hf) name = SW_TRY(peft_name(name.text(), ""));
    made.push_back({std::move(saved)});
    return {};
  }

  // With the mark in front of so many words.
  static Result<NameTemplate> saved_name(const std::string& name, int words) {
    std::size_t dot = name.size();
    while (words-- > 0 && dot != 0 && dot != std::string::npos) dot = name.rfind('.', dot - 1);
    const std::size_t at = dot == std::string::npos ? 0 : dot + 1;
    return NameTemplate::parse(name.substr(0, at) + std::string(kSavedWhole) + name.substr(at));
  }

  Status add_fused(const Rule& rule, const std::string& index, std::vector<Item>& made) {
    std::vector<std::string> stems;
    for (const NameTemplate& name : rule.hf) stems.push_back(stem_of(name));
    Rule in = SW_TRY(named(rule, kInNames, std::span(stems).first(1), ""));
    in.shape = shape_of_in(rule);
    Rule out = SW_TRY(named(rule, kOutNames, stems, ""));
    out.transform = rule.transform;
    // ms-swift has no experts whose linears are shared out.
    const bool is_of_experts = !rule.stack.empty();
    const bool is_shared_out = layout_.form == AdapterForm::kSwift && is_gated(rule) &&
                               layout_.tensor > 1 && !is_of_experts;
    // How many rows a rank has is not known where the rule does not say how many there are.
    if (is_shared_out && rule.shape.empty()) return {};
    if (is_shared_out) {
      const auto sources = static_cast<int>(rule.hf.size());
      out.transform = in_rank_order(sources, ranks_of(rule), SW_TRY(rows_of_ranks(rule, sources)));
    }
    out.vocabulary = rule.vocabulary;
    if (!rule.shape.empty()) out.shape = {rule.shape[0], rank_of(rule)};
    Rule magnitude = base_of(rule);
    magnitude.megatron.push_back(
        SW_TRY(NameTemplate::parse(stem_of(rule.megatron[0]) + std::string(kMagnitude))));
    for (const std::string& stem : stems) {
      magnitude.hf.push_back(SW_TRY(peft_name(stem, kPeftMagnitude)));
    }
    magnitude.transform = rule.transform;
    const bool is_in_parts = is_gated(rule) && ranks_of(rule) > 1;
    if (is_in_parts && !rule.shape.empty()) {
      const auto sources = static_cast<int>(rule.hf.size());
      magnitude.transform =
          in_rank_order(sources, ranks_of(rule), SW_TRY(rows_of_ranks(rule, sources)));
    }
    magnitude.vocabulary = rule.vocabulary;
    if (!rule.shape.empty()) magnitude.shape = {rule.shape[0]};
    const bool has_magnitude = !is_of_experts && !(is_in_parts && rule.shape.empty());
    if (has_magnitude) made.push_back({std::move(magnitude)});
    for (const std::string& stem : std::span(stems).subspan(1)) {
      SW_TRY(add_copy(rule, stem, stems[0], kInNames, index));
    }
    SW_TRY(share(rule, kInNames, stems, index, in));
    SW_TRY(share(rule, kOutNames, stems, index, out));
    for (Rule* each : {&in, &out}) made.push_back({std::move(*each)});
    return {};
  }

  // The copies of one module's tensor that is another's.
  Status add_copy(const Rule& rule, const std::string& stem, const std::string& original,
                  const AdapterPartNames& part, const std::string& index) {
    CopyRule copy;
    copy.hf = {SW_TRY(peft_name(stem, part.hf)), index};
    copy.originals.push_back(SW_TRY(peft_name(original, part.hf)));
    copy.emitted_by_default = true;
    copy.inner = rule.stack;
    // A layer may not have the module (keys and values that an earlier one gives).
    if (rule.stack.empty()) copy.beside = SW_TRY(peft_name(stem, kOutNames.hf));
    const auto is_it = [&](const CopyRule& other) {
      return other.hf.hf.text() == copy.hf.hf.text();
    };
    if (std::ranges::none_of(copies, is_it)) copies.push_back(std::move(copy));
    return {};
  }

  [[nodiscard]] bool is_of_all_experts(const Rule& made) const {
    return layout_.of_all_experts.contains(name_in_experts(made.megatron[0].text()));
  }

  // Where all experts have one tensor, the first one's is made of it, and the others' repeat that.
  Status share(const Rule& rule, const AdapterPartNames& part, std::span<const std::string> stems,
               const std::string& index, Rule& made) {
    if (rule.stack.empty() || !is_of_all_experts(made)) return {};
    made.stack.clear();
    for (std::size_t i = 0; i < made.hf.size(); ++i) {
      const std::string first = with_number(stems[i], rule.stack, 0);
      SW_TRY(add_copy(rule, stems[i], first, part, index));
      made.hf[i] = SW_TRY(peft_name(first, part.hf));
    }
    return {};
  }

  static std::string with_number(std::string text, const std::string& variable, int number) {
    const std::string word = "{" + variable + "}";
    const std::size_t at = text.find(word);
    if (at != std::string::npos) text.replace(at, word.size(), std::to_string(number));
    return text;
  }

  Status add_canonical(const Rule& rule, const std::string& index, std::vector<Item>& made) {
    for (std::size_t i = 0; i < rule.hf.size(); ++i) {
      const NameTemplate& name = rule.hf[i];
      const auto part = std::ranges::find_if(
          kCanonicalNames, [&](const auto& entry) { return name.text().ends_with(entry.first); });
      if (part == kCanonicalNames.end()) continue;
      const bool is_in_halves = is_gated(rule) && ranks_of(rule) > 1;
      if (is_in_halves && rule.shape.empty()) continue;
      const std::string stem = stem_of(name);
      Rule in = SW_TRY(named(rule, kInNames, std::span(&stem, 1), part->second));
      in.shape = shape_of_in(rule);
      Rule out = SW_TRY(named(rule, kOutNames, std::span(&stem, 1), part->second));
      if (const auto rows = rows_of_source(rule, i)) out.shape = {*rows, rank_of(rule)};
      if (is_in_halves) {
        constexpr int kHalves = 2;
        const auto sources = static_cast<std::int64_t>(rule.hf.size());
        Grouped halves =
            in_rank_order(kHalves, ranks_of(rule), SW_TRY(rows_of_ranks(rule, kHalves * sources)));
        halves.packed = halves.dealt = true;
        out.transform = std::move(halves);
      }
      SW_TRY(share(rule, kInNames, std::span(&stem, 1), index, in));
      SW_TRY(share(rule, kOutNames, std::span(&stem, 1), index, out));
      if (const auto other = name_of_repeated(rule, i)) {
        SW_TRY(repeat_as(rule, kInNames, *other, in));
        SW_TRY(repeat_as(rule, kOutNames, *other, out));
      }
      made.push_back({std::move(in)});
      made.push_back({std::move(out)});
    }
    return {};
  }

  // The canonical form's name of an adapter that a source's stands for too: values that are keys.
  static std::optional<std::string_view> name_of_repeated(const Rule& rule, std::size_t source) {
    const auto* grouped = std::get_if<Grouped>(&rule.transform);
    if (grouped == nullptr) return std::nullopt;
    constexpr std::size_t kAttention = 3;  // of kCanonicalNames: q, k, v
    for (std::size_t p = 0; p < std::min(grouped->parts.size(), kAttention); ++p) {
      const GroupPart& part = grouped->parts[p];
      if (part.repeats && part.source == static_cast<int>(source)) return kCanonicalNames[p].second;
    }
    return std::nullopt;
  }

  // Megatron's tensor once more, under another name.
  [[nodiscard]] Status repeat_as(const Rule& rule, const AdapterPartNames& part,
                                 std::string_view own, Rule& made) const {
    made.megatron.push_back(SW_TRY(named(rule, part, {}, own)).megatron[0]);
    made.aliases.clear();
    made.transform = Repeat{};
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
      if (rule.shape.empty()) return std::nullopt;
      is_known = add({fmt::format("{} / {}", rule.shape[0].text(), rule.hf.size())});
    } else if (const auto* grouped = std::get_if<Grouped>(&rule.transform)) {
      for (const GroupPart& part : grouped->parts) {
        const bool is_own = !part.is_absent && !part.repeats;
        if (!is_own || part.source != static_cast<int>(source)) continue;
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
    return SizeExpr::parse(
        fmt::format("{} / {} / {}", rule.shape[0].text(), parts, ranks_of(rule)));
  }

  [[nodiscard]] std::int64_t ranks_of(const Rule& rule) const {
    return rule.stack.empty() ? layout_.tensor : layout_.expert_tensor;
  }

  // Of A; nothing where the rule does not say what it is of.
  static std::vector<SizeExpr> shape_of_in(const Rule& rule) {
    if (rule.shape.empty()) return {};
    return {rank_of(rule), rule.shape[1]};
  }

  static SizeExpr rank_of(const Rule& rule) {
    return *SizeExpr::parse(rule.stack.empty() ? kAdapterRank : kExpertAdapterRank);
  }

  static Rule base_of(const Rule& rule) {
    Rule made;
    made.condition = rule.condition;
    made.path = rule.path;
    made.stack = rule.stack;
    made.optional = true;
    return made;
  }

  static Result<NameTemplate> peft_name(const std::string& stem, std::string_view end) {
    return NameTemplate::parse(std::string(kPeftPrefix) + stem + std::string(end));
  }

  // The name that is written first.
  [[nodiscard]] std::array<std::string_view, 3> ends_of(const AdapterPartNames& part) const {
    const auto& [bridge, swift, bare] = part.megatron;
    if (layout_.form == AdapterForm::kSwift) return {swift, bridge, bare};
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

  const AdapterLayout& layout_;
  bool is_turned_;
};

// A has the columns of a linear, B its rows.
SizeShown shown_by_adapter(const SizeShown& linear) {
  const AdapterPartNames& part = linear.axis == 0 ? kOutNames : kInNames;
  const auto stem = [](const std::string& name) {
    return name.ends_with(kLinearEnd) ? name.substr(0, name.size() - kLinearEnd.size()) : name;
  };
  SizeShown shown = linear;
  if (!linear.hf.empty()) shown.hf = fmt::format("{}{}{}", kPeftPrefix, stem(linear.hf), part.hf);
  if (!linear.megatron.empty()) {
    shown.megatron = fmt::format("{}{}{}", stem(linear.megatron), kAdapter, part.megatron[0]);
  }
  return shown;
}

}  // namespace

// Files of Llama 4 have no other form.
std::optional<bool> stores_turned(std::span<const Item> items) {
  std::optional<bool> all;
  const auto add = [&](std::optional<bool> one) {
    if (one) all = all.value_or(true) && *one;
  };
  for (const Item& item : items) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) {
      if (!is_packed_rule(*rule) || !stem_of(rule->megatron[0]).ends_with(kGatedModule)) continue;
      add(!rule->permute.empty() && std::holds_alternative<Rename>(rule->transform));
    } else if (const auto* section = std::get_if<Section>(&item.value)) {
      add(stores_turned(section->items));
    } else {
      for (const auto& option : std::get<Choice>(item.value).options) add(stores_turned(option));
    }
  }
  return all;
}

bool numbers_experts(std::span<const Item> items) {
  return std::ranges::any_of(items, [](const Item& item) {
    if (const auto* rule = std::get_if<Rule>(&item.value)) {
      return is_linear_rule(*rule) && !rule->stack.empty();
    }
    if (const auto* section = std::get_if<Section>(&item.value)) {
      return numbers_experts(section->items);
    }
    const auto& options = std::get<Choice>(item.value).options;
    return std::ranges::any_of(
        options, [](const std::vector<Item>& option) { return numbers_experts(option); });
  });
}

Result<Mapping> adapter_mapping(const Mapping& family, const AdapterLayout& layout) {
  AdapterRules rules(layout, family.items);
  Mapping made = family;
  made.items = SW_TRY(rules.of(family.items, ""));
  made.copies = std::move(rules.copies);
  for (SizeRule& size : made.sizes) {
    for (SizeShown& shown : size.shown_by) shown = shown_by_adapter(shown);
  }
  made.alike.clear();
  made.ignore.clear();
  return made;
}

}  // namespace shardwright
