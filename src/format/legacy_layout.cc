// SPDX-License-Identifier: Apache-2.0
#include "format/legacy_layout.h"

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "format/legacy_state.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

// What a Float16Optimizer keeps in torch_dist's common state: a number, or a tensor of one.
Result<std::optional<double>> common_step(const std::string& common_state) {
  const auto file = make_memory_file("common.pt", common_state);
  const TorchArchive archive = SW_TRY(TorchArchive::open(*file));
  pickle::Value optimizer = archive.root().find("optimizer");
  if (const pickle::Value first = optimizer.find(std::int64_t{0})) optimizer = first;
  const pickle::Value step = optimizer.find("optimizer").find("state").find("common_step");
  if (!is_tensor(step)) return step.as_double();
  const LocatedTensor place = SW_TRY(archive.locate(step));
  if (place.dtype != DType::kF32 || place.range.length != sizeof(float)) {
    return fail(Code::kStateUnreadable, "common_step: found {} {}, expected one float32",
                torch_name(place.dtype), to_string(place.shape));
  }
  float value = 0;
  SW_TRY(file->read_at(place.range.offset, std::as_writable_bytes(std::span(&value, 1))));
  return static_cast<double>(value);
}

}  // namespace

Result<LegacyFileLayout> layout_legacy_file(const std::string& common_state,
                                            std::span<const LegacyStateDict> models,
                                            const LegacyTrained* trained) {
  using pickle::Value;
  LegacyStateParts parts;
  if (trained != nullptr) parts.optimizer = LegacyStateParts::Optimizer::kAsItIs;
  pickle::Document document =
      SW_TRY(plain_state(*make_memory_file("common.pt", common_state), parts)).state;
  const Value state = document.root();
  std::vector<std::uint64_t> sizes;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const Value dict = document.ordered_dict();
    for (const LegacyEntry& entry : models[m]) {
      Value value = document.none();
      if (entry.kind == LegacyEntry::Kind::kTensor) {
        value = make_torch_tensor(document, entry.dtype, entry.shape, std::to_string(sizes.size()));
        const std::int64_t bytes = SW_TRY(byte_count(entry.shape, entry.dtype));
        sizes.push_back(static_cast<std::uint64_t>(bytes));
      }
      document.set(dict, entry.name, value);
    }
    document.set(state, models.size() == 1 ? std::string("model") : fmt::format("model{}", m),
                 dict);
  }
  LegacyFileLayout result;
  if (trained != nullptr) {
    LegacyOptimizerLayout optimizer(document, trained->parameters, trained->is_mixed);
    const auto step = SW_TRY(common_step(common_state));
    document.set(state, "optimizer", SW_TRY(optimizer.make(state, step, sizes.size())));
    for (const OptimizerStorage& storage : optimizer.storages()) {
      const bool is_step = storage.kind == OptimizerStorage::Kind::kStep;
      const Dims shape = is_step ? Dims{} : trained->parameters[storage.parameter].shape;
      sizes.push_back(static_cast<std::uint64_t>(SW_TRY(byte_count(shape, DType::kF32))));
    }
    result.optimizer = optimizer.storages();
  }
  result.pickle = SW_TRY(pickle::encode(document, pickle::Protocol::kTwo));
  TorchLayoutOptions options;
  options.prefix = kLegacyPrefix;
  const TorchLayout layout = SW_TRY(TorchLayout::make(result.pickle, sizes, options));
  for (std::size_t i = 0; i < sizes.size(); ++i) result.storages.push_back(layout.storage(i));
  result.file_bytes = layout.total_bytes();
  return result;
}

}  // namespace shardwright
