// SPDX-License-Identifier: Apache-2.0
#include "verify/hash.h"

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "canonical/canonical_model.h"
#include "canonical/families.h"
#include "canonical/mlite_naming.h"
#include "exec/finish_reading.h"
#include "io/source_files.h"
#include "plan/source_place.h"
#include "remote/open_path.h"
#include "verify/digest.h"
#include "verify/tile_buffer.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

// Each of them has more than such a part of all bytes.
constexpr std::uint64_t kTensorsOfLargeSize = 64;

// Tensors that are hashed one by one.
struct HashOrder {
  std::vector<std::size_t> tensors;
  std::vector<std::uint64_t> bytes;  // of each
};

// The largest first, so that no thread is left alone with one at the end; the others as they lie
// in the source's files.
HashOrder order_of(const View& view) {
  const std::vector<StoredTensor>& tensors = view.plan.target.tensors;
  const std::uint64_t large = bytes_of(view) / kTensorsOfLargeSize;
  std::vector<std::uint64_t> sizes;
  std::vector<SourcePlace> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorDesc& desc = tensors[i].desc;
    sizes.push_back(static_cast<std::uint64_t>(Box::whole(desc.shape).volume()) *
                    static_cast<std::uint64_t>(bytes_of(desc.dtype)));
    places.push_back(first_place(view.plan, i));
  }
  HashOrder order;
  order.tensors.resize(tensors.size());
  std::iota(order.tensors.begin(), order.tensors.end(), std::size_t{0});
  std::ranges::stable_sort(order.tensors, [&](std::size_t a, std::size_t b) {
    const std::uint64_t of_a = sizes[a] > large ? sizes[a] : 0;
    const std::uint64_t of_b = sizes[b] > large ? sizes[b] : 0;
    return of_a != of_b ? of_a > of_b : places[a] < places[b];
  });
  for (const std::size_t tensor : order.tensors) order.bytes.push_back(sizes[tensor]);
  return order;
}

}  // namespace

Result<HashReport> hash_view(const View& view, const ProofOptions& options) {
  const std::vector<StoredTensor>& tensors = view.plan.target.tensors;
  const LastReading last(*view.checkpoint.files);
  const HashOrder order = order_of(view);
  const Lowering lowering(view.plan);
  Workload workload(options, bytes_of(view), is_remote_path(view.checkpoint.location.path));
  const std::size_t tile_bytes = workload.buffer_bytes(2);
  const auto make_worker = [&]() -> JobWorker {
    const auto buffer = std::make_shared<TileBuffer>(view, lowering, tile_bytes);
    return [&, buffer](std::size_t job) -> Result<JobResult> {
      const std::size_t tensor = order.tensors[job];
      Digest digest = begin_digest(tensors[tensor].desc);
      const TileGrid grid = tiles_of(view, tensor, tile_bytes);
      for (std::int64_t tile = 0; tile < grid.count(); ++tile) {
        const auto bytes = SW_TRY(buffer->read(tensor, grid.tile(tile)));
        digest.add(bytes);
        workload.add_bytes(bytes.size());
      }
      return JobResult{digest.text()};
    };
  };
  std::vector<std::string> found =
      SW_TRY(workload.share("hashing tensors", order.bytes, make_worker));
  SW_TRY(finish_reading(*view.checkpoint.files, workload.threads()));
  std::vector<std::string> digests(tensors.size());
  for (std::size_t job = 0; job < found.size(); ++job) {
    digests[order.tensors[job]] = std::move(found[job]);
  }
  HashReport report;
  report.path = view.checkpoint.location.path;
  report.is_canonical = view.naming == Naming::kCanonical;
  report.is_hf_model = view.checkpoint.location.traits.is_hf_model;
  report.family = view.family;
  report.notes = view.notes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool is_beside = is_beside_the_model(tensors[i].desc.name);
    (is_beside ? report.beside : report.model).push_back({tensors[i].desc, std::move(digests[i])});
  }
  report.model_digest = digest_of(report.model);
  if (!report.beside.empty()) report.beside_digest = digest_of(report.beside);
  return report;
}

Result<HashReport> hash_checkpoint(const std::string& path, const ProofOptions& options) {
  Checkpoint checkpoint = SW_TRY(open_checkpoint(path, FormatChoice{options.as}));
  const bool may_be_unknown = checkpoint.location.traits.is_hf_model;
  const Naming naming =
      options.own_names ? Naming::kStored : natural_naming(checkpoint, options.choice);
  ViewUse use;
  use.states = options.keeps_stored_states ? StateUse::kAsStored : StateUse::kByTensor;
  Result<View> view = make_view(std::move(checkpoint), naming, options, use);
  // A model whose family is not known is hashed as it is stored, rather than not at all.
  if (!view && may_be_unknown && naming == Naming::kCanonical && options.choice.family.empty() &&
      is_about_family(view.error().code)) {
    const std::string why = view.error().message;
    view = make_view(SW_TRY(open_checkpoint(path, FormatChoice{options.as})), Naming::kStored,
                     options);
    if (view) view->notes.push_back(translated("hashed by the stored names, because ") + why);
  }
  if (!view) return std::unexpected(std::move(view).error());
  if (tells_sizes(options.source) && !view->took_sizes) return refuse_sizes(path);
  const bool is_left_out = view->checkpoint.has_unread_optimizer;
  const std::string& why = view->states_left;
  if (!why.empty()) {
    view->notes.push_back((is_left_out
                               ? translated("optimizer states are left out: ")
                               : translated("optimizer states are taken as they are stored: ")) +
                          why);
  }
  HashReport report = SW_TRY(hash_view(*view, options));
  if (is_left_out) report.states_left = why;
  return report;
}

}  // namespace shardwright
