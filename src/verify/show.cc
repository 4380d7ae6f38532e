// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "canonical/canonical_model.h"
#include "canonical/families.h"
#include "compare/replicas.h"
#include "dcp/named_replicas.h"
#include "dcp/torch_items.h"
#include "exec/finish_reading.h"
#include "io/source_files.h"
#include "plan/canonical.h"
#include "tensor/values.h"
#include "verify/moments.h"
#include "verify/replicas_on_read.h"
#include "verify/tile_buffer.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

constexpr std::int64_t kValuesShown = 8;
// Sums of parts: the same ones wherever they come from and however many threads measure them, so
// that the last digit is too.
constexpr std::size_t kTileBytes = std::size_t{32} << 10;

// The tensor of that name: a stored one, or one layer of a stack; nothing where there is none.
std::optional<CanonicalTensor> find_tensor(const Catalog& catalog, const std::string& name) {
  std::vector<CanonicalTensor> layers;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const TensorDesc& desc = catalog.tensors[i].desc;
    if (desc.name == name) return CanonicalTensor{desc, i, -1};
    append_canonical(catalog, i, desc.name, layers);
  }
  const auto layer = std::ranges::find(
      layers, name, [](const CanonicalTensor& tensor) { return tensor.desc.name; });
  return layer == layers.end() ? std::nullopt : std::optional(*layer);
}

std::unexpected<Error> refuse_name(const std::string& name, const std::vector<std::string>& names) {
  const std::string_view meant = nearest_of(name, names);
  return fail(Code::kUsage, "the checkpoint has no tensor '{}'; {}", printable(name),
              meant.empty() ? translated("see 'shardwright inspect'")
                            : translated("did you mean {}?", meant));
}

// By the name that one rank's copy is stored under, that copy.
void take_named_copy(Catalog& catalog, const std::string& name) {
  for (StoredTensor& tensor : catalog.tensors) {
    const auto copy = std::ranges::find(tensor.copies, name, &StoredCopy::name);
    if (copy == tensor.copies.end() || tensor.desc.name == name) continue;
    tensor = tensor_of_copy(tensor, static_cast<std::size_t>(copy - tensor.copies.begin()));
    return;
  }
}

Status take_shown_replica(Catalog& catalog, const std::string& name, std::int64_t replica) {
  const std::optional<CanonicalTensor> tensor = find_tensor(catalog, name);
  if (tensor && !has_numbered_replicas({{}, {catalog.tensors[tensor->stored]}, {}})) {
    return fail(Code::kUsage,
                "--replica {}: tensor {} has no copies that tensor ranks stored under names of "
                "their own; leave the flag out",
                replica, name);
  }
  SW_TRY(take_replica(catalog, replica));
  return {};
}

// Only this one is located and proven.
Result<View> view_of_stored(Checkpoint checkpoint, CanonicalTensor tensor) {
  View view;
  view.checkpoint = std::move(checkpoint);
  view.plan.source.files = view.checkpoint.catalog.files;
  view.plan.source.tensors.push_back(std::move(view.checkpoint.catalog.tensors[tensor.stored]));
  tensor.stored = 0;
  SW_TRY(locate_items(view.plan.source, *view.checkpoint.files));
  SW_TRY(check_coverage(view.plan.source.tensors.front()));
  if (!view.plan.source.tensors.front().copies.empty()) {
    Defects first;
    SW_TRY(check_named_replicas(view.checkpoint, view.plan.source, first));
  }
  view.plan.target.tensors.push_back({tensor.desc, ChunkList(tensor.desc.shape.size())});
  view.plan.tensors.push_back({{view_of_canonical(tensor)}, std::nullopt, 0.0});
  return view;
}

// A tensor by the name that Megatron has for it, of a checkpoint that stores it under another one;
// nothing where the model has none of that name, or its family is not known.
Result<std::optional<View>> view_of_model(Checkpoint checkpoint, const std::string& name,
                                          const ProofOptions& options) {
  ViewUse use{.compares_replicas = false};
  if (is_optimizer_name(name)) use.states = StateUse::kByTensor;
  auto view = make_view(std::move(checkpoint), Naming::kCanonical, options, use);
  if (!view && is_about_family(view.error().code)) return std::nullopt;
  if (!view) return std::unexpected(std::move(view).error());
  Plan& plan = view->plan;
  const auto found = std::ranges::find(
      plan.target.tensors, name, [](const StoredTensor& t) -> const auto& { return t.desc.name; });
  if (found == plan.target.tensors.end()) return std::nullopt;
  const auto index = found - plan.target.tensors.begin();
  plan.tensors = {std::move(plan.tensors[static_cast<std::size_t>(index)])};
  plan.target.tensors = {std::move(*found)};
  return std::optional<View>(*std::move(view));
}

// Whether a view reads something of a box.
bool meets(const Box& box, const TensorView& view) {
  for (int axis = 0; axis < box.axes(); ++axis) {
    std::int64_t extent = 1;
    for (int target = 0; target < view.axis.size(); ++target) {
      if (view.axis[target] == axis) extent += (view.box.shape[target] - 1) * view.step[target];
    }
    const std::int64_t begin = view.source_origin[axis];
    if (box.origin[axis] >= begin + extent || box.end(axis) <= begin) return false;
  }
  return true;
}

void list_chunks(const View& view, TensorReport& report) {
  std::set<std::uint32_t> seen;
  std::set<std::pair<std::uint32_t, std::size_t>> listed;  // views of interleaved rows share chunks
  for (const TensorView& part : view.plan.tensors.front().views) {
    const StoredTensor& stored = view.plan.source.tensors[part.source];
    if (seen.insert(part.source).second) {
      report.stored += (report.stored.empty() ? "" : ", ") + stored.desc.name;
    }
    for (std::size_t i = 0; i < stored.chunks.size(); ++i) {
      const Chunk chunk = stored.chunks[i];
      if (!meets(chunk.box, part) || !listed.emplace(part.source, i).second) continue;
      report.chunks.push_back(chunk);
      report.files.push_back(view.plan.source.files[chunk.file]);
    }
  }
}

void fill_statistics(DType dtype, const Moments& all, TensorReport& report) {
  report.nan = all.nan;
  report.infinite = all.infinite;
  report.zero = all.zero;
  if (parts_of(dtype) != 1 || all.count == 0.0) return;
  report.least = all.least;
  report.greatest = all.greatest;
  report.mean = all.average();
  report.deviation = all.deviation();
}

Status read_values(const View& view, const ProofOptions& options, TensorReport& report) {
  const DType dtype = report.desc.dtype;
  const auto element = static_cast<std::size_t>(bytes_of(dtype));
  Workload workload(options, bytes_of(view), false);
  const TileGrid grid = tiles_of(view, 0, kTileBytes);
  const Lowering lowering(view.plan);
  std::vector<Moments> parts(static_cast<std::size_t>(grid.count()));
  const auto make_worker = [&]() -> Workload::Worker {
    const auto buffer = std::make_shared<TileBuffer>(view, lowering, kTileBytes);
    const auto values = std::make_shared<std::vector<double>>();
    return [&, buffer, values](std::size_t job) -> Status {
      const auto bytes = SW_TRY(buffer->read(0, grid.tile(static_cast<std::int64_t>(job))));
      values->resize(bytes.size() / element * static_cast<std::size_t>(parts_of(dtype)));
      decode_values(dtype, bytes, *values);
      for (const double value : *values) parts[job].take(value);
      for (std::size_t i = 0;
           job == 0 && i < std::min<std::size_t>(kValuesShown, bytes.size() / element); ++i) {
        report.values.push_back(value_text(dtype, bytes.subspan(i * element, element)));
      }
      workload.add_bytes(bytes.size());
      return {};
    };
  };
  SW_TRY(workload.run(parts.size(), make_worker));
  SW_TRY(finish_reading(*view.checkpoint.files, workload.threads()));
  Moments all;
  for (const Moments& part : parts) all.add(part);
  fill_statistics(dtype, all, report);
  return {};
}

}  // namespace

Result<TensorReport> show_tensor(const std::string& path, const std::string& name,
                                 const ProofOptions& options) {
  Checkpoint checkpoint = SW_TRY(open_checkpoint(path, FormatChoice{options.as}));
  std::vector<std::string> names;
  for (const StoredTensor& stored : checkpoint.catalog.tensors) names.push_back(stored.desc.name);
  ProofOptions rest = options;
  if (options.source.replica) {
    SW_TRY(take_shown_replica(checkpoint.catalog, name, *options.source.replica));
    rest.source.replica.reset();
  } else {
    take_named_copy(checkpoint.catalog, name);
  }
  const std::optional<CanonicalTensor> tensor = find_tensor(checkpoint.catalog, name);
  std::optional<View> view;
  if (tensor) {
    view = SW_TRY(view_of_stored(std::move(checkpoint), *tensor));
  } else if (has_canonical_form(checkpoint)) {
    view = SW_TRY(view_of_model(std::move(checkpoint), name, rest));
  }
  if (!view) return refuse_name(name, names);
  SW_TRY(ReplicasOnRead(view->plan, *view->checkpoint.files).compare(0));
  TensorReport report;
  report.notes = view->checkpoint.location.notes;
  report.desc = view->plan.target.tensors.front().desc;
  report.elements = static_cast<std::uint64_t>(Box::whole(report.desc.shape).volume());
  list_chunks(*view, report);
  SW_TRY(read_values(*view, options, report));
  return report;
}

}  // namespace shardwright
