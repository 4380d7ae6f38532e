// SPDX-License-Identifier: Apache-2.0
#include "layout/load_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "layout/saved_job_fixture.h"

namespace shardwright {
namespace {

constexpr ParallelConfig kTp1{};
constexpr ParallelConfig kTp2{.tensor = 2, .expert_tensor = 2};
constexpr ParallelConfig kTp4{.tensor = 4, .expert_tensor = 4};
constexpr ParallelConfig kTp2Pp2{.tensor = 2, .pipeline = 2, .expert_tensor = 2};
constexpr ParallelConfig kEp2{.tensor = 2, .expert = 2, .expert_tensor = 2};
constexpr ParallelConfig kEp4{.tensor = 2, .expert = 4};

struct Totals {
  std::uint64_t opens = 0;
  std::uint64_t foreign_opens = 0;
  std::uint64_t foreign_bytes = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t min_bytes = ~std::uint64_t{0};

  friend bool operator==(const Totals&, const Totals&) = default;
  friend void PrintTo(const Totals& totals, std::ostream* out) {
    *out << totals.opens << " opens, " << totals.foreign_opens << " foreign of "
         << totals.foreign_bytes << " bytes, " << totals.max_bytes << "-" << totals.min_bytes;
  }
};

Totals totals_of(const LoadPlan& plan) {
  Totals totals;
  for (const RankLoad& rank : plan.ranks) {
    totals.opens += rank.opens;
    totals.foreign_opens += rank.foreign_opens;
    totals.foreign_bytes += rank.foreign_bytes;
    totals.max_bytes = std::max(totals.max_bytes, rank.bytes);
    totals.min_bytes = std::min(totals.min_bytes, rank.bytes);
  }
  return totals;
}

// A checkpoint, and the job that loads it.
class Load {
 public:
  Load(Catalog catalog, const ParallelConfig& config, std::int64_t data)
      : catalog_(std::move(catalog)),
        layout_(JobLayout::make(descs_of(catalog_), config, data).value()) {
    for (std::uint32_t i = 0; i < catalog_.tensors.size(); ++i) which_.push_back(i);
    needs_ = needs_of(catalog_, which_, layout_).value();
    plans_ = plan_loads(needs_);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  [[nodiscard]] const LoadPlan& stock() const { return plans_[0]; }
  [[nodiscard]] const LoadPlan& per_name() const { return plans_[1]; }
  [[nodiscard]] const LoadPlan& per_chunk() const { return plans_[2]; }
  [[nodiscard]] const std::array<LoadPlan, 3>& plans() const { return plans_; }
  [[nodiscard]] const LoadNeeds& needs() const { return needs_; }

  // That every element that a group needs is read by one of its members that needs some of the
  // chunk it lies in.
  void expect_complete(const LoadPlan& plan) const {
    std::set<std::tuple<std::int64_t, std::uint32_t, std::string>> read;  // group, tensor, box
    for (const PlannedRead& one : plan.reads) {
      const Box box = needs_.tensors[one.tensor].stored->chunks.box(one.chunk);
      read.emplace(layout_.group_of(one.rank), one.tensor, to_string(box));
      EXPECT_TRUE(needs_some(one.rank, one.tensor, box)) << one.rank << " " << to_string(box);
    }
    for (std::uint32_t group = 0; group < needs_.groups.size(); ++group) {
      const GroupNeeds& all = needs_.groups[group];
      for (const NeededShard& shard : all.shards) {
        const StoredTensor& stored = *needs_.tensors[shard.tensor].stored;
        std::int64_t volume = 0;
        const Box piece = needs_.tensors[shard.tensor].shards.pieces[shard.piece].box;
        for (std::uint32_t c = 0; c < shard.chunks; ++c) {
          const Box box = stored.chunks.box(all.copies[all.chunks[shard.first + c].first]);
          EXPECT_TRUE(read.contains({group, shard.tensor, to_string(box)})) << stored.desc.name;
          if (const auto common = intersect(box, piece)) volume += common->volume();
        }
        EXPECT_EQ(volume, piece.volume()) << stored.desc.name;
      }
    }
  }

 private:
  [[nodiscard]] bool needs_some(std::int64_t rank, std::uint32_t tensor, const Box& box) const {
    const JobShards& shards = needs_.tensors[tensor].shards;
    for (std::size_t piece = 0; piece < shards.pieces.size(); ++piece) {
      if (!intersect(shards.pieces[piece].box, box)) continue;
      if (layout_.holders(shards, piece).contains(rank)) return true;
      if (shards.is_tied && layout_.tied_holders(shards, piece).contains(rank)) return true;
    }
    return false;
  }

  Catalog catalog_;
  JobLayout layout_;
  std::vector<std::uint32_t> which_;
  LoadNeeds needs_;
  std::array<LoadPlan, 3> plans_;
};

// What processes of Megatron-LM were seen to open and read, with its own rule and with PR 3392's.
TEST(LoadPlan, TheRulesOfMegatronOpenAndReadWhatItsProcessesDo) {
  const Load plain({saved({dense_model(), kTp2, 2})}, kTp2, 2);
  EXPECT_EQ(totals_of(plain.stock()), (Totals{10, 2, 15345, 120080, 118375}));
  EXPECT_EQ(totals_of(plain.per_name()), (Totals{12, 6, 176585, 204110, 34345}));
  const Load copies({saved({dense_model(), kTp2, 2, true})}, kTp2, 2);
  EXPECT_EQ(totals_of(copies.per_name()), (Totals{10, 4, 168060, 204110, 34345}));
  const Load layers({saved({dense_model(false), kTp2, 2})}, kTp2, 2);
  EXPECT_EQ(totals_of(layers.stock()), (Totals{10, 2, 15345, 120080, 118375}));
  EXPECT_EQ(totals_of(layers.per_name()), (Totals{14, 6, 77113, 150964, 87491}));
  const Load wide({saved({dense_model(), kTp2, 4})}, kTp2, 4);
  EXPECT_EQ(totals_of(wide.stock()), (Totals{18, 2, 15345, 64620, 55460}));
  EXPECT_EQ(totals_of(wide.per_name()), (Totals{26, 16, 249699, 149689, 0}));
  const Load stages({saved({dense_model(), kTp2Pp2, 2, true})}, kTp2Pp2, 2);
  EXPECT_EQ(totals_of(stages.per_name()), (Totals{24, 8, 146228, 92017, 26358}));
  const Load states({saved({with_optimizer(dense_model()), kTp2, 2})}, kTp2, 2);
  EXPECT_EQ(totals_of(states.stock()), (Totals{12, 4, 64836, 761326, 761198}));
}

struct SameLayout {
  std::vector<TensorDesc> tensors;
  ParallelConfig config;
  std::int64_t data;
};

std::vector<SameLayout> same_layouts() {
  std::vector<SameLayout> cases;
  for (const bool stacked : {true, false}) {
    for (const std::int64_t data : {1, 2, 4}) {
      for (const ParallelConfig& config : {kTp1, kTp2, kTp2Pp2, kTp4}) {
        cases.push_back({dense_model(stacked), config, data});
        cases.push_back({with_optimizer(dense_model(stacked)), config, data});
        cases.push_back({sparse_model(stacked), config, data});
      }
    }
    cases.push_back({sparse_model(stacked), kEp2, 2});
    cases.push_back({sparse_model(stacked), kEp2, 4});
    cases.push_back({sparse_model(stacked), kEp4, 4});
    cases.push_back({with_optimizer(sparse_model(stacked)), kEp4, 2});
  }
  return cases;
}

TEST(LoadPlan, ByChunkTheJobThatSavedCopiesReadsItsOwnFilesOnly) {
  for (const SameLayout& job : same_layouts()) {
    SCOPED_TRACE(job.tensors[1].name + " tp" + std::to_string(job.config.tensor) + " dp" +
                 std::to_string(job.data));
    const Load load({saved({job.tensors, job.config, job.data, true})}, job.config, job.data);
    const Totals totals = totals_of(load.per_chunk());
    EXPECT_EQ(totals.foreign_opens, 0U);
    EXPECT_EQ(totals.foreign_bytes, 0U);
    const Totals stock = totals_of(load.stock());
    EXPECT_LE(totals.max_bytes, stock.max_bytes);
    EXPECT_GE(totals.min_bytes, stock.min_bytes);
    load.expect_complete(load.per_chunk());
  }
}

TEST(LoadPlan, ByChunkTheJobThatSavedNoCopiesReadsNoMoreForeignThanByMegatronsRule) {
  for (const SameLayout& job : same_layouts()) {
    SCOPED_TRACE(job.tensors[1].name + " tp" + std::to_string(job.config.tensor) + " dp" +
                 std::to_string(job.data));
    const Load load({saved({job.tensors, job.config, job.data})}, job.config, job.data);
    const Totals totals = totals_of(load.per_chunk());
    const Totals stock = totals_of(load.stock());
    EXPECT_LE(totals.foreign_opens, stock.foreign_opens);
    EXPECT_LE(totals.foreign_bytes, stock.foreign_bytes);
    EXPECT_LE(totals.max_bytes, stock.max_bytes);
    EXPECT_GE(totals.min_bytes, stock.min_bytes);
    load.expect_complete(load.per_chunk());
  }
}

TEST(LoadPlan, ByChunkNoChangeOfLayoutCostsMoreThanByTheOtherRules) {
  for (const bool has_copies : {false, true}) {
    for (const std::vector<TensorDesc>& model :
         {dense_model(), sparse_model(false), with_optimizer(dense_model(false))}) {
      for (const auto& [from, saved_data] : {std::pair(kTp1, 1),
                                             {kTp1, 2},
                                             {kTp2, 1},
                                             {kTp2, 2},
                                             {kTp4, 1},
                                             {kTp2Pp2, 2},
                                             {kEp4, 2},
                                             {kEp4, 4}}) {
        for (const auto& [to, data] : {std::pair(kTp1, 2),
                                       {kTp2, 2},
                                       {kTp2, 4},
                                       {kTp4, 2},
                                       {kTp2Pp2, 2},
                                       {kEp2, 4},
                                       {kEp4, 2},
                                       {kEp4, 4}}) {
          const Load load({saved({model, from, saved_data, has_copies})}, to, data);
          EXPECT_LE(load.per_chunk().cost(), load.stock().cost());
          EXPECT_LE(load.per_chunk().cost(), load.per_name().cost());
          for (const LoadPlan& plan : load.plans()) load.expect_complete(plan);
        }
      }
    }
  }
}

TEST(LoadPlan, NobodyIsIdleToSaveOpens) {
  const Load load({saved({dense_model(), kTp2, 1, true})}, kTp2, 2);
  EXPECT_EQ(totals_of(load.per_name()), (Totals{4, 0, 0, 238455, 0}));
  EXPECT_EQ(totals_of(load.per_chunk()).max_bytes, 120080U) << "as by Megatron's rule";
  EXPECT_LT(totals_of(load.per_chunk()).opens, totals_of(load.stock()).opens);
}

TEST(LoadPlan, WithEqualLoadsEachReadsWhatItsOwnFileHas) {
  const Load load({saved({dense_model(), kTp2, 2})}, kTp2Pp2, 2);
  const Totals totals = totals_of(load.per_chunk());
  const Totals stock = totals_of(load.stock());
  EXPECT_LT(totals.foreign_opens, stock.foreign_opens);
  EXPECT_LE(totals.foreign_bytes, 285370U) << "by Megatron's rule " << stock.foreign_bytes;
  EXPECT_EQ(totals.max_bytes, stock.max_bytes);
}

Catalog two_tensors() {
  Catalog catalog;
  catalog.files = {"data"};
  for (const TensorDesc& desc :
       {TensorDesc{"decoder.layers.0.mlp.linear_fc2.weight", DType::kF32, {4, 4}},
        TensorDesc{"decoder.layers.0.mlp.router.weight", DType::kF32, {8, 8}}}) {
    StoredTensor tensor{desc, ChunkList(2), Encoding::kTorchItem};
    tensor.chunks.push_back({Box::whole(desc.shape), 0, {0, 100}, {}});
    catalog.tensors.push_back(tensor);
  }
  return catalog;
}

TEST(LoadPlan, ByMegatronsRuleWhatAnotherGroupSavesComesLastAndByNamesNothingDoes) {
  const Load load(two_tensors(), kTp2, 2);
  const auto reader_of_router = [](const LoadPlan& plan) {
    std::set<std::uint32_t> readers;
    for (const PlannedRead& read : plan.reads) {
      if (read.tensor == 1) readers.insert(read.rank);
    }
    return readers;
  };
  EXPECT_EQ(reader_of_router(load.stock()), (std::set<std::uint32_t>{0, 3}));
  EXPECT_EQ(reader_of_router(load.per_name()), (std::set<std::uint32_t>{0, 1}));
}

TEST(LoadPlan, AReaderSendsOnlyWhatItDoesNotNeedAlone) {
  Catalog catalog;
  catalog.files = {"__0_0.distcp", "__1_0.distcp"};
  StoredTensor tensor{
      {"decoder.layers.0.mlp.experts.experts.linear_fc2.weight", DType::kF32, {2, 4, 4}},
      ChunkList(3),
      Encoding::kTorchItem};
  tensor.chunks.push_back({{{0, 0, 0}, {2, 2, 4}}, 0, {0, 200}, {}});  // of both experts
  tensor.chunks.push_back({{{0, 2, 0}, {2, 2, 4}}, 1, {0, 200}, {}});
  catalog.tensors.push_back(tensor);
  const Load load(catalog, {.expert = 2}, 2);
  for (const std::size_t rank : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_EQ(load.stock().ranks[rank].bytes, 400U) << "each expert is a shard, and reads both";
    EXPECT_EQ(load.stock().ranks[rank].sent_bytes, 0U);
    EXPECT_EQ(load.per_chunk().ranks[rank].bytes, 200U);
    EXPECT_EQ(load.per_chunk().ranks[rank].sent_bytes, 32U) << "the other expert's half";
  }
}

TEST(LoadPlan, AChunkThatSeveralShardsNeedIsReadOnce) {
  Catalog catalog;
  catalog.files = {"__0_0.distcp"};
  StoredTensor tensor{{"decoder.layers.mlp.router.weight", DType::kF32, {4, 2}},
                      ChunkList(2),
                      Encoding::kTorchItem};
  tensor.chunks.push_back({{{0, 0}, {4, 2}}, 0, {0, 100}, {}});  // all layers in one
  catalog.tensors.push_back(tensor);
  const Load load(catalog, kTp1, 2);
  EXPECT_EQ(load.stock().reads.size(), 4U) << "each layer is a shard, and reads it whole";
  ASSERT_EQ(load.per_chunk().reads.size(), 1U);
  EXPECT_EQ(load.per_chunk().ranks[0].bytes, 100U);
  EXPECT_EQ(load.per_chunk().ranks[0].sent_bytes, 32U);
  EXPECT_EQ(load.per_chunk().ranks[1].bytes, 0U);
}

TEST(LoadPlan, WhatOnlyOneRankNeedsIsSentToNobody) {
  const Load load({saved({sparse_model(), kEp2, 2})}, kEp2, 2);
  std::uint64_t shared = 0;
  for (const GroupNeeds& group : load.needs().groups) {
    for (const NeededShard& shard : group.shards) {
      for (std::uint32_t c = 0; c < shard.chunks; ++c) {
        const bool is_sent = group.holders[shard.holders].size() > 1;
        if (is_sent) shared += group.chunks[shard.first + c].bytes;
      }
    }
  }
  for (const LoadPlan& plan : load.plans()) {
    std::uint64_t sent = 0;
    for (const RankLoad& rank : plan.ranks) sent += rank.sent_bytes;
    EXPECT_EQ(sent, shared);
  }
}

TEST(LoadPlan, FilesThatNameNoRankAreForeignToAll) {
  Catalog catalog = saved({dense_model(), kTp2, 1});
  for (std::string& file : catalog.files) file = "data-" + file;
  const Load load(catalog, kTp2, 1);
  for (const LoadPlan& plan : load.plans()) {
    EXPECT_EQ(totals_of(plan).foreign_opens, totals_of(plan).opens);
  }
}

TEST(LoadPlan, ATiedEmbeddingIsReadOnBothItsStages) {
  std::vector<TensorDesc> tensors = dense_model();
  tensors.pop_back();  // the output layer
  const Load load({saved({tensors, kTp2Pp2, 2})}, kTp2Pp2, 2);
  for (const LoadPlan& plan : load.plans()) {
    std::set<std::uint32_t> stages;
    for (const PlannedRead& read : plan.reads) {
      if (read.tensor == 0) stages.insert(read.rank / 4);
    }
    EXPECT_EQ(stages, (std::set<std::uint32_t>{0, 1}));
    load.expect_complete(plan);
  }
}

TEST(LoadPlan, CostsAreComparedByTheHeaviestRankFirst) {
  LoadPlan light;
  light.ranks = {
      {.bytes = 10, .foreign_bytes = 10, .sent_bytes = 4, .opens = 9, .foreign_opens = 9},
      {.bytes = 11}};
  LoadPlan heavy;
  heavy.ranks = {{.bytes = 8, .sent_bytes = 7}, {}};
  EXPECT_LT(light.cost(), heavy.cost()) << "14 bytes read and sent against 15";
  LoadPlan fewer = light;
  fewer.ranks[0].foreign_opens = 8;
  fewer.ranks[0].foreign_bytes = 11;
  EXPECT_LT(fewer.cost(), light.cost()) << "then by foreign opens, then by foreign bytes";
}

}  // namespace
}  // namespace shardwright
