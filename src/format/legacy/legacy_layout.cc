// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_layout.h"

#include <cstring>

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "codec/torch_layout.h"
#include "codec/torch_record.h"
#include "codec/torch_tensor.h"
#include "format/legacy/legacy_state.h"
#include "io/memory_directory.h"
#include "state/plain_arguments.h"

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
  const std::string storage = SW_TRY(read_torch_storage(*file, place, common_state.size()));
  std::memcpy(&value, storage.data() + (place.range.offset - place.storage.offset), sizeof(value));
  return static_cast<double>(value);
}

// Those of the rank that wrote the common state are other ranks' lies.
Status set_writer(pickle::Document& document, pickle::Value args, const LegacyWriter& writer) {
  if (!args) return {};
  const Arguments known = SW_TRY(plain_arguments(args));
  document.set_attribute(args, "rank", document.integer(writer.rank));
  document.set_attribute(args, "world_size", document.integer(writer.world));
  const auto set = [&](std::string_view name, pickle::Value value) {
    if (known.contains(name)) document.set_attribute(args, name, value);
  };
  set("local_rank", document.integer(writer.rank));
  set("data_parallel_size", document.integer(writer.data));
  set("context_parallel_size", document.integer(1));
  set("use_tp_pp_dp_mapping", document.boolean(false));
  return {};
}

}  // namespace

Result<LegacyFileLayout> layout_legacy_file(const std::string& common_state,
                                            const LegacyWriter& writer,
                                            std::span<const LegacyStateDict> models,
                                            const LegacyTrained* trained) {
  using pickle::Value;
  LegacyStateParts parts;
  if (trained != nullptr) parts.optimizer = LegacyStateParts::Optimizer::kAsItIs;
  pickle::Document document =
      SW_TRY(plain_state(*make_memory_file("common.pt", common_state), parts)).state;
  const Value state = document.root();
  SW_TRY(set_writer(document, state.find("args"), writer));
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
