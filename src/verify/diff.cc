// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "base/message.h"
#include "canonical/canonical_model.h"
#include "canonical/derived_states.h"
#include "canonical/mlite_naming.h"
#include "compare/master_weights.h"
#include "dcp/named_replicas.h"
#include "exec/finish_reading.h"
#include "plan/canonical.h"
#include "plan/source_place.h"
#include "remote/open_path.h"
#include "verify/adapter_settings.h"
#include "verify/element_difference.h"
#include "verify/model_settings.h"
#include "verify/tile_buffer.h"
#include "verify/training_settings.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

// Two Hugging Face models compare by their own names, as do two checkpoints of no known kind; else
// both are seen as Megatron's canonical tensors.
Naming common_naming(const Checkpoint& left, const Checkpoint& right, const ProofOptions& options) {
  const bool both_hf = compare_as_hf(left, right, options.choice);
  const bool both_known = natural_naming(left, options.choice) == Naming::kCanonical &&
                          natural_naming(right, options.choice) == Naming::kCanonical;
  return options.own_names || both_hf || !both_known ? Naming::kStored : Naming::kCanonical;
}

// The fewest rows of the vocabulary that either side knows to mean something; but rows that one
// knows to mean something and that the other has not are no padding. What a run leaves open ends
// where the other side's rows do, if it tells of no more.
void cut_vocabularies(View& left, View& right, const ProofOptions& options, Notes& notes) {
  const auto rows = [](const View& one, const View& other) {
    const std::optional<std::int64_t>& least = other.vocabulary.usual;
    const std::optional<std::int64_t>& own = one.vocabulary.usual;
    return least && (!own || (*least < *own && *own <= other.stored_rows));
  };
  if (rows(left, right)) cut_vocabulary(left, right.vocabulary);
  if (rows(right, left)) cut_vocabulary(right, left.vocabulary);
  View* fewer = &left;
  View* more = &right;
  if (vocabulary_height(*fewer) > vocabulary_height(*more)) std::swap(fewer, more);
  const std::int64_t fewest = vocabulary_height(*fewer);
  if (options.vocab_size || fewest == 0 || fewest == vocabulary_height(*more)) return;
  if (may_end_at(*more, fewest)) {
    cut_vocabulary(*more, {.usual = fewest, .beyond = {}});
    return;
  }
  notes.push_back(translated(
      "found vocabularies of {} and of {} rows; where some of them are padding, --vocab-size says "
      "how many are not",
      vocabulary_height(left), vocabulary_height(right)));
}

const std::string& name_of(const View& view, std::size_t tensor) {
  return view.plan.target.tensors[tensor].desc.name;
}

std::size_t count_states(const View& view) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < view.plan.tensors.size(); ++i) {
    count += is_optimizer_name(name_of(view, i)) ? 1U : 0U;
  }
  return count;
}

class Comparison {
 public:
  Comparison(const View& left, const View& right, const ProofOptions& options,
             std::optional<double> tolerance)
      : left_(left),
        right_(right),
        tolerance_(tolerance),
        workload_(options, bytes_of(left),
                  is_remote_path(left.checkpoint.location.path) ||
                      is_remote_path(right.checkpoint.location.path)),
        tile_bytes_(workload_.buffer_bytes(4)) {}

  Result<DiffReport> run() {
    const LastReading last_of_left(*left_.checkpoint.files);
    const LastReading last_of_right(*right_.checkpoint.files);
    match();
    make_jobs();
    const Lowering of_left(left_.plan);
    const Lowering of_right(right_.plan);
    const auto make_worker = [&]() -> JobWorker {
      const auto a = std::make_shared<TileBuffer>(left_, of_left, tile_bytes_);
      const auto b = std::make_shared<TileBuffer>(right_, of_right, tile_bytes_);
      return [this, a, b](std::size_t job) { return compare_tiles(jobs_[job], *a, *b); };
    };
    const auto found = SW_TRY(workload_.share("comparing tensors", job_bytes_, make_worker));
    SW_TRY(add_found(found));
    SW_TRY(finish_reading(*left_.checkpoint.files, workload_.threads()));
    SW_TRY(finish_reading(*right_.checkpoint.files, workload_.threads()));
    finish();
    return std::move(report_);
  }

 private:
  struct Pair {
    std::size_t left;
    std::size_t right;
    ElementDifference found;
  };
  // Some tiles of a pair.
  struct Job {
    std::size_t pair;
    std::int64_t first;
    std::int64_t end;
  };

  // Optimizer states count only where both sides have some, and values that only Hugging Face
  // stores where both sides have them.
  void match() {
    const bool with_states = compares_states();
    const auto is_wanted = [&](const std::string& name) {
      return with_states || !is_optimizer_name(name);
    };
    std::unordered_map<std::string_view, std::size_t> at_right;
    for (std::size_t i = 0; i < right_.plan.tensors.size(); ++i) {
      if (is_wanted(name_of(right_, i))) at_right.emplace(name_of(right_, i), i);
    }
    for (std::size_t i = 0; i < left_.plan.tensors.size(); ++i) {
      const std::string& name = name_of(left_, i);
      if (!is_wanted(name)) continue;
      const auto found = at_right.find(name);
      if (found == at_right.end()) {
        if (!is_weight_itself(left_, i)) miss(name, right_, report_.missing_right);
        continue;
      }
      add_pair(i, found->second);
      at_right.erase(found);
    }
    for (const auto& [name, index] : at_right) {
      if (!is_weight_itself(right_, index)) miss(std::string(name), left_, report_.missing_left);
    }
    std::ranges::sort(report_.missing_left);
    tell_uncompared();
  }

  // A master weight that is where its weight is says nothing that the weight does not: of float32
  // weights some forms have one and others none.
  static bool is_weight_itself(const View& view, std::size_t index) {
    const auto weight = weight_of_master(name_of(view, index));
    if (!weight) return false;
    const auto& tensors = view.plan.target.tensors;
    const auto found = std::ranges::lower_bound(
        tensors, *weight, {},
        [](const StoredTensor& each) -> const std::string& { return each.desc.name; });
    if (found == tensors.end() || found->desc.name != *weight) return false;
    const auto place = static_cast<std::size_t>(found - tensors.begin());
    const ViewList& masters = view.plan.tensors[index].views;
    const ViewList& weights = view.plan.tensors[place].views;
    const std::vector<StoredTensor>& stored = view.plan.source.tensors;
    return masters.size() == 1 && weights.size() == 1 &&
           are_in_one_place(stored[masters[0].source].chunks, stored[weights[0].source].chunks);
  }

  static bool are_in_one_place(const ChunkList& one, const ChunkList& other) {
    if (one.size() != other.size()) return false;
    for (std::size_t i = 0; i < one.size(); ++i) {
      const bool is_one = one.file(i) == other.file(i) &&
                          one.range(i).offset == other.range(i).offset &&
                          one.range(i).length == other.range(i).length;
      if (!is_one) return false;
    }
    return true;
  }

  // Where only one side has any, views leave them as they are stored.
  bool compares_states() {
    const std::size_t left = count_states(left_);
    const std::size_t right = count_states(right_);
    if (tell_unread()) {
      report_.not_compared = left + right;
      return false;
    }
    if (left + right == 0) return false;
    if (left > 0 && right > 0) return true;
    report_.notes.push_back(translated("{} optimizer states are not compared: {}", left + right,
                                       "only one side has any"));
    return false;
  }

  // States in files of ranks that no proof let in. Where the other side has none at all, nobody
  // tried.
  bool tell_unread() {
    for (const View* view : {&left_, &right_}) {
      if (view->states_left.empty() || !view->checkpoint.has_unread_optimizer) continue;
      report_.has_unread_states = true;
      report_.notes.push_back(translated("{}: its optimizer states are not compared: {}",
                                         view->checkpoint.location.path, view->states_left));
    }
    return report_.has_unread_states;
  }

  // Of states that only one side has by the model's tensors, a name that the other lacks shows
  // nothing.
  [[nodiscard]] bool has_states_of_two_kinds() const {
    return left_.has_states_by_tensor != right_.has_states_by_tensor;
  }

  void tell_uncompared() {
    if (report_.not_compared == 0 || report_.has_unread_states) return;
    const View& stored = left_.has_states_by_tensor ? right_ : left_;
    std::string why =
        stored.checkpoint.location.path +
        translated(": nothing says which of them belong to which tensor of the model");
    if (!stored.states_left.empty()) why += ": " + stored.states_left;
    report_.notes.push_back(
        translated("{} optimizer states are not compared: {}", report_.not_compared, why));
  }

  // `side` lacks it. What only Hugging Face stores, another form need not have.
  void miss(const std::string& name, const View& side, std::vector<std::string>& missing) {
    if (is_optimizer_name(name) && has_states_of_two_kinds()) {
      ++report_.not_compared;
    } else if (left_.naming == Naming::kCanonical && is_beside_the_model(name) &&
               !is_optimizer_name(name) && !side.checkpoint.location.traits.is_hf_model) {
      report_.notes.push_back(name + translated(" is not compared: only one side keeps it"));
    } else {
      missing.push_back(name);
    }
  }

  void add_pair(std::size_t left, std::size_t right) {
    const TensorDesc& a = left_.plan.target.tensors[left].desc;
    const TensorDesc& b = right_.plan.target.tensors[right].desc;
    TensorDifference difference{a, b, 0, {}, 0.0};
    if (difference.is_mismatch()) {
      report_.differences.push_back(std::move(difference));
      return;
    }
    ++report_.compared;
    const auto elements = static_cast<std::uint64_t>(Box::whole(a.shape).volume());
    report_.elements += elements;
    report_.bytes += elements * static_cast<std::uint64_t>(bytes_of(a.dtype));
    pairs_.push_back({left, right, {}});
  }

  // As they lie in the left side's files.
  void make_jobs() {
    std::vector<SourcePlace> places;
    for (const Pair& pair : pairs_) places.push_back(first_place(left_.plan, pair.left));
    std::vector<std::size_t> order(pairs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t pair) { return places[pair]; });
    const std::uint64_t wanted = shared_job_bytes(bytes_of(left_));
    for (const std::size_t number : order) {
      const std::size_t left = pairs_[number].left;
      const TileGrid grid = tiles_of(left_, left, tile_bytes_);
      const int element = bytes_of(left_.plan.target.tensors[left].desc.dtype);
      std::int64_t first = 0;
      std::uint64_t bytes = 0;
      for (std::int64_t tile = 0; tile < grid.count(); ++tile) {
        bytes += static_cast<std::uint64_t>(grid.tile(tile).volume() * element);
        if (bytes < wanted && tile + 1 < grid.count()) continue;
        jobs_.push_back({number, first, tile + 1});
        job_bytes_.push_back(bytes);
        first = tile + 1;
        bytes = 0;
      }
    }
  }

  Result<JobResult> compare_tiles(const Job& job, TileBuffer& a, TileBuffer& b) {
    const Pair& pair = pairs_[job.pair];
    const TensorDesc& desc = left_.plan.target.tensors[pair.left].desc;
    const TileGrid grid = tiles_of(left_, pair.left, tile_bytes_);
    ElementDifference all;
    for (std::int64_t i = job.first; i < job.end; ++i) {
      const Box tile = grid.tile(i);
      const auto left = SW_TRY(a.read(pair.left, tile));
      const auto right = SW_TRY(b.read(pair.right, tile));
      workload_.add_bytes(left.size());
      ElementDifference found = compare_elements(desc.dtype, left, right, tolerance_);
      if (found.differing == 0) continue;
      found.first = row_major_position(desc.shape, tile, found.first);
      all.add(found);
    }
    if (all.differing == 0) return JobResult{};
    return JobResult{MessageWriter()
                         .number(all.differing)
                         .number(static_cast<std::uint64_t>(all.first))
                         .number(std::bit_cast<std::uint64_t>(all.max_delta))
                         .take()};
  }

  Status add_found(const std::vector<std::string>& results) {
    for (std::size_t job = 0; job < results.size(); ++job) {
      if (results[job].empty()) continue;
      MessageReader reader(results[job]);
      ElementDifference found;
      found.differing = SW_TRY(reader.number());
      found.first = static_cast<decltype(found.first)>(SW_TRY(reader.number()));
      found.max_delta = std::bit_cast<double>(SW_TRY(reader.number()));
      pairs_[jobs_[job].pair].found.add(found);
    }
    return {};
  }

  void finish() {
    for (const Pair& pair : pairs_) {
      const TensorDesc& a = left_.plan.target.tensors[pair.left].desc;
      if (pair.found.differing == 0) {
        report_.same.push_back(a.name);
        continue;
      }
      report_.differences.push_back({a, right_.plan.target.tensors[pair.right].desc,
                                     pair.found.differing, index_of(a.shape, pair.found.first),
                                     pair.found.max_delta});
      report_.differing += pair.found.differing;
      report_.max_delta = std::max(report_.max_delta, pair.found.max_delta);
    }
    std::ranges::sort(report_.differences, {},
                      [](const auto& d) -> const std::string& { return d.left.name; });
  }

  const View& left_;
  const View& right_;
  std::optional<double> tolerance_;
  Workload workload_;
  std::size_t tile_bytes_;
  std::vector<Pair> pairs_;
  std::vector<Job> jobs_;
  std::vector<std::uint64_t> job_bytes_;
  DiffReport report_;
};

// Notes of both sides, each once.
std::vector<std::string> joined(const View& left, const View& right,
                                const std::vector<std::string>& own) {
  std::vector<std::string> notes;
  std::set<std::string, std::less<>> seen;
  for (const auto* list : {&left.notes, &right.notes, &own}) {
    for (const std::string& note : *list) {
      if (seen.insert(note).second) notes.push_back(note);
    }
  }
  return notes;
}

// Tensors in the order of a run whose sizes nobody tells differ from those of any other form.
Status check_order(const View& left, const View& right, const DiffReport& report) {
  const bool is_unlike = !report.missing_left.empty() || !report.missing_right.empty() ||
                         std::ranges::any_of(report.differences, &TensorDifference::is_mismatch);
  for (const View* view : {&left, &right}) {
    if (!is_unlike || !view->unordered) continue;
    return std::unexpected(Error(*view->unordered).within(view->checkpoint.location.path));
  }
  return {};
}

// Notes say why.
bool has_unread_settings(const View& left, const View& right) {
  return !left.settings_left.empty() || !right.settings_left.empty();
}

}  // namespace

std::string_view DiffReport::verdict() const {
  if (differs()) return "DIFFERENT";
  return equal() ? "EQUAL" : "NOT ALL COMPARED";
}

Result<DiffReport> diff_checkpoints(const std::string& left, const std::string& right,
                                    const ProofOptions& options, std::optional<double> tolerance) {
  Checkpoint a = SW_TRY(open_checkpoint(left, FormatChoice{options.as}));
  Checkpoint b = SW_TRY(open_checkpoint(right, FormatChoice{options.other_as, "--other-as"}));
  const Naming naming = common_naming(a, b, options);
  ViewUse use;
  use.reads_settings = has_states(a) && has_states(b);
  if (use.reads_settings) use.states = StateUse::kByTensor;
  // One that has no copies of tensor ranks is what the other's are compared with.
  ProofOptions of_one = options;
  ProofOptions of_other = options;
  if (!has_numbered_replicas(a.catalog) && has_numbered_replicas(b.catalog)) {
    of_one.source.replica.reset();
  }
  if (!has_numbered_replicas(b.catalog)) of_other.source.replica.reset();
  View of_left = SW_TRY(make_view(std::move(a), naming, of_one, use));
  if (of_left.took_sizes) {
    of_other.source = {.replica = of_other.source.replica,
                       .accept_loss = options.source.accept_loss};
  }
  View of_right = SW_TRY(make_view(std::move(b), naming, of_other, use));
  if (tells_sizes(options.source) && !of_left.took_sizes && !of_right.took_sizes) {
    return refuse_sizes(left + ", " + right);
  }
  if (naming == Naming::kCanonical) cut_vocabularies(of_left, of_right, options, of_left.notes);
  DiffReport report = SW_TRY(Comparison(of_left, of_right, options, tolerance).run());
  if (!tells_sizes(options.source)) SW_TRY(check_order(of_left, of_right, report));
  report.settings = SW_TRY(differing_training_settings(of_left, of_right));
  report.has_unread_settings = has_unread_settings(of_left, of_right);
  std::ranges::move(
      differing_adapter_settings(of_left.checkpoint, of_right.checkpoint, report.notes),
      std::back_inserter(report.settings));
  if (std::string note = differing_model_note(of_left, of_right, options.choice); !note.empty()) {
    report.notes.push_back(std::move(note));
  }
  report.left = of_left.checkpoint.location.path;
  report.right = of_right.checkpoint.location.path;
  report.is_canonical = naming == Naming::kCanonical;
  report.family = of_left.family.empty() ? of_right.family : of_left.family;
  report.notes = joined(of_left, of_right, report.notes);
  return report;
}

}  // namespace shardwright
