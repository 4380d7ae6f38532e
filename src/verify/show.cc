// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/text.h"
#include "format/torch_items.h"
#include "io/source_files.h"
#include "model/nearest.h"
#include "plan/canonical.h"
#include "tensor/values.h"
#include "verify/tile_buffer.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

constexpr std::int64_t kValuesShown = 8;

// Of the finite numbers of a part of a tensor.
struct Moments {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  double count = 0.0;
  double mean = 0.0;
  double squares = 0.0;  // sum of squared distances from the mean
  double least = HUGE_VAL;
  double greatest = -HUGE_VAL;

  void take(double value) {
    nan += std::isnan(value) ? 1U : 0U;
    infinite += std::isinf(value) ? 1U : 0U;
    zero += value == 0.0 ? 1U : 0U;
    if (!std::isfinite(value)) return;
    count += 1.0;
    const double delta = value - mean;
    mean += delta / count;
    squares += delta * (value - mean);
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }

  // Chan, Golub and LeVeque's way to join two parts.
  void add(const Moments& other) {
    nan += other.nan;
    infinite += other.infinite;
    zero += other.zero;
    if (other.count == 0.0) return;
    const double together = count + other.count;
    const double delta = other.mean - mean;
    mean += delta * other.count / together;
    squares += other.squares + delta * delta * count * other.count / together;
    count = together;
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }
};

std::string text_of(DType dtype, std::span<const std::byte> element) {
  std::vector<double> parts(static_cast<std::size_t>(parts_of(dtype)));
  if (parts.empty()) return fmt::format("{:#04x}", std::to_integer<unsigned>(element[0]));
  decode_values(dtype, element, parts);
  if (parts.size() == 2) return fmt::format("{}{:+}i", parts[0], parts[1]);
  return fmt::format("{}", parts[0]);
}

// The tensor of that name: a stored one, or one layer of a stack.
Result<CanonicalTensor> find_tensor(const Catalog& catalog, const std::string& name) {
  std::vector<std::string> names;
  std::vector<CanonicalTensor> layers;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const TensorDesc& desc = catalog.tensors[i].desc;
    if (desc.name == name) return CanonicalTensor{desc, i, -1};
    names.push_back(desc.name);
    append_canonical(catalog, i, desc.name, layers);
  }
  const auto layer = std::ranges::find(
      layers, name, [](const CanonicalTensor& tensor) { return tensor.desc.name; });
  if (layer != layers.end()) return *layer;
  const std::string meant = nearest_name(name, names);
  return fail(Code::kUsage, "TENSOR: found no '{}' in the checkpoint; {}", printable(name),
              meant.empty() ? "see 'shardwright inspect'" : fmt::format("did you mean {}?", meant));
}

void list_chunks(const View& view, const CanonicalTensor& tensor, TensorReport& report) {
  const StoredTensor& stored = view.plan.source.tensors.front();
  report.stored = stored.desc.name;
  for (std::size_t i = 0; i < stored.chunks.size(); ++i) {
    const Chunk chunk = stored.chunks[i];
    const bool is_of_layer = tensor.layer < 0 || (chunk.box.origin[0] <= tensor.layer &&
                                                  tensor.layer < chunk.box.end(0));
    if (!is_of_layer) continue;
    report.chunks.push_back(chunk);
    report.files.push_back(view.plan.source.files[chunk.file]);
  }
}

void fill_statistics(DType dtype, const Moments& all, TensorReport& report) {
  report.nan = all.nan;
  report.infinite = all.infinite;
  report.zero = all.zero;
  if (parts_of(dtype) != 1 || all.count == 0.0) return;
  report.least = all.least;
  report.greatest = all.greatest;
  report.mean = all.mean;
  report.deviation = std::sqrt(all.squares / all.count);
}

Status read_values(const View& view, const ProofOptions& options, TensorReport& report) {
  const DType dtype = report.desc.dtype;
  const auto element = static_cast<std::size_t>(bytes_of(dtype));
  Workload workload(options, bytes_of(view));
  const std::size_t tile_bytes = workload.buffer_bytes(2) / 8;
  const TileGrid grid = tiles_of(view, 0, tile_bytes);
  const Lowering lowering(view.plan);
  std::vector<Moments> parts(static_cast<std::size_t>(grid.count()));
  const auto make_worker = [&]() -> Workload::Worker {
    const auto buffer = std::make_shared<TileBuffer>(view, lowering, tile_bytes);
    const auto values = std::make_shared<std::vector<double>>();
    return [&, buffer, values](std::size_t job) -> Status {
      const auto bytes = SW_TRY(buffer->read(0, grid.tile(static_cast<std::int64_t>(job))));
      values->resize(bytes.size() / element * static_cast<std::size_t>(parts_of(dtype)));
      decode_values(dtype, bytes, *values);
      for (const double value : *values) parts[job].take(value);
      for (std::size_t i = 0;
           job == 0 && i < std::min<std::size_t>(kValuesShown, bytes.size() / element); ++i) {
        report.values.push_back(text_of(dtype, bytes.subspan(i * element, element)));
      }
      workload.add_bytes(bytes.size());
      return {};
    };
  };
  SW_TRY(workload.run(parts.size(), make_worker));
  Moments all;
  for (const Moments& part : parts) all.add(part);
  fill_statistics(dtype, all, report);
  return {};
}

}  // namespace

Result<TensorReport> show_tensor(const std::string& path, const std::string& name,
                                 const ProofOptions& options) {
  View view;
  view.checkpoint = SW_TRY(open_checkpoint(path));
  CanonicalTensor tensor = SW_TRY(find_tensor(view.checkpoint.catalog, name));
  // Only this one is located and proven.
  view.plan.source.files = view.checkpoint.catalog.files;
  view.plan.source.tensors.push_back(std::move(view.checkpoint.catalog.tensors[tensor.stored]));
  tensor.stored = 0;
  SW_TRY(locate_items(view.plan.source, *view.checkpoint.files));
  SW_TRY(check_coverage(view.plan.source.tensors.front()));
  view.plan.target.tensors.push_back({tensor.desc, ChunkList(tensor.desc.shape.size())});
  view.plan.tensors.push_back({{view_of_canonical(tensor)}, std::nullopt, 0.0});
  TensorReport report;
  report.desc = tensor.desc;
  report.elements = static_cast<std::uint64_t>(Box::whole(tensor.desc.shape).volume());
  list_chunks(view, tensor, report);
  SW_TRY(read_values(view, options, report));
  return report;
}

}  // namespace shardwright
