// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_layout.h"

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "format/legacy/legacy_state.h"
#include "io/memory_directory.h"
#include "state/common_step.h"
#include "state/plain_arguments.h"

namespace shardwright {
namespace {

// Those of the run that wrote the common state are other ranks' lies. The node of the rank's
// number, which is not known yet; nothing without arguments.
pickle::Value set_writers(pickle::Document& document, pickle::Value args,
                          const LegacyWriters& writers) {
  if (!args) return pickle::Value();
  const pickle::Value rank = document.integer(0);
  if (!set_argument(document, args, "rank", rank) ||
      !set_argument(document, args, "world_size", document.integer(writers.world))) {
    return pickle::Value();
  }
  const auto set = [&](std::string_view name, pickle::Value value) {
    if (argument_pairs(args).find(name)) document.set(argument_pairs(args), name, value);
  };
  set("local_rank", rank);
  set("data_parallel_size", document.integer(writers.data));
  set("context_parallel_size", document.integer(1));
  set("use_tp_pp_dp_mapping", document.boolean(false));
  return rank;
}

}  // namespace

Result<LegacyStageLayout> layout_legacy_stage(const std::string& common_state,
                                              const LegacyWriters& writers,
                                              std::span<const LegacyStateDict> models,
                                              const LegacyTrained* trained) {
  using pickle::Value;
  LegacyStateParts parts;
  if (trained != nullptr) parts.optimizer = LegacyStateParts::Optimizer::kAsItIs;
  pickle::Document document =
      SW_TRY(plain_state(*make_memory_file("common.pt", common_state), parts)).state;
  const Value state = document.root();
  const Value rank = set_writers(document, state.find("args"), writers);
  LegacyStageLayout result;
  std::vector<std::uint64_t>& sizes = result.storage_bytes;
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
  if (trained != nullptr) {
    LegacyOptimizerLayout optimizer(document, trained->parameters, trained->is_mixed);
    const auto step = SW_TRY(common_step(common_state));
    document.set(state, "optimizer", SW_TRY(optimizer.make(state, step, sizes.size())));
    for (const OptimizerStorage& storage : optimizer.storages()) {
      const Dims shape = storage.step ? Dims{} : trained->parameters[storage.parameter].desc.shape;
      sizes.push_back(static_cast<std::uint64_t>(SW_TRY(byte_count(shape, DType::kF32))));
    }
    result.optimizer = optimizer.storages();
    result.drops_loss_scale = optimizer.drops_loss_scale();
  }
  for (std::string& piece : SW_TRY(encode_around(document, rank, pickle::Protocol::kTwo))) {
    result.around_rank.push_back(std::make_shared<const std::string>(std::move(piece)));
  }
  return result;
}

Result<LegacyFileLayout> LegacyStageFiles::of_rank(std::int64_t rank) {
  const auto number =
      std::make_shared<const std::string>(encode_integer(rank, pickle::Protocol::kTwo));
  std::vector<std::shared_ptr<const std::string>> pickle;
  std::size_t bytes = 0;
  for (const auto& piece : stage_.around_rank) {
    if (!pickle.empty()) pickle.push_back(number);
    pickle.push_back(piece);
  }
  for (const auto& piece : pickle) bytes += piece->size();
  const auto [found, is_new] = by_size_.try_emplace(bytes);
  LegacyFileLayout& file = found->second;
  if (is_new) {
    std::string text;
    for (const auto& piece : pickle) text += *piece;
    TorchLayoutOptions options;
    options.prefix = kLegacyPrefix;
    const TorchLayout layout =
        SW_TRY(TorchLayout::make(std::move(text), stage_.storage_bytes, options));
    std::vector<ByteRange> storages;
    storages.reserve(layout.storage_count());
    for (std::size_t i = 0; i < layout.storage_count(); ++i) storages.push_back(layout.storage(i));
    file.storages = std::make_shared<const std::vector<ByteRange>>(std::move(storages));
    file.file_bytes = layout.total_bytes();
  }
  file.pickle = std::move(pickle);
  return file;
}

}  // namespace shardwright
