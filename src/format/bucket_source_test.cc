// SPDX-License-Identifier: Apache-2.0
#include "format/bucket_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_directory.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Buckets of a run, without any bytes: what matters is which bytes would be read.
class BucketSource : public testing::Test {
 protected:
  BucketSource() {
    source_.files = std::make_shared<SourceFiles>(directory_, std::vector<std::string>(), 8);
    source_.arguments["transformer_impl"] = std::string("transformer_engine");
  }

  void set_sizes(std::int64_t tp, std::int64_t pp, std::int64_t ep = 1) {
    source_.arguments["tensor_model_parallel_size"] = tp;
    source_.arguments["pipeline_model_parallel_size"] = pp;
    source_.arguments["expert_model_parallel_size"] = ep;
    source_.arguments["expert_tensor_parallel_size"] = tp;
  }

  void add_weight(const std::string& name, const Dims& shape) {
    catalog_.tensors.push_back({{name, DType::kBF16, shape}, ChunkList(shape.size())});
  }

  // A bucket whose states lie in files 10 · `file` and the two after it, cut at `ends`.
  void add_bucket(const std::string& prefix, int bucket, std::uint32_t file,
                  const std::vector<std::int64_t>& ends) {
    std::uint32_t number = 10 * file;
    for (const char* kind : {"param", "exp_avg", "exp_avg_sq"}) {
      StoredTensor tensor{{fmt::format("{}.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32)."
                                       "bucket_idx_{}.{}",
                                       prefix, bucket, kind),
                           DType::kF32,
                           {ends.back()}},
                          ChunkList(1)};
      std::int64_t begin = 0;
      for (const std::int64_t end : ends) {
        // Each chunk at a round place of its own.
        const auto offset = static_cast<std::uint64_t>(begin) * 1000;
        const auto bytes = static_cast<std::uint64_t>(end - begin) * 4;
        tensor.chunks.push_back({{{begin}, {end - begin}}, number, {offset, bytes}, {}});
        begin = end;
      }
      catalog_.tensors.push_back(std::move(tensor));
      ++number;
    }
  }

  // Where the chunks of a state lie.
  std::vector<std::string> chunks_of(const std::string& state) {
    std::vector<std::string> text;
    for (const StoredTensor& tensor : catalog_.tensors) {
      if (tensor.desc.name != state) continue;
      EXPECT_EQ(tensor.desc.dtype, DType::kF32);
      for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
        const Chunk chunk = tensor.chunks[i];
        text.push_back(fmt::format("{} file {} at {} of {}", to_string(chunk.box), chunk.file,
                                   chunk.range.offset, chunk.range.length));
      }
    }
    return text;
  }

  // TP 2, PP 2. Stage 0 trains embedding, proj, fc2; in its bucket fc2 is at 0, proj at 64, the
  // embedding at 128. Stage 1 trains proj, fc2, norm, output: 192, 128, 64, 0.
  void make_dense() {
    set_sizes(2, 2);
    add_weight("decoder.layers.mlp.linear_fc2.weight", {2, 4, 6});
    add_weight("output_layer.weight", {8, 4});
    add_weight("embedding.word_embeddings.weight", {8, 4});
    add_weight("decoder.final_layernorm.weight", {4});
    add_weight("decoder.layers.self_attention.linear_proj.weight", {2, 4, 4});
    for (std::uint32_t group = 0; group < 4; ++group) {
      const std::string prefix = fmt::format("optimizer.distributed.dp_group_idx_{}", group);
      const bool is_last = group >= 2;
      add_bucket(prefix, 0, group,
                 is_last ? std::vector<std::int64_t>{200} : std::vector<std::int64_t>{138, 144});
    }
  }

  MemoryDirectory directory_;
  Checkpoint source_;
  Catalog catalog_;
};

TEST_F(BucketSource, GivesRanksAndStagesTheirParts) {
  make_dense();
  const Status undone = undo_buckets(source_, catalog_);
  ASSERT_TRUE(undone) << undone.error().text();
  EXPECT_THAT(
      chunks_of("optimizer.state.exp_avg.decoder.layers.mlp.linear_fc2.weight"),
      ElementsAre("[0:1, 0:4, 0:3] file 1 at 0 of 48", "[0:1, 0:4, 3:6] file 11 at 0 of 48",
                  "[1:2, 0:4, 0:3] file 21 at 512 of 48", "[1:2, 0:4, 3:6] file 31 at 512 of 48"));
  EXPECT_THAT(
      chunks_of("optimizer.state.param.decoder.layers.self_attention.linear_proj.weight"),
      ElementsAre("[0:1, 0:4, 0:2] file 0 at 256 of 32", "[0:1, 0:4, 2:4] file 10 at 256 of 32",
                  "[1:2, 0:4, 0:2] file 20 at 768 of 32", "[1:2, 0:4, 2:4] file 30 at 768 of 32"));
  // Cut at element 10 of 16: two rows and a half, then the rest.
  EXPECT_THAT(
      chunks_of("optimizer.state.param.embedding.word_embeddings.weight"),
      ElementsAre("[0:2, 0:4] file 0 at 512 of 32", "[2:3, 0:2] file 0 at 544 of 8",
                  "[2:3, 2:4] file 0 at 138000 of 8", "[3:4, 0:4] file 0 at 138008 of 16",
                  "[4:6, 0:4] file 10 at 512 of 32", "[6:7, 0:2] file 10 at 544 of 8",
                  "[6:7, 2:4] file 10 at 138000 of 8", "[7:8, 0:4] file 10 at 138008 of 16"));
  // Both tensor ranks of the last stage have the norm: a replica.
  EXPECT_THAT(chunks_of("optimizer.state.exp_avg_sq.decoder.final_layernorm.weight"),
              ElementsAre("[0:4] file 22 at 256 of 16", "[0:4] file 32 at 256 of 16"));
  EXPECT_FALSE(has_buckets(catalog_));
}

// Stages of a layout that says what is so anyway, and of one that the buckets do not fit.
TEST_F(BucketSource, TakesTheStagesThatTheRunsArgumentsSay) {
  make_dense();
  source_.arguments["pipeline_model_parallel_layout"] = std::string("Et|tL");
  Catalog same = catalog_;
  const Status undone = undo_buckets(source_, same);
  EXPECT_TRUE(undone) << undone.error().text();
  source_.arguments["pipeline_model_parallel_layout"] = std::string("Ett|L");
  const Status other = undo_buckets(source_, catalog_);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("or parameters were frozen"));
}

// The fused weight of a rank is one parameter of 3 + 2 rows of 3, from 0 on; behind it, at 64, is
// the norm, at 128 proj.
TEST_F(BucketSource, TakesFusedLatentProjectionsApart) {
  set_sizes(2, 1);
  source_.arguments["mla_down_proj_fusion"] = true;
  add_weight("decoder.layers.input_layernorm.weight", {1, 3});
  add_weight("decoder.layers.self_attention.linear_q_down_proj.weight", {1, 6, 3});
  add_weight("decoder.layers.self_attention.linear_kv_down_proj.weight", {1, 4, 3});
  add_weight("decoder.layers.self_attention.linear_proj.weight", {1, 4, 4});
  for (std::uint32_t group = 0; group < 2; ++group) {
    add_bucket(fmt::format("optimizer.distributed.dp_group_idx_{}", group), 0, group, {136});
  }
  const Status undone = undo_buckets(source_, catalog_);
  ASSERT_TRUE(undone) << undone.error().text();
  EXPECT_THAT(
      chunks_of("optimizer.state.param.decoder.layers.self_attention.linear_q_down_proj.weight"),
      ElementsAre("[0:1, 0:3, 0:3] file 0 at 0 of 36", "[0:1, 3:6, 0:3] file 10 at 0 of 36"));
  EXPECT_THAT(
      chunks_of("optimizer.state.param.decoder.layers.self_attention.linear_kv_down_proj.weight"),
      ElementsAre("[0:1, 0:2, 0:3] file 0 at 36 of 24", "[0:1, 2:4, 0:3] file 10 at 36 of 24"));
  EXPECT_THAT(chunks_of("optimizer.state.param.decoder.layers.input_layernorm.weight"),
              ElementsAre("[0:1, 0:3] file 0 at 256 of 12", "[0:1, 0:3] file 10 at 256 of 12"));
}

// EP 2: experts have an optimizer of their own, a group for each expert rank.
TEST_F(BucketSource, FindsExpertsApart) {
  set_sizes(1, 1, 2);
  source_.arguments["moe_grouped_gemm"] = true;
  add_weight("decoder.layers.mlp.experts.experts.linear_fc1.weight", {1, 4, 8, 2});
  add_weight("decoder.layers.mlp.experts.experts.linear_fc2.weight", {1, 4, 2, 4});
  add_weight("decoder.layers.mlp.router.weight", {1, 4, 2});
  add_bucket("chained_0.optimizer.distributed.dp_group_idx_0", 0, 0, {8});
  // fc1.weight0 to 1 before fc2.weight0 to 1; filled from the last on, two buckets.
  for (std::uint32_t expert = 0; expert < 2; ++expert) {
    const std::string prefix =
        fmt::format("chained_1.optimizer.distributed.dp_group_idx_{}", expert);
    add_bucket(prefix, 0, 1 + expert, {72});
    add_bucket(prefix, 1, 3 + expert, {80});
  }
  const Status undone = undo_buckets(source_, catalog_);
  ASSERT_TRUE(undone) << undone.error().text();
  EXPECT_THAT(chunks_of("optimizer.state.param.decoder.layers.mlp.router.weight"),
              ElementsAre("[0:1, 0:4, 0:2] file 0 at 0 of 32"));
  EXPECT_THAT(
      chunks_of("optimizer.state.param.decoder.layers.mlp.experts.experts.linear_fc2.weight"),
      ElementsAre(
          "[0:1, 0:1, 0:2, 0:4] file 10 at 256 of 32", "[0:1, 1:2, 0:2, 0:4] file 10 at 0 of 32",
          "[0:1, 2:3, 0:2, 0:4] file 20 at 256 of 32", "[0:1, 3:4, 0:2, 0:4] file 20 at 0 of 32"));
  // Gated: the two halves of a local tensor are far apart in the model's.
  EXPECT_THAT(
      chunks_of("optimizer.state.param.decoder.layers.mlp.experts.experts.linear_fc1.weight"),
      ElementsAre(
          "[0:1, 0:1, 0:4, 0:2] file 30 at 256 of 32", "[0:1, 0:1, 4:8, 0:2] file 30 at 288 of 32",
          "[0:1, 1:2, 0:4, 0:2] file 30 at 0 of 32", "[0:1, 1:2, 4:8, 0:2] file 30 at 32 of 32",
          "[0:1, 2:3, 0:4, 0:2] file 40 at 256 of 32", "[0:1, 2:3, 4:8, 0:2] file 40 at 288 of 32",
          "[0:1, 3:4, 0:4, 0:2] file 40 at 0 of 32", "[0:1, 3:4, 4:8, 0:2] file 40 at 32 of 32"));
}

// Of a precision-aware optimizer master weights are 16-bit remainders, and moments stay float32.
TEST_F(BucketSource, MasterWeightsMayBeRemainders) {
  make_dense();
  for (StoredTensor& tensor : catalog_.tensors) {
    if (!tensor.desc.name.ends_with(".param")) continue;
    tensor.desc.dtype = DType::kI16;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      tensor.chunks.set_location(i, chunk.file, {chunk.range.offset / 2, chunk.range.length / 2});
    }
  }
  Catalog mixed = catalog_;
  mixed.tensors.back().desc.dtype = DType::kI16;  // of exp_avg_sq
  EXPECT_THAT(undo_buckets(source_, mixed).error().message, HasSubstr("int16"));
  mixed = catalog_;
  const auto first = std::ranges::find_if(mixed.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.ends_with(".param");
  });
  first->desc.dtype = DType::kF32;  // in one rank's bucket, not in the others'
  EXPECT_THAT(undo_buckets(source_, mixed).error().message, HasSubstr("as of the others"));
  ASSERT_TRUE(undo_buckets(source_, catalog_));
  for (const StoredTensor& tensor : catalog_.tensors) {
    if (tensor.desc.name != "optimizer.state.param.decoder.layers.mlp.linear_fc2.weight") continue;
    EXPECT_EQ(tensor.desc.dtype, DType::kI16);
    EXPECT_EQ(tensor.chunks.range(2).offset, 256U);
    EXPECT_EQ(tensor.chunks.range(2).length, 24U);
  }
  EXPECT_EQ(chunks_of("optimizer.state.exp_avg.decoder.layers.mlp.linear_fc2.weight").size(), 4U);
}

TEST_F(BucketSource, LionHasNoSecondMomentAnywhere) {
  make_dense();
  std::erase_if(catalog_.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.ends_with(".exp_avg_sq");
  });
  const Status undone = undo_buckets(source_, catalog_);
  ASSERT_TRUE(undone) << undone.error().text();
  std::size_t moments = 0;
  for (const StoredTensor& tensor : catalog_.tensors) {
    moments += tensor.desc.name.starts_with("optimizer.state.exp_avg.") ? 1 : 0;
    EXPECT_FALSE(tensor.desc.name.starts_with("optimizer.state.exp_avg_sq.")) << tensor.desc.name;
  }
  EXPECT_GT(moments, 3U);
}

// Megatron-Core's layer-wise optimizer has Muon's matrices, a distributed one the rest.
TEST_F(BucketSource, StatesByNameBesideBucketsAreAnothersOptimizers) {
  make_dense();
  const std::string name =
      "chained_0.optimizer.state.momentum_buffer.decoder.layers.mlp.linear_fc2.weight";
  catalog_.tensors.push_back({{name, DType::kF32, {2, 4, 6}}, ChunkList(3)});
  const Status status = undo_buckets(source_, catalog_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(status.error().message, HasSubstr("found " + name + " beside flat buffers"));
  EXPECT_THAT(status.error().message, HasSubstr("--optimizer drop"));
}

TEST_F(BucketSource, RefusesWhatDoesNotFit) {
  make_dense();
  const auto refusal = [&] {
    Catalog catalog = catalog_;
    const Status undone = undo_buckets(source_, catalog);
    EXPECT_FALSE(undone);
    return undone ? std::string() : undone.error().message;
  };
  source_.arguments["pipeline_model_parallel_layout"] = std::string("Et|t|L");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("found pipeline_model_parallel_layout"),
                               HasSubstr("expected 2 stages; convert without it")));
  source_.arguments["pipeline_model_parallel_layout"] = ArgValue{};
  source_.arguments["decoder_last_pipeline_num_layers"] = std::int64_t{2};
  EXPECT_THAT(refusal(), HasSubstr("found 144 elements in bucket 0"))
      << "all layers would be in the last stage";
  source_.arguments.erase("decoder_last_pipeline_num_layers");
  set_sizes(2, 0);
  EXPECT_THAT(refusal(), HasSubstr("no run can have had"));
  set_sizes(2, 1);
  EXPECT_THAT(refusal(), HasSubstr("linear_proj.weight: found 0 elements left"));
  set_sizes(4, 1);
  EXPECT_THAT(refusal(), HasSubstr("expected a multiple of 4"));
  set_sizes(2, 2);
  add_bucket("optimizer.distributed.dp_group_idx_4", 0, 4, {200});
  EXPECT_THAT(refusal(), HasSubstr("found buffer 0 of rank 4, expected none"));
  catalog_.tensors.resize(catalog_.tensors.size() - 4);  // and one state of the bucket before it
  EXPECT_THAT(refusal(), HasSubstr("found a bucket without its exp_avg_sq"));
  source_.arguments.clear();
  EXPECT_THAT(refusal(), HasSubstr("the run's arguments lack its parallel sizes"));
}

}  // namespace
}  // namespace shardwright
