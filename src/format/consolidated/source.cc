// SPDX-License-Identifier: Apache-2.0
#include "format/consolidated/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "format/carried_files.h"
#include "format/consolidated/meta_config.h"
#include "format/files_beside.h"
#include "format/legacy/legacy_chunks.h"
#include "format/model_file.h"
#include "format/near_config.h"
#include "format/pickle_files.h"
#include "format/saved_name.h"
#include "format/sibling.h"
#include "format/torch_files/state_dict.h"
#include "layout/texts.h"
#include "model/name_rules.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

constexpr std::string_view kConsolidatedSign = "consolidated.#.pth";
constexpr std::string_view kOneFile = "consolidated.pth";
constexpr std::string_view kParamsFile = "params.json";
constexpr std::string_view kRulesOfMeta = "llama";
constexpr std::string_view kEmbedding = "tok_embeddings.weight";
constexpr std::string_view kLastNorm = "norm.weight";  // which every rank has whole

bool is_consolidated(const DirectoryEntry& entry) {
  return !entry.is_directory && matches_sign(entry.name, kConsolidatedSign);
}

std::string consolidated_name(std::size_t rank) {
  return fmt::format("consolidated.{:02}.pth", rank);
}

// One rank's part of the model, as its file has it.
struct MetaRank {
  std::uint32_t file = 0;
  StateDict dict;
};

class MetaReader {
 public:
  MetaReader(Checkpoint& checkpoint, Defects& defects, const NameRules& rules)
      : checkpoint_(checkpoint), defects_(defects), rules_(rules) {}

  Status run() {
    const auto entries = SW_TRY(checkpoint_.directory->list(""));
    const auto count = static_cast<std::size_t>(std::ranges::count_if(entries, is_consolidated));
    std::vector<std::string> paths;
    for (std::size_t rank = 0; rank < count; ++rank) {
      paths.push_back(consolidated_name(rank));
      if (checkpoint_.directory->exists(paths.back())) continue;
      return fail(Code::kNotFound, "{} is missing: the numbers of {} files are not 0 to {}",
                  paths.back(), count, count - 1);
    }
    SW_TRY(read_model_files(*checkpoint_.directory, paths, *checkpoint_.files, checkpoint_.catalog,
                            [&](const std::string& path, Result<ModelFile> file) {
                              return read(path, std::move(file));
                            }));
    SW_TRY(defects_.report(check_columns()));
    LegacyChunks chunks(checkpoint_.catalog, *checkpoint_.files);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const StateDictTensor& tensor : ranks_[rank].dict.tensors) {
        const Status added = add(tensor, rank, chunks);
        if (added) continue;
        Error error = Error(added.error()).within(fmt::format("tensor {}", tensor.name));
        SW_TRY(defects_.report(std::unexpected(
            std::move(error).within(checkpoint_.catalog.files[ranks_[rank].file]))));
      }
    }
    return check_all_have_all();
  }

  // 0 where no tensor tells.
  [[nodiscard]] std::int64_t width() const {
    const StateDictTensor* const norm = find([](const StateDictTensor& tensor) {
      return tensor.name == kLastNorm && tensor.place.shape.size() == 1;
    });
    return norm == nullptr ? 0 : norm->place.shape[0];
  }

  // What the model's settings say of its heads, held against the tensors.
  Status check_heads(const std::optional<ToldHeads>& told) const {
    const auto rows = told ? told->rows_in(width()) : std::nullopt;
    const auto size = told ? told->size_in(width()) : std::nullopt;
    SW_TRY(defects_.report(check_queries(rows)));
    return defects_.report(check_head_size(size));
  }

 private:
  // A file for each rank: no rank's shapes say how many there were, but the whole model's do. It
  // has as many rows of queries as it is wide, unless its settings tell of other heads.
  Status check_queries(std::optional<std::int64_t> told) const {
    const StateDictTensor* const queries =
        find([](const StateDictTensor& tensor) { return tensor.name.ends_with(".wq.weight"); });
    if (queries == nullptr || queries->place.shape.size() != 2) return {};
    const std::int64_t whole = told.value_or(width());
    const std::int64_t rows = queries->place.shape[0];
    const auto expected = ranks_of(rows, whole);
    if (!expected || *expected == count()) return {};
    if (*expected < count()) return told ? refuse_more(*expected) : Status();
    if (told) {
      return fail(Code::kNotFound,
                  "found {} of {} files consolidated.NN.pth: {} has {} of {} rows in each; copy "
                  "the others too",
                  count(), *expected, queries->name, rows, whole);
    }
    return fail(Code::kNotFound,
                "found {} of {} files consolidated.NN.pth: {} has {} of {} rows in each; copy the "
                "others too, or, if this model's heads are narrower, the params.json that says so",
                count(), *expected, queries->name, rows, whole);
  }

  // Rows of queries and keys lie head by head, in an order that no shape tells; how many
  // frequencies Llama 1 and 2 turn each head by, does.
  Status check_head_size(std::optional<std::int64_t> told) const {
    const StateDictTensor* const turns =
        find([](const StateDictTensor& tensor) { return tensor.name == "rope.freqs"; });
    if (!told || turns == nullptr || turns->place.shape.size() != 1) return {};
    const std::int64_t shown = 2 * turns->place.shape[0];
    if (shown == *told) return {};
    return fail(
        Code::kArgumentsContradict,
        "rope.freqs shows heads of {}, but the model's settings (params.json, or config.json "
        "where there is one) say {}, by which rows would be those of other heads; give the "
        "model's own",
        shown, *told);
  }

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(ranks_.size()); }

  [[nodiscard]] const StateDictTensor* find(auto&& is_it) const {
    if (ranks_.empty()) return nullptr;
    const auto& tensors = ranks_.front().dict.tensors;
    const auto found = std::ranges::find_if(tensors, is_it);
    return found == tensors.end() ? nullptr : &*found;
  }

  // How many parts make the whole.
  static std::optional<std::int64_t> ranks_of(std::int64_t part, std::int64_t whole) {
    if (part <= 0 || whole <= 0 || whole % part != 0) return std::nullopt;
    return whole / part;
  }

  Status refuse_more(std::int64_t expected) const {
    return fail(Code::kTwoCheckpoints,
                "found {} files consolidated.NN.pth, expected {} by the shapes in them; move the "
                "files of the other save away",
                count(), expected);
  }

  // Llama 2's ranks have some columns of the embedding each.
  Status check_columns() const {
    const StateDictTensor* const embedding =
        find([](const StateDictTensor& tensor) { return tensor.name == kEmbedding; });
    if (embedding == nullptr || embedding->place.shape.size() != 2) return {};
    const std::int64_t columns = embedding->place.shape[1];
    const auto expected = ranks_of(columns, width());
    if (!expected || *expected == 1 || *expected == count()) return {};
    if (*expected < count()) return refuse_more(*expected);
    return fail(Code::kNotFound,
                "found {} of {} files consolidated.NN.pth: {} has {} of {} columns in each; copy "
                "the others too",
                count(), *expected, embedding->name, columns, width());
  }

  Status read(const std::string& path, Result<ModelFile> opened) {
    const auto [number, file] = SW_TRY(std::move(opened));
    SW_TRY(judge_pickles(*file, path, checkpoint_, defects_));
    ranks_.push_back({number, SW_TRY(read_state_dict(*file))});
    SW_TRY(defects_.report(check_saved_name(*file, ranks_.back().dict.saved_as)));
    tell_left_out(ranks_.back().dict, path, checkpoint_);
    return {};
  }

  // The axis that the ranks share out, or -1.
  Result<int> cut_of(const StateDictTensor& tensor) const {
    const auto rule = std::ranges::find_if(rules_.rules, [&](const StoredNameRule& each) {
      return each.match(tensor.name).has_value();
    });
    if (rule == rules_.rules.end() || rule->cuts.empty() || ranks_.size() == 1) return -1;
    const Dims& shape = tensor.place.shape;
    const bool has_axes =
        std::ranges::all_of(rule->cuts, [&](int axis) { return axis < shape.size(); });
    if (!has_axes) {
      return fail(Code::kShapeMismatch, "found {}, which has no axis that ranks share out",
                  to_string(shape));
    }
    if (rule->cuts.size() == 1) return rule->cuts.front();
    // Llama 2 cuts the embedding's columns, Llama 3 its rows.
    if (shape[1] == width()) return 0;
    if (ranks_of(shape[1], width())) return 1;
    return fail(Code::kShapeMismatch, "found {} in {} files, which is no share of a model {} wide",
                to_string(shape), count(), width());
  }

  Status add(const StateDictTensor& tensor, std::size_t rank, LegacyChunks& chunks) {
    const int axis = SW_TRY(cut_of(tensor));
    Dims shape = tensor.place.shape;
    Box box = Box::whole(shape);
    if (axis >= 0) {
      shape[axis] *= static_cast<std::int64_t>(ranks_.size());
      SW_TRY(element_count(shape));
      box.origin[axis] = box.shape[axis] * static_cast<std::int64_t>(rank);
    }
    seen_[tensor.name].insert(rank);
    const LegacyPart part{
        {tensor.name, tensor.place.dtype, shape}, box, 0, row_major_strides(box.shape)};
    return chunks.add("", {ranks_[rank].file, tensor.place, part, true});
  }

  Status check_all_have_all() {
    for (const auto& [name, ranks] : seen_) {
      if (ranks.size() == ranks_.size()) continue;
      std::size_t without = 0;
      while (ranks.contains(without)) ++without;
      SW_TRY(defects_.report(fail(Code::kHole, "tensor {}: {} has no part of it, other ranks have",
                                  name, consolidated_name(without))));
    }
    return {};
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
  const NameRules& rules_;
  std::vector<MetaRank> ranks_;
  std::map<std::string, std::set<std::size_t>, std::less<>> seen_;
};

Result<NameRules> rules_of_meta() {
  for (NameRules& rules : SW_TRY(built_in_name_rules())) {
    if (rules.names == kRulesOfMeta) return std::move(rules);
  }
  return fail(Code::kNoFamily, "there are no name rules '{}'", kRulesOfMeta);
}

class ConsolidatedSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "consolidated"; }

  SourceTraits traits() const override {
    return {.is_hf_model = true, .is_named_by_family = true, .records = Records::kFiles};
  }

  Phrase summary() const override { return phrase("format.consolidated"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const DirectoryEntry* file = folder.first(is_consolidated);
    if (file == nullptr) return std::optional<Recognition>();
    return Recognition{Recognition::Strength::kSure,
                       {translated("{} is a part of a Llama as Meta publishes it", file->name)}};
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    if (checkpoint.directory->exists(kOneFile)) {
      return fail(Code::kTwoCheckpoints,
                  "found {} and {}, which are of two saves; move the files of the other away",
                  kOneFile, consolidated_name(0));
    }
    tell_files_beside(checkpoint);
    const NameRules rules = SW_TRY(rules_of_meta());
    MetaReader reader(checkpoint, defects, rules);
    SW_TRY(reader.run());
    SW_TRY(read_near_config(checkpoint, defects));
    std::string settings = checkpoint.hf_config;
    const bool has_config = !settings.empty();
    if (!has_config) {
      settings = SW_TRY(read_if_there(*checkpoint.directory, kParamsFile, kMostTextBytes));
    }
    SW_TRY(reader.check_heads(told_heads(settings)));
    if (has_config || settings.empty()) return {};
    auto config = config_from_params(settings, checkpoint.catalog, checkpoint.notes);
    if (config) {
      checkpoint.hf_config = *std::move(config);
    } else if (config.error().code == Code::kConfigMissing) {
      checkpoint.notes.push_back(config.error().message);
      checkpoint.why_no_config = std::move(config).error().message;
    } else {
      SW_TRY(defects.report(std::unexpected(config.error())));
    }
    return {};
  }
};

}  // namespace

const SourceFormat& consolidated_source() {
  static const ConsolidatedSource format;
  return format;
}

}  // namespace shardwright
