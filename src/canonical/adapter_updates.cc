// SPDX-License-Identifier: Apache-2.0
#include "canonical/adapter_updates.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/classifier_config.h"
#include "format/peft/square_experts.h"
#include "layout/model_head.h"
#include "model/expert_parameter.h"
#include "model/model_part.h"
#include "model/module_names.h"
#include "model/turned_weights.h"

namespace shardwright {
namespace {

class Matching {
 public:
  Matching(const PeftAdapter& adapter, std::span<const TensorDesc> model, const Mapping* family,
           const std::optional<TiedHead>& tied)
      : adapter_(adapter), family_(family), tied_(tied) {
    if (family != nullptr) parts_ = family->parts;
    for (const TensorDesc& desc : model) {
      model_.emplace(desc.name, &desc);
      roots_.insert(desc.name.substr(0, desc.name.find('.')) + ".");
      const PartName name = part_name(parts_, desc.name);
      if (name.part != nullptr) of_parts_.emplace(std::pair(name.part, name.alone), desc.name);
      if (family == nullptr || family->modules.empty()) continue;
      of_modules_.emplace(with_module_words(family->modules, desc.name), desc.name);
    }
    if (tied && !tied->is_stored && model_.contains(tied->embedding)) {
      model_.emplace(tied->head, model_.at(tied->embedding));
    }
  }

  Result<AdapterUpdates> run() {
    for (const SavedTensor& saved : adapter_.saved) SW_TRY(add_saved(saved));
    std::set<std::string_view> added;  // the names of what is stored for them
    for (const LoraParameter& parameter : adapter_.parameters) {
      if (!model_.contains(in_base(parameter.name))) {
        SW_TRY(check_one_by_one(adapter_, parameter));
        continue;
      }
      SW_TRY(add_parameter(parameter));
      added.insert(own(parameter.stored_out).name);
    }
    for (const LoraModule& module : adapter_.modules) {
      if (!added.contains(module.stored_out)) SW_TRY(add_module(module));
    }
    if (tied_ && std::ranges::any_of(changed_, [&](const std::string& name) {
          return name == tied_->embedding || name == tied_->head;
        })) {
      result_.untied = tied_;
    }
    SW_TRY(check_all_saved());
    for (const TokenRows& rows : adapter_.rows) SW_TRY(add_rows(rows));
    SW_TRY(check_all_rows());
    return std::move(result_);
  }

 private:
  [[nodiscard]] const TensorDesc& own(std::uint32_t tensor) const {
    return adapter_.catalog.tensors[tensor].desc;
  }

  // What the base calls a tensor: as the adapter does, as the same part of its family, or as files
  // of its family call what is named so in modules.
  [[nodiscard]] std::string in_base(const std::string& name) const {
    if (model_.contains(name)) return name;
    const PartName own = part_name(parts_, name);
    const auto found = of_parts_.find(std::pair(own.part, own.alone));
    if (found != of_parts_.end()) return found->second;
    const auto of_module = of_modules_.find(name);
    if (of_module != of_modules_.end()) return of_module->second;
    // One that was trained on the model without its head's class lacks that class's `model.`.
    std::vector<std::string> longer;
    for (const std::string& root : roots_) {
      if (model_.contains(root + name)) longer.push_back(root + name);
    }
    return longer.size() == 1 ? longer[0] : name;
  }

  // Notes that it is changed.
  Result<const TensorDesc*> find(const std::string& name, std::uint32_t asked_by) {
    const TensorDesc* const found = SW_TRY(known(name, asked_by));
    changed_.push_back(name);
    return found;
  }

  [[nodiscard]] Result<const TensorDesc*> known(const std::string& name,
                                                std::uint32_t asked_by) const {
    const auto found = model_.find(name);
    if (found != model_.end()) return found->second;
    return fail(Code::kUnmatchedSource,
                "{}: tensor {}: the base model has no tensor {}{}; is this the adapter of another "
                "model?",
                adapter_.path, printable(own(asked_by).name), printable(name), made_for());
  }

  [[nodiscard]] std::string made_for() const {
    const std::string& base = adapter_.config.base_model;
    return base.empty() ? "" : translated(" (the adapter was made for {})", printable(base));
  }

  std::unexpected<Error> wrong_shape(std::uint32_t tensor, const std::string& name,
                                     const TensorDesc& model) const {
    return fail(Code::kShapeMismatch, "{}: tensor {} {} does not fit the base model's {} {}{}",
                adapter_.path, printable(own(tensor).name), to_string(own(tensor).shape),
                printable(name), to_string(model.shape), made_for());
  }

  // The linear that transformers' classes for such a task have.
  [[nodiscard]] bool is_of_classifier(const SavedTensor& saved) const {
    const std::vector<std::string_view> parts = split_at(saved.name, '.');
    const int rank = own(saved.tensor).shape.size();
    return is_classifier_task(adapter_.config.task_type) && parts.size() == 2 &&
           (parts[0] == "score" || parts[0] == "classifier") &&
           ((parts[1] == "weight" && rank == 2) || (parts[1] == "bias" && rank == 1));
  }

  Status add_saved(const SavedTensor& saved) {
    const std::string name = in_base(saved.name);
    if (!model_.contains(name) && is_of_classifier(saved)) {
      result_.head.push_back(saved);
      return {};
    }
    if (!model_.contains(name) && has_head_name(name)) {
      return fail(Code::kUnmatchedSource,
                  "{}: tensor {}: a head that was trained with the adapter, and the base model has "
                  "none; save the base with such a head (AutoModelForSequenceClassification or "
                  "AutoModelForTokenClassification of transformers) and give that folder",
                  adapter_.path, printable(own(saved.tensor).name));
    }
    const auto is_alike = [&](const SavedTensor& other) {
      return other.is_under_rows && own(other.tensor).shape == own(saved.tensor).shape;
    };
    if (saved.is_under_rows && is_said_of_embedding(name, adapter_.saved, is_alike)) return {};
    const TensorDesc* const model =
        SW_TRY(saved.is_under_rows ? known(name, saved.tensor) : find(name, saved.tensor));
    if (!(own(saved.tensor).shape == model->shape)) {
      return wrong_shape(saved.tensor, name, *model);
    }
    result_.saved.push_back({name, saved.tensor, saved.is_under_rows});
    if (saved.is_under_rows && is_tied(name) && tied_->is_stored) {
      result_.saved.push_back({tied_->head, saved.tensor, true});
    }
    return {};
  }

  // Of a head that is the embedding, of which something alike says the same.
  [[nodiscard]] bool is_said_of_embedding(std::string_view name, const auto& said,
                                          const auto& is_alike) const {
    if (!tied_ || name != tied_->head) return false;
    return std::ranges::any_of(said, [&](const auto& other) {
      return in_base(weight_of(other)) == tied_->embedding && is_alike(other);
    });
  }

  static std::string weight_of(const SavedTensor& saved) { return saved.name; }
  static std::string weight_of(const TokenRows& rows) { return rows.module + ".weight"; }

  // Trainers list modules that their model has not; of those that it has all was trained. What head
  // and embedding share may be saved once.
  [[nodiscard]] Status check_all_saved() const {
    std::set<std::string_view> saved;
    for (const SavedTensor& tensor : result_.saved) saved.insert(tensor.name);
    const auto is_saved = [&](const std::string& name) {
      if (saved.contains(name)) return true;
      if (!tied_ || (name != tied_->head && name != tied_->embedding)) return false;
      return saved.contains(name == tied_->head ? tied_->embedding : tied_->head);
    };
    std::vector<std::string> missing;
    for (const auto& [name, desc] : model_) {
      const std::string_view module = std::string_view(name).substr(0, name.rfind('.'));
      if (adapter_.config.saves(module) && !is_saved(name)) missing.push_back(name);
    }
    if (missing.empty()) return {};
    std::ranges::sort(missing);
    return fail(Code::kUnmatchedSource,
                "{}: {}: found nothing of {}, which {} lists in modules_to_save and the base model "
                "has; the values that were trained are not there",
                adapter_.path, adapter_.weights_file, name_list(missing), kPeftConfigFile);
  }

  // PEFT trains head and embedding alike where they are one, and may save the rows twice.
  Status add_rows(const TokenRows& rows) {
    const std::string name = in_base(weight_of(rows));
    const auto same_tokens = [&](const TokenRows& other) { return other.tokens == rows.tokens; };
    if (is_said_of_embedding(name, adapter_.rows, same_tokens)) return {};
    const TensorDesc* const model = SW_TRY(known(name, rows.tensor));
    if (model->shape.size() != 2 || model->shape[1] != own(rows.tensor).shape[1]) {
      return wrong_shape(rows.tensor, name, *model);
    }
    for (const std::int64_t token : rows.tokens) {
      if (token < model->shape[0]) continue;
      return fail(
          Code::kShapeMismatch,
          "{}: tensor {}: found token {}, but {} of the base model has {} rows; give it the "
          "rows first, as was done before training",
          adapter_.path, printable(own(rows.tensor).name), token, printable(name), model->shape[0]);
    }
    std::vector<std::string> names = {name};
    if (is_tied(name)) names = {tied_->embedding};
    if (is_tied(name) && tied_->is_stored) names.push_back(tied_->head);
    for (std::string& tensor : names) {
      const bool is_changed =
          std::ranges::find(changed_, tensor) != changed_.end() ||
          std::ranges::find(result_.rows, tensor, &RowUpdate::tensor) != result_.rows.end();
      if (is_changed || (is_tied(tensor) && result_.untied)) {
        return fail(Code::kUnsupportedFormat,
                    "{}: tensor {}: the adapter changes {}, or what is tied to it, in another way "
                    "too; let PEFT merge this adapter (merge_and_unload)",
                    adapter_.path, printable(own(rows.tensor).name), printable(tensor));
      }
      result_.rows.push_back({std::move(tensor), rows.tensor, rows.tokens});
    }
    return {};
  }

  [[nodiscard]] bool is_tied(std::string_view name) const {
    return tied_ && (name == tied_->embedding || name == tied_->head);
  }

  // What head and embedding share is saved once.
  [[nodiscard]] Status check_all_rows() const {
    for (const TrainedTokens& trained : adapter_.config.trained_tokens) {
      const bool is_found = std::ranges::any_of(adapter_.rows, [&](const TokenRows& rows) {
        return adapter_.config.tokens_of(rows.module) == &trained.tokens ||
               (is_tied(in_base(weight_of(rows))) && rows.tokens == trained.tokens);
      });
      if (is_found) continue;
      return fail(Code::kUnmatchedSource,
                  "{}: {}: found no rows of {}, which {} lists in trainable_token_indices; the "
                  "values that were trained are not there",
                  adapter_.path, adapter_.weights_file,
                  trained.module.empty() ? translated("the embedding") : printable(trained.module),
                  kPeftConfigFile);
    }
    return {};
  }

  // Of a parameter that holds all experts.
  [[nodiscard]] Status check_experts(const LoraModule& module, const std::string& tensor) const {
    if (!model_.contains(tensor)) {
      return fail(Code::kUnmatchedSource,
                  "{}: tensor {}: the base model has neither {}, which holds all experts of a "
                  "layer, nor {}{}; is this the adapter of another model?",
                  adapter_.path, printable(module.stored_out), printable(module.configured),
                  printable(tensor), made_for());
    }
    // `...experts.0.up_proj.weight`
    const std::size_t projection = tensor.rfind('.', tensor.rfind('.') - 1);
    const std::size_t number = tensor.rfind('.', projection - 1) + 1;
    const std::string next =
        tensor.substr(0, number) + std::to_string(module.experts) + tensor.substr(projection);
    if (!model_.contains(next)) return {};
    return fail(Code::kShapeMismatch,
                "{}: tensor {}: found {} experts by the rank that {} tells, but the base model has "
                "{} too{}",
                adapter_.path, printable(module.stored_out), module.experts, kPeftConfigFile,
                printable(next), made_for());
  }

  // The base's tensor for the other parameter of these experts; null where there is none.
  [[nodiscard]] const TensorDesc* beside(const std::string& tensor) const {
    const std::size_t dot = tensor.rfind('.') + 1;
    const bool is_down = std::string_view(tensor).substr(dot) == kDownParameter;
    const auto other = model_.find(tensor.substr(0, dot) +
                                   std::string(is_down ? kGateUpParameter : kDownParameter));
    const bool is_there = other != model_.end() && other->second->shape.size() == 3;
    return is_there ? other->second : nullptr;
  }

  // The axis that A lies over of square matrices in the base. How the base stores them shows in the
  // other tensor of these experts: of gate and up together, and of down, one axis is the longer
  // one.
  [[nodiscard]] std::optional<int> axis_of_in(const LoraParameter& parameter,
                                              const std::string& tensor) const {
    const ExpertSide side = side_of_square(adapter_, parameter);
    if (side == ExpertSide::kSecondAxis) return 1;
    const TensorDesc* const other = beside(tensor);
    if (other == nullptr || other->shape[1] == other->shape[2]) return std::nullopt;
    const int inputs = other->shape[1] < other->shape[2] ? 1 : 2;
    if (side == ExpertSide::kInputs) return inputs;
    if (side == ExpertSide::kOutputs) return 3 - inputs;
    return inputs == 2 ? std::optional(2) : std::nullopt;
  }

  Status add_parameter(const LoraParameter& parameter) {
    ModelUpdate update{in_base(parameter.name),
                       parameter.out,
                       parameter.in,
                       std::nullopt,
                       1,
                       2,
                       adapter_.config.scale_of(parameter.name),
                       true};
    const TensorDesc* const model = SW_TRY(find(update.tensor, parameter.stored_out));
    const std::int64_t experts = own(parameter.out).shape[0];
    const std::int64_t outputs = own(parameter.out).shape[1];
    const std::int64_t inputs = own(parameter.in).shape[2];
    bool is_transposed = model->shape == Dims{experts, inputs, outputs};
    const bool is_plain = model->shape == Dims{experts, outputs, inputs};
    if (!is_plain && !is_transposed) {
      const bool is_out = model->shape.size() != 3 || model->shape[0] != experts ||
                          (model->shape[1] != outputs && model->shape[2] != outputs);
      return wrong_shape(is_out ? parameter.stored_out : parameter.stored_in, update.tensor,
                         *model);
    }
    if (is_plain && is_transposed) {
      const std::optional<int> in_axis = axis_of_in(parameter, update.tensor);
      if (!in_axis) return refuse_square(adapter_, parameter);
      is_transposed = *in_axis == 1;
    }
    if (is_transposed) std::swap(update.out_axis, update.in_axis);
    result_.updates.push_back(std::move(update));
    return {};
  }

  Status add_module(const LoraModule& module) {
    ModelUpdate update{
        in_base(module.name + ".weight"),           module.out, module.in, module.magnitude, 0, 1,
        adapter_.config.scale_of(module.configured)};
    if (!module.stored_out.empty()) SW_TRY(check_experts(module, update.tensor));
    const TensorDesc* const model = SW_TRY(find(update.tensor, module.out));
    const std::int64_t outputs = own(module.out).shape[0];
    const std::int64_t inputs = own(module.in).shape[1];
    const Dims plain{outputs, inputs};
    const Dims transposed{inputs, outputs};
    // The flag is of all modules, and of a model that also has linears PEFT goes by each module's
    // class, as the family does; shapes tell for themselves, but square ones.
    const std::optional<bool> is_turned =
        family_ == nullptr ? std::nullopt : is_stored_turned(family_->items, update.tensor);
    const bool may_be_plain = !module.is_embedding;
    const bool may_be_transposed =
        module.is_embedding ||
        (plain == transposed && is_turned ? *is_turned
                                          : adapter_.config.is_fan_in_fan_out || is_turned == true);
    if (may_be_transposed && model->shape == transposed) {
      update.out_axis = 1;
      update.in_axis = 0;
    } else if (!may_be_plain || !(model->shape == plain)) {
      const bool is_in = model->shape.size() == 2 && model->shape[0] == outputs;
      return wrong_shape(is_in ? module.in : module.out, update.tensor, *model);
    }
    if (module.magnitude && own(*module.magnitude).shape != Dims{outputs}) {
      return wrong_shape(*module.magnitude, update.tensor, *model);
    }
    result_.updates.push_back(update);
    if (!module.bias) return {};
    ModelUpdate bias{in_base(module.name + ".bias"),
                     *module.bias,
                     std::nullopt,
                     std::nullopt,
                     0,
                     -1,
                     update.scale};
    const TensorDesc* const stored = SW_TRY(find(bias.tensor, *module.bias));
    if (stored->shape != own(*module.bias).shape || stored->shape.size() != 1) {
      return wrong_shape(*module.bias, bias.tensor, *stored);
    }
    result_.updates.push_back(std::move(bias));
    return {};
  }

  const PeftAdapter& adapter_;
  const Mapping* family_;
  std::span<const ModelPart> parts_;
  const std::optional<TiedHead>& tied_;
  std::unordered_map<std::string, const TensorDesc*> model_;
  std::map<std::pair<const ModelPart*, std::string>, std::string> of_parts_;  // the base's names
  std::unordered_map<std::string, std::string> of_modules_;                   // likewise
  std::set<std::string> roots_;  // what the base's names begin with, with the dot
  std::vector<std::string> changed_;
  AdapterUpdates result_;
};

}  // namespace

Result<AdapterUpdates> match_adapter(const PeftAdapter& adapter, std::span<const TensorDesc> model,
                                     const Mapping* family, const std::optional<TiedHead>& tied) {
  return Matching(adapter, model, family, tied).run();
}

}  // namespace shardwright
