// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_drafts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/dequantise.h"
#include "canonical/dora_factors.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "compare/adapter_values.h"
#include "convert/adapter_head.h"
#include "convert/adapter_layers.h"
#include "exec/threads.h"
#include "model/config.h"
#include "model/quantisation_config.h"

namespace shardwright {
namespace {

StoredTensor* find_tensor(Catalog& catalog, std::string_view name) {
  const auto found = std::ranges::find_if(
      catalog.tensors, [&](const StoredTensor& tensor) { return tensor.desc.name == name; });
  return found == catalog.tensors.end() ? nullptr : &*found;
}

// The bytes of `to` become those of `from`; its name stays.
void repoint(const StoredTensor& from, StoredTensor& to) {
  std::string name = std::move(to.desc.name);
  to = from;
  to.desc.name = std::move(name);
}

// The adapter's file behind the others, by the same number in both catalogs.
std::uint32_t add_file(const PeftAdapter& adapter, Checkpoint& source, Catalog& selected) {
  const std::string& name = adapter.catalog.files.front();
  const std::uint32_t file = source.files->add_all(adapter.files);
  for (Catalog* catalog : {&source.catalog, &selected}) {
    catalog->files.resize(file);
    catalog->files.push_back(name);
  }
  return file;
}

// The head gets a tensor of its own, with the embedding's bytes. Where the files have one, loaders
// take the embedding instead.
void give_head(const TiedHead& tied, Catalog& catalog) {
  const StoredTensor* const embedding = find_tensor(catalog, tied.embedding);
  if (embedding == nullptr) return;  // not selected
  StoredTensor head = *embedding;
  head.desc.name = tied.head;
  if (StoredTensor* const stored = find_tensor(catalog, tied.head)) {
    *stored = std::move(head);
  } else if (!tied.is_stored) {
    catalog.tensors.push_back(std::move(head));
  }
}

Status untie(const TiedHead& tied, Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  if (!request.hf_config_dir.empty()) {
    return fail(Code::kUsage,
                "--hf-config {}: its config.json makes {} and {} one, and the adapter makes them "
                "two; set tie_word_embeddings to false there and store a head, or leave "
                "--hf-config out",
                request.hf_config_dir, tied.embedding, tied.head);
  }
  Checkpoint& source = drafting.result.source;
  give_head(tied, source.catalog);
  give_head(tied, drafting.catalog);
  drafting.replace_config(SW_TRY(untied_config(source.hf_config)));
  drafting.tell(
      translated("the adapter changes {} and {} apart, which are one tensor in the base: both are "
                 "written, and "
                 "config.json says tie_word_embeddings false",
                 tied.embedding, tied.head));
  return {};
}

Status check_base(const Drafting& drafting, const std::string& config) {
  const ConvertRequest& request = drafting.request();
  if (!drafting.is_from_hf()) {
    return fail(Code::kUsage,
                "{}: found a {} checkpoint, expected a model with Hugging Face's names; convert it "
                "with --to hf first",
                request.input, drafting.source().location.format);
  }
  if (config.empty()) {
    return fail(Code::kConfigMissing,
                "{}: the base model has no config.json; give one with --hf-config", request.input);
  }
  const QuantisationConfig quantised = SW_TRY(read_quantisation_config(config));
  if (quantised.method == "bitsandbytes") {
    return fail(
        Code::kUnsupportedFormat,
        "{}: its weights are quantised by bitsandbytes; give the model that it was made of, "
        "which the adapter fits too",
        request.input);
  }
  return {};
}

std::string taken_note(const TakenAdapter& taken) {
  const PeftAdapter& adapter = taken.adapter;
  const auto modules = std::ranges::count_if(
      taken.updates.updates, [](const ModelUpdate& update) { return update.in.has_value(); });
  std::string text = translated("the {} adapter {} is added to {} module{}",
                                adapter.config.uses_dora ? "DoRA" : "LoRA", printable(adapter.path),
                                modules, modules == 1 ? "" : "s");
  for (const RowUpdate& rows : taken.updates.rows) {
    text += translated("; from it come {} rows of {}", rows.places.size(), printable(rows.tensor));
  }
  if (adapter.saved.empty()) return text;
  std::vector<std::string> names;
  for (const SavedTensor& saved : adapter.saved) names.push_back(saved.name);
  return text + translated("; from it come {}", name_list(names));
}

// Null where nothing tells it: names and axes are then what the base's files say.
const Mapping* family_of(const Drafting& drafting, const std::string& text) {
  const auto config = read_hf_config(text);
  if (!config) return nullptr;
  const auto family = chosen_family(drafting.request(), drafting.mappings, *config);
  return family ? *family : nullptr;
}

// Behind them lie those that predict further tokens, which adapters leave alone.
std::optional<std::int64_t> layers_of(const Mapping* family, const std::string& text) {
  const auto config = read_hf_config(text);
  if (family == nullptr || !config) return std::nullopt;
  const auto sizes = sizes_from_hf_config(*family, *config);
  if (!sizes) return std::nullopt;
  const auto layers = sizes->find("layers");
  return layers == sizes->end() ? std::nullopt : std::optional(layers->second);
}

// Steps after which the catalog has the model's names.
class Adding {
 public:
  explicit Adding(Drafting& drafting)
      : drafting_(drafting), plan_(drafting.result.plan), taken_(*drafting.adapter) {
    const std::vector<StoredTensor>& tensors = drafting.catalog.tensors;
    for (std::uint32_t i = 0; i < tensors.size(); ++i) by_name_.emplace(tensors[i].desc.name, i);
    for (const QuantisedSource& quantised : plan_.quantised) quantised_.insert(quantised.values);
  }

  Status run() {
    for (const SavedTensor& saved : taken_.updates.saved) SW_TRY(replace(saved));
    for (const RowUpdate& update : taken_.updates.rows) SW_TRY(replace_rows(update));
    std::vector<LearnedLengths> learned;
    for (const ModelUpdate& update : taken_.updates.updates) SW_TRY(add(update, learned));
    std::swap(plan_.source, drafting_.catalog);
    const Status status = set_dora_factors(plan_, learned, *drafting_.source().files,
                                           thread_count(drafting_.request().threads));
    std::swap(plan_.source, drafting_.catalog);
    return status;
  }

 private:
  [[nodiscard]] Catalog& catalog() { return drafting_.catalog; }

  // Of a tensor of the model; nullopt where it is not selected.
  [[nodiscard]] Result<std::optional<std::uint32_t>> place_of(const std::string& name) const {
    const auto at = by_name_.find(name);
    if (at != by_name_.end()) return std::optional(at->second);
    const auto packed = taken_.packed.find(name);
    if (packed == taken_.packed.end()) return std::optional<std::uint32_t>();
    const auto stored = by_name_.find(packed->second);
    if (stored == by_name_.end()) return std::optional<std::uint32_t>();
    return no_float(drafting_.catalog.tensors[stored->second].desc);
  }

  static std::unexpected<Error> no_float(const TensorDesc& desc) {
    return fail(Code::kDtypeUnsupported,
                "tensor {}: found {}, expected float32, bfloat16 or float16 to add the adapter to; "
                "where the base is quantised, --dtype bfloat16 multiplies it out",
                printable(desc.name), torch_name(desc.dtype));
  }

  // Of another type than the base's: what is made of it has the base's, and one rounding.
  Status replace(const SavedTensor& saved) {
    const std::optional<std::uint32_t> at = SW_TRY(place_of(saved.name));
    if (!at) return {};
    StoredTensor& base = catalog().tensors[*at];
    const StoredTensor own = taken_.stored(saved.tensor);
    if (!is_castable_float(own.desc.dtype)) {
      if (own.desc.dtype == base.desc.dtype) return {};  // replaced before
      return fail(Code::kDtypeUnsupported,
                  "{}: tensor {}: found {}, expected a type that {} is "
                  "made of",
                  taken_.adapter.path, printable(own.desc.name), torch_name(own.desc.dtype),
                  torch_name(base.desc.dtype));
    }
    for (const DraftTensor& draft : drafting_.parts.tensors) {
      if (draft.recipe.add == 0.0 || own.desc.dtype == base.desc.dtype) continue;
      for (const TensorView& view : draft.recipe.views) {
        if (view.source != *at) continue;
        return fail(Code::kDtypeUnsupported,
                    "{}: tensor {} is {}, the base's {} {}, and this target shifts it: merge to hf "
                    "first and convert that",
                    taken_.adapter.path, printable(own.desc.name), torch_name(own.desc.dtype),
                    saved.name, torch_name(base.desc.dtype));
      }
    }
    if (quantised_.erase(*at) > 0) {
      std::erase_if(plan_.quantised,
                    [&](const QuantisedSource& quantised) { return quantised.values == *at; });
    }
    repoint(own, base);
    return {};
  }

  // Each row has one rounding, to the type of what is made of the base's.
  Status replace_rows(const RowUpdate& update) {
    const std::optional<std::uint32_t> at = SW_TRY(place_of(update.tensor));
    if (!at) return {};
    const TensorDesc& base = catalog().tensors[*at].desc;
    const TensorDesc& own = taken_.adapter.catalog.tensors[update.rows].desc;
    if (!is_castable_float(base.dtype)) return no_float(base);
    if (!is_castable_float(own.dtype)) {
      return fail(Code::kDtypeUnsupported,
                  "{}: tensor {}: found {}, expected a type that {} is "
                  "made of",
                  taken_.adapter.path, printable(own.name), torch_name(own.dtype),
                  torch_name(base.dtype));
    }
    const std::uint32_t rows = append(update.rows);
    for (DraftTensor& draft : drafting_.parts.tensors) {
      take_rows(draft, *at, rows, update.places);
    }
    return {};
  }

  std::uint32_t append(std::uint32_t tensor) {
    catalog().tensors.push_back(taken_.stored(tensor));
    std::vector<std::string>& names = drafting_.stored_names;
    if (!names.empty()) names.push_back(catalog().tensors.back().desc.name);
    return static_cast<std::uint32_t>(catalog().tensors.size() - 1);
  }

  Status add(const ModelUpdate& update, std::vector<LearnedLengths>& learned) {
    const std::optional<std::uint32_t> at = SW_TRY(place_of(update.tensor));
    if (!at) return {};
    SW_TRY(check_stored(*at));
    AdaptedSource adapted{
        *at,    append(update.out), std::nullopt, update.out_axis, update.in_axis, update.scale,
        nullptr};
    if (update.in) adapted.in = append(*update.in);
    if (update.is_of_experts) adapted.each_axis = 0;
    if (update.magnitude) {
      learned.push_back(
          {static_cast<std::uint32_t>(plan_.adapted.size()), append(*update.magnitude)});
    }
    plan_.adapted.push_back(std::move(adapted));
    return {};
  }

  [[nodiscard]] Status check_stored(std::uint32_t tensor) const {
    const TensorDesc& desc = drafting_.catalog.tensors[tensor].desc;
    const bool is_multiplied = quantised_.contains(tensor);
    const bool is_float = is_castable_float(desc.dtype) && desc.dtype != DType::kF64;
    if (is_multiplied || is_float) return {};
    return no_float(desc);
  }

  Drafting& drafting_;
  Plan& plan_;
  const TakenAdapter& taken_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::unordered_set<std::uint32_t> quantised_;  // the values of plan_.quantised
};

}  // namespace

Status take_adapter(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  if (request.adapter.empty()) return {};
  PreparedConversion& result = drafting.result;
  const std::string config = SW_TRY(config_text_of(request, drafting.source()));
  SW_TRY(check_base(drafting, config));
  TakenAdapter taken;
  taken.adapter = SW_TRY(open_peft_adapter(request.adapter));
  Defects first;
  SW_TRY(check_adapter_values(taken.adapter.catalog, *taken.adapter.files, first));
  for (const std::string& note : taken.adapter.notes) drafting.tell(note);
  if (std::string note = note_on_names(taken.adapter); !note.empty()) {
    drafting.tell(std::move(note));
  }
  const ModelTensors model =
      SW_TRY(model_tensors(drafting.source().catalog, config, drafting.source().files.get()));
  const std::optional<TiedHead> tied = SW_TRY(find_tied_head(config, model.tensors));
  SW_TRY(load_mappings(drafting));
  const Mapping* const family = family_of(drafting, config);
  taken.updates = SW_TRY(match_adapter(taken.adapter, model.tensors, family, tied));
  const bool has_head = !taken.updates.head.empty();
  if (taken.updates.untied && !has_head) SW_TRY(untie(*taken.updates.untied, drafting));
  for (const QuantisedTensor& joined : model.quantised) {
    const std::string& stored = drafting.source().catalog.tensors[joined.values].desc.name;
    if (stored != joined.desc.name) taken.packed.emplace(joined.desc.name, stored);
  }
  taken.file = add_file(taken.adapter, result.source, drafting.catalog);
  for (const SavedTensor& saved : taken.updates.saved) {
    const StoredTensor own = taken.stored(saved.tensor);
    for (Catalog* catalog : {&result.source.catalog, &drafting.catalog}) {
      StoredTensor* const base = find_tensor(*catalog, saved.name);
      if (base != nullptr && base->desc.dtype == own.desc.dtype) repoint(own, *base);
    }
  }
  if (has_head) SW_TRY(give_head_of_adapter(taken, model.tensors, config, drafting));
  result.more_sources.push_back(request.adapter);
  drafting.tell(taken_note(taken));
  for (std::string& note : notes_on_gaps(taken.adapter, model.tensors, layers_of(family, config))) {
    drafting.tell(std::move(note));
  }
  drafting.adapter = std::move(taken);
  return {};
}

Status add_adapter(Drafting& drafting) {
  if (!drafting.adapter) return {};
  return Adding(drafting).run();
}

}  // namespace shardwright
