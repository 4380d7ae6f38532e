// SPDX-License-Identifier: Apache-2.0
#include "convert/average_drafts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/model_facts.h"
#include "convert/more_sources.h"
#include "format/config_edits.h"
#include "io/source_files.h"
#include "layout/model_head.h"
#include "model/adapter_tensors.h"
#include "model/apply.h"

namespace shardwright {
namespace {

float weight_of(const ConvertRequest& request, std::size_t term) {
  const std::size_t count = request.averaged.size() + 1;
  return static_cast<float>(request.weights.empty() ? 1.0 / static_cast<double>(count)
                                                    : request.weights[term]);
}

std::string place_of(const Checkpoint& checkpoint) {
  std::error_code error;
  const std::filesystem::path place =
      std::filesystem::weakly_canonical(checkpoint.location.path, error);
  return error ? checkpoint.location.path : place.string();
}

// How many rows of one checkpoint's tensors mean something.
class TrueRows {
 public:
  explicit TrueRows(const Drafting& drafting)
      : heads_(descs_of(drafting.parts.tensors)),
        vocabulary_(true_vocabulary(drafting.source().arguments)) {}

  // Where the draft or, of rows of the vocabulary, the run's arguments tell.
  [[nodiscard]] std::optional<std::int64_t> of(const DraftTensor& tensor) const {
    if (tensor.true_rows) return tensor.true_rows;
    return heads_.has_vocabulary_rows(tensor.desc) ? vocabulary_ : std::nullopt;
  }

 private:
  OutputHeads heads_;
  std::optional<std::int64_t> vocabulary_;
};

// The terms that the source tensors of one checkpoint become.
class Terms {
 public:
  Terms(float weight, std::uint32_t term, std::uint32_t first_source, Drafting& drafting)
      : weight_(weight), term_(term), first_source_(first_source), drafting_(drafting) {}

  // A constant that is added to what one recipe reads belongs to that: another recipe that reads
  // the same gets another tensor of the same bytes.
  void take(TensorRecipe& recipe) {
    const double add = std::exchange(recipe.add, 0.0);
    std::unordered_map<std::uint32_t, std::uint32_t> moved;
    for (std::size_t i = 0; i < recipe.views.size(); ++i) {
      TensorView view = recipe.views[i];
      const auto [known, is_new] = added_.emplace(view.source, add);
      if (known->second != add && !moved.contains(view.source)) {
        moved.emplace(view.source, repeat_source(drafting_, view.source));
      }
      const auto place = moved.find(view.source);
      if (place == moved.end()) continue;
      added_.emplace(place->second, add);
      view.source = place->second;
      recipe.views.set(i, view);
    }
  }

  void finish() {
    std::vector<WeightedSource>& weighted = drafting_.result.plan.weighted;
    const auto sources = static_cast<std::uint32_t>(drafting_.catalog.tensors.size());
    for (std::uint32_t i = first_source_; i < sources; ++i) {
      const auto add = added_.find(i);
      weighted.push_back({i, weight_, term_, add == added_.end() ? 0.0 : add->second});
    }
  }

 private:
  float weight_;
  std::uint32_t term_;
  std::uint32_t first_source_;
  Drafting& drafting_;
  std::unordered_map<std::uint32_t, double> added_;  // to what of which source tensor
};

class Averaging {
 public:
  Averaging(Drafting other, Drafting& first)
      : other_(std::move(other)),
        first_(first),
        path_(other_.request().input),
        first_path_(first.request().input) {}

  Status run() {
    SW_TRY(check_place());
    leave_extras();
    SW_TRY(check_no_adapters());
    SW_TRY(check_gates());
    SW_TRY(match());
    add_files();
    add_sources();
    std::vector<DraftTensor>& tensors = first_.parts.tensors;
    Terms terms(weight_of(first_.request(), term()), static_cast<std::uint32_t>(term()),
                first_source_, first_);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      DraftTensor& theirs = other_.parts.tensors[place_[i]];
      shift(theirs.recipe.views);
      terms.take(theirs.recipe);
      TensorRecipe& recipe = tensors[i].recipe;
      for (const TensorView& view : theirs.recipe.views) recipe.views.push_back(view);
      if (theirs.recipe.fill && !recipe.fill) recipe.fill = theirs.recipe.fill;
    }
    terms.finish();
    tell();
    return {};
  }

 private:
  [[nodiscard]] std::size_t term() const { return first_.result.averaged.size() + 1; }

  // Weights say how much a checkpoint counts.
  Status check_place() const {
    const std::string place = place_of(other_.source());
    bool is_twice = place == place_of(first_.source());
    for (const AveragedSource& averaged : first_.result.averaged) {
      is_twice |= place == place_of(averaged.checkpoint);
    }
    if (!is_twice) return {};
    return fail(Code::kUsage,
                "{}: the checkpoint in {} is given twice; give it once, and --weights for how much "
                "each counts",
                path_, place);
  }

  // Exact values that only Hugging Face stores are kept where there are any to keep.
  void leave_extras() {
    const auto erase = [&](const Drafting& from, std::vector<DraftTensor>& tensors) {
      std::erase_if(tensors, [&](const DraftTensor& tensor) {
        const std::string& name = tensor.desc.name;
        if (!name.starts_with(kHfExtraPrefix) || find(from, name) != nullptr) return false;
        first_.tell(translated("{} is left out: {} has none", name, from.request().input));
        return true;
      });
    };
    erase(other_, first_.parts.tensors);
    erase(first_, other_.parts.tensors);
  }

  static const DraftTensor* find(const Drafting& drafting, std::string_view name) {
    const auto found = std::ranges::find(
        drafting.parts.tensors, name,
        [](const DraftTensor& draft) -> const std::string& { return draft.desc.name; });
    return found == drafting.parts.tensors.end() ? nullptr : &*found;
  }

  // The mean of two products is not the product of the means.
  [[nodiscard]] Status check_no_adapters() const {
    for (const Drafting* drafting : {&std::as_const(first_), &other_}) {
      for (const DraftTensor& tensor : drafting->parts.tensors) {
        if (!is_adapter_name(tensor.desc.name)) continue;
        return fail(Code::kUsage,
                    "{}: tensor {} is part of a low-rank adapter, and the mean of its factors is "
                    "not that of what they add; merge each into its base (merge-adapter) and "
                    "average these",
                    drafting->request().input, printable(tensor.desc.name));
      }
    }
    return {};
  }

  // The target has one order of rows, which the first one's arguments say.
  [[nodiscard]] Status check_gates() const {
    if (other_.gates == first_.gates) return {};
    return fail(Code::kUnsupportedFormat,
                "{}: its arguments say otherwise than those of {} how the gates of experts lie in "
                "blocks (moe_mlp_glu_interleave_size), which is kept for a Megatron target; "
                "average them --to hf and convert the mean",
                path_, first_path_);
  }

  // Where the other has each of the first one's tensors.
  Status match() {
    std::vector<DraftTensor>& theirs = other_.parts.tensors;
    std::unordered_map<std::string_view, std::size_t> by_name;
    for (std::size_t i = 0; i < theirs.size(); ++i) by_name.emplace(theirs[i].desc.name, i);
    const TrueRows own_rows(first_);
    const TrueRows their_rows(other_);
    for (const DraftTensor& own : first_.parts.tensors) {
      const auto found = by_name.find(own.desc.name);
      if (found == by_name.end()) return missing(own.desc.name, path_, first_path_);
      DraftTensor& tensor = theirs[found->second];
      // Two runs may have padded the same vocabulary to other heights.
      const auto rows = own_rows.of(own);
      const bool may_fit = rows && own.desc.shape != tensor.desc.shape;
      if (may_fit && rows == their_rows.of(tensor)) resize_rows(tensor, own.desc.shape[0]);
      SW_TRY(check_alike(own, tensor));
      place_.push_back(found->second);
      by_name.erase(found);
    }
    if (by_name.empty()) return {};
    const auto extra = std::ranges::min_element(by_name);
    return missing(std::string(extra->first), first_path_, path_);
  }

  static Status missing(const std::string& tensor, const std::string& path,
                        const std::string& other) {
    return fail(
        Code::kUnmatchedSource,
        "{}: tensor {} is missing, which {} has; only checkpoints of one model are averaged "
        "(--exclude leaves out what one of them lacks)",
        path, printable(tensor), other);
  }

  [[nodiscard]] Status check_alike(const DraftTensor& own, const DraftTensor& theirs) const {
    const std::string& name = own.desc.name;
    if (own.desc.shape != theirs.desc.shape) {
      return fail(Code::kShapeMismatch, "{}: tensor {}: found shape {}, expected {}, which {} has",
                  path_, printable(name), to_string(theirs.desc.shape), to_string(own.desc.shape),
                  first_path_);
    }
    if (own.desc.dtype != theirs.desc.dtype) {
      return fail(Code::kDtypeUnsupported,
                  "{}: tensor {}: found {}, expected {}, which {} has; --dtype says which type is "
                  "written",
                  path_, printable(name), torch_name(theirs.desc.dtype), torch_name(own.desc.dtype),
                  first_path_);
    }
    const double constant = own.recipe.fill.value_or(0.0);
    const double other = theirs.recipe.fill.value_or(0.0);
    const bool are_constants = own.recipe.views.empty() && theirs.recipe.views.empty();
    if ((constant == 0.0 && other == 0.0) || (are_constants && constant == other)) return {};
    return fail(
        Code::kUnsupportedFormat,
        "{}: tensor {} is a constant there or in {}, and not the same in both; convert both "
        "to one format first and average what that gives",
        path_, printable(name), first_path_);
  }

  void add_files() {
    SourceFiles& files = *first_.result.source.files;
    first_file_ = files.add_all(other_.result.source.files);
    for (Catalog* catalog : {&first_.result.source.catalog, &first_.catalog}) {
      catalog->files.resize(first_file_);
      for (const std::string& file : other_.catalog.files) {
        catalog->files.push_back(path_ + "/" + file);
      }
      catalog->files.resize(files.count());
    }
  }

  void add_sources() {
    std::vector<StoredTensor>& tensors = first_.catalog.tensors;
    first_source_ = static_cast<std::uint32_t>(tensors.size());
    keep_stored_names();
    for (StoredTensor tensor : other_.catalog.tensors) {
      for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
        tensor.chunks.set_location(i, tensor.chunks.file(i) + first_file_, tensor.chunks.range(i));
      }
      tensors.push_back(std::move(tensor));
    }
    for (QuantisedSource quantised : other_.result.plan.quantised) {
      quantised.values += first_source_;
      quantised.scales += first_source_;
      if (quantised.zeros) quantised.zeros->tensor += first_source_;
      if (quantised.second) quantised.second->tensor += first_source_;
      if (quantised.groups) quantised.groups->tensor += first_source_;
      first_.result.plan.quantised.push_back(quantised);
    }
  }

  void keep_stored_names() {
    std::vector<std::string>& names = first_.stored_names;
    if (names.empty()) {
      for (const StoredTensor& tensor : first_.catalog.tensors) names.push_back(tensor.desc.name);
    }
    for (std::size_t i = 0; i < other_.catalog.tensors.size(); ++i) {
      names.push_back(other_.stored_names.empty() ? other_.catalog.tensors[i].desc.name
                                                  : other_.stored_names[i]);
    }
  }

  void shift(ViewList& views) const {
    for (std::size_t i = 0; i < views.size(); ++i) {
      TensorView view = views[i];
      view.source += first_source_;
      views.set(i, view);
    }
  }

  void tell() {
    PreparedConversion& result = first_.result;
    for (const std::string& note : other_.result.notes) {
      if (std::ranges::find(result.notes, note) == result.notes.end()) {
        first_.tell(path_ + ": " + note);
      }
    }
    result.more_sources.push_back(path_);
    result.more_sources.push_back(other_.source().location.path);
    result.replicas.chunks += other_.result.replicas.chunks;
    result.replicas.bytes += other_.result.replicas.bytes;
    result.averaged.push_back({std::move(other_.result.source), std::move(other_.catalog)});
  }

  Drafting other_;
  Drafting& first_;
  std::string path_;
  std::string first_path_;
  std::vector<std::size_t> place_;
  std::uint32_t first_file_ = 0;
  std::uint32_t first_source_ = 0;
};

}  // namespace

Status check_average(const ConvertRequest& request) {
  if (request.averaged.empty()) return {};
  const std::size_t count = request.averaged.size() + 1;
  if (!request.weights.empty() && request.weights.size() != count) {
    return fail(Code::kUsage, "--weights: found {} weight{}, expected {}, one for each checkpoint",
                request.weights.size(), request.weights.size() == 1 ? "" : "s", count);
  }
  constexpr double kMostDifference = 1e-6;
  const double sum = std::accumulate(request.weights.begin(), request.weights.end(), 0.0);
  if (!request.weights.empty() && !(std::abs(sum - 1.0) <= kMostDifference)) {
    return fail(Code::kUsage,
                "--weights: they add up to {}, expected 1: the model would be so many times as "
                "large",
                sum);
  }
  if (request.optimizer == OptimizerPolicy::kKeep) {
    return fail(Code::kUsage,
                "--optimizer keep: states of several runs have no average; leave it out");
  }
  if (request.quantise != WeightForm::kPlain) {
    return fail(Code::kUsage, "--quantise: average first, then convert the mean with it");
  }
  if (request.upcycle) {
    return fail(Code::kUsage, "--upcycle: average first, then convert the mean with it");
  }
  if (!request.mtp_from.empty()) {
    return fail(Code::kUsage, "--mtp from=: take the layers into each checkpoint first");
  }
  return {};
}

ConvertRequest request_for_averaged(const Drafting& first, const std::string& path) {
  ConvertRequest request = first.request();
  request.input = path;
  request.averaged.clear();
  request.weights.clear();
  const Location& location = first.source().location;
  const auto other = locate_checkpoint(path);
  const bool is_apart = location.traits.is_hf_model && other && !other->traits.is_hf_model;
  // Of one model: what a Hugging Face model says of itself is true of the others.
  if (is_apart && request.hf_config_dir.empty() && !first.source().hf_config.empty()) {
    request.hf_config_dir = location.path;
  }
  return request;
}

void begin_average(Drafting& first) {
  Terms terms(weight_of(first.request(), 0), 0, 0, first);
  for (DraftTensor& tensor : first.parts.tensors) terms.take(tensor.recipe);
  terms.finish();
}

Status add_to_average(Drafting other, Drafting& first) {
  for (const Drafting* each : {&std::as_const(first), &std::as_const(other)}) {
    if (!has_quantised(each->parts.tensors)) continue;
    return fail(
        Code::kDtypeUnsupported,
        "{}: its weights are stored as values and scales, which have no average; --to hf or a "
        "Megatron format, with --dtype bfloat16, multiplies them out",
        each->request().input);
  }
  return Averaging(std::move(other), first).run();
}

}  // namespace shardwright
