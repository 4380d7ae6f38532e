// SPDX-License-Identifier: Apache-2.0
#include "layout/saved_job_fixture.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "layout/job_layout.h"
#include "layout/layer_name.h"
#include "layout/shard_distribution.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

// What torch.save adds to the elements of a small tensor.
constexpr std::uint64_t kArchiveBytes = 1577;

struct Item {
  std::uint32_t tensor = 0;
  std::uint32_t piece = 0;
  std::int64_t layer = 0;  // before its stacks, in them, behind them
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> holders;
};

class Saver {
 public:
  explicit Saver(const SavedJob& job)
      : job_(job), layout_(JobLayout::make(job.tensors, job.parallel, job.data).value()) {
    for (const TensorDesc& tensor : job.tensors) {
      shards_.push_back(layout_.place(tensor).value());
      catalog_.tensors.push_back({tensor, ChunkList(tensor.shape.size()), Encoding::kTorchItem});
    }
    for (std::int64_t file = 0; file < 2 * layout_.world_size(); ++file) {
      catalog_.files.push_back("__" + std::to_string(file / 2) + "_" + std::to_string(file % 2) +
                               ".distcp");
    }
    sizes_.resize(catalog_.files.size());
  }

  // Groups by their tensor ranks, so that copies come in that order.
  Catalog save() && {
    for (std::int64_t tensor_rank = 0; tensor_rank < job_.parallel.tensor; ++tensor_rank) {
      for (std::int64_t stage = 0; stage < job_.parallel.pipeline; ++stage) {
        save_group(stage * job_.parallel.tensor + tensor_rank);
      }
    }
    return std::move(catalog_);
  }

 private:
  void save_group(std::int64_t group) {
    std::vector<Item> items = items_of(group);
    std::ranges::stable_sort(items, {}, &Item::layer);
    std::deque<std::string> names;
    std::vector<SharedShard> shards;
    for (const Item& item : items) {
      const JobShards& placed = shards_[item.tensor];
      std::string& name = names.emplace_back(job_.tensors[item.tensor].name);
      if (has_copies(item.tensor)) name = name_of_copy(item.tensor, group);
      shards.push_back({name, placed.pieces[item.piece].box.origin, item.bytes, item.holders});
    }
    const auto members = static_cast<std::size_t>(layout_.group_size());
    const Distribution distribution = distribute_shards(shards, members);
    std::map<std::uint32_t, std::vector<const Item*>> by_member;
    for (std::size_t i = 0; i < items.size(); ++i) {
      by_member[distribution.reader[i]].push_back(&items[i]);
    }
    for (auto& [member, written] : by_member) write(layout_.rank_of(group, member), written);
  }

  [[nodiscard]] std::string name_of_copy(std::uint32_t tensor, std::int64_t group) const {
    const std::int64_t rank = layout_.tensor_rank_of(group);
    return job_.tensors[tensor].name + ".__tp_replica_" + std::to_string(rank);
  }

  [[nodiscard]] bool has_copies(std::uint32_t tensor) const {
    return job_.has_copies && job_.parallel.tensor > 1 && shards_[tensor].is_replicated &&
           !shards_[tensor].is_expert;
  }

  std::vector<Item> items_of(std::int64_t group) {
    std::vector<Item> items;
    for (std::uint32_t tensor = 0; tensor < shards_.size(); ++tensor) {
      const TensorDesc& desc = job_.tensors[tensor];
      for (std::uint32_t piece = 0; piece < shards_[tensor].pieces.size(); ++piece) {
        const RankRuns ranks = layout_.holders(shards_[tensor], piece);
        if (!has_copies(tensor) && layout_.group_of(ranks.first) != group) continue;
        const Box box = shards_[tensor].pieces[piece].box;
        const auto elements = static_cast<std::uint64_t>(box.volume());
        Item item{
            tensor, piece, 0, elements * static_cast<std::uint64_t>(bytes_of(desc.dtype)), {}};
        const auto layer = split_layer_name(desc.name);
        item.layer = layer ? layer->index.value_or(box.origin[0])
                           : (desc.name.find("embedding") == std::string::npos ? 1000 : -1);
        if (split_state_name(desc.name)) item.layer += 10000;
        for (std::int64_t i = 0; i < ranks.size(); ++i) {
          if (layout_.group_of(ranks[i]) != group) continue;
          item.holders.push_back(static_cast<std::uint32_t>(layout_.member_of(ranks[i])));
        }
        if (!item.holders.empty()) items.push_back(std::move(item));
      }
    }
    return items;
  }

  // Into two files, the largest first, each into the smaller one.
  void write(std::int64_t rank, std::vector<const Item*>& items) {
    std::ranges::stable_sort(items, std::greater<>(), &Item::bytes);
    for (const Item* item : items) {
      auto file = static_cast<std::uint32_t>(2 * rank);
      if (sizes_[file + 1] < sizes_[file]) ++file;
      StoredTensor& tensor = catalog_.tensors[item->tensor];
      const std::uint64_t length = item->bytes + kArchiveBytes;
      tensor.chunks.push_back(
          {shards_[item->tensor].pieces[item->piece].box, file, {offsets_[file], length}, {}});
      if (has_copies(item->tensor)) note_copy(item->tensor, layout_.group_of(rank));
      sizes_[file] += item->bytes;
      offsets_[file] += length;
    }
  }

  void note_copy(std::uint32_t tensor, std::int64_t group) {
    std::vector<StoredCopy>& copies = catalog_.tensors[tensor].copies;
    const std::string name = name_of_copy(tensor, group);
    if (copies.empty() || copies.back().name != name) {
      copies.push_back({name, layout_.tensor_rank_of(group)});
    }
    ++copies.back().chunks;
  }

  const SavedJob& job_;
  JobLayout layout_;
  std::vector<JobShards> shards_;
  Catalog catalog_;
  std::vector<std::uint64_t> sizes_;  // of elements, by file
  std::map<std::uint32_t, std::uint64_t> offsets_;
};

struct Part {
  std::string_view name;  // within a layer
  Dims shape;
};

std::vector<TensorDesc> model_of(const std::vector<Part>& parts, bool stacked) {
  constexpr std::int64_t kLayers = 4;
  std::vector<TensorDesc> tensors{{"embedding.word_embeddings.weight", DType::kBF16, {512, 64}}};
  const auto add = [&](const std::string& stack, const Part& part, const Dims& shape) {
    const bool is_bias = part.name.ends_with("expert_bias");
    tensors.push_back(
        {stack + std::string(part.name), is_bias ? DType::kF32 : DType::kBF16, shape});
  };
  for (const Part& part : parts) {
    if (stacked) {
      Dims shape{kLayers};
      for (const std::int64_t extent : part.shape) shape.push_back(extent);
      add("decoder.layers.", part, shape);
      continue;
    }
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      add("decoder.layers." + std::to_string(layer) + ".", part, part.shape);
    }
  }
  tensors.push_back({"decoder.final_layernorm.weight", DType::kBF16, {64}});
  tensors.push_back({"output_layer.weight", DType::kBF16, {512, 64}});
  return tensors;
}

}  // namespace

Catalog saved(const SavedJob& job) { return Saver(job).save(); }

std::vector<TensorDesc> dense_model(bool stacked) {
  return model_of({{"self_attention.linear_qkv.layer_norm_weight", {64}},
                   {"self_attention.linear_proj.weight", {64, 64}},
                   {"self_attention.linear_qkv.weight", {128, 64}},
                   {"mlp.linear_fc1.layer_norm_weight", {64}},
                   {"mlp.linear_fc1.weight", {192, 64}},
                   {"mlp.linear_fc2.weight", {64, 96}}},
                  stacked);
}

std::vector<TensorDesc> sparse_model(bool stacked) {
  return model_of({{"self_attention.linear_qkv.layer_norm_weight", {64}},
                   {"self_attention.linear_proj.weight", {64, 64}},
                   {"self_attention.linear_qkv.weight", {128, 64}},
                   {"mlp.linear_fc1.layer_norm_weight", {64}},
                   {"mlp.router.weight", {8, 64}},
                   {"mlp.router.expert_bias", {8}},
                   {"mlp.experts.experts.linear_fc1.weight", {8, 32, 64}},
                   {"mlp.experts.experts.linear_fc2.weight", {8, 64, 16}},
                   {"mlp.shared_experts.linear_fc1.weight", {48, 64}},
                   {"mlp.shared_experts.linear_fc2.weight", {64, 24}}},
                  stacked);
}

std::vector<TensorDesc> with_optimizer(std::vector<TensorDesc> tensors) {
  const std::size_t count = tensors.size();
  for (const std::string_view kind : kStateKinds) {
    for (std::size_t i = 0; i < count; ++i) {
      if (tensors[i].name.ends_with("expert_bias")) continue;
      tensors.push_back({join_state_name(kind, tensors[i].name), DType::kF32, tensors[i].shape});
    }
  }
  return tensors;
}

}  // namespace shardwright
