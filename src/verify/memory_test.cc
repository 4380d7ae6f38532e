// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "compare/repeated_files.h"
#include "convert/golden.h"
#include "dcp/torch_items.h"
#include "shardwright/checkpoint.h"
#include "testing/temporary_folder.h"
#include "verify/payload_check.h"

namespace {

std::atomic<std::int64_t> allocated_now = 0;
std::atomic<std::int64_t> allocated_most = 0;

}  // namespace

// What the whole test program allocates goes through here, so that a peak can be told exactly.
void* operator new(std::size_t bytes) {
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  const auto size = static_cast<std::int64_t>(malloc_usable_size(block));
  const std::int64_t now = allocated_now += size;
  std::int64_t most = allocated_most;
  while (now > most && !allocated_most.compare_exchange_weak(most, now)) {
  }
  return block;
}

void operator delete(void* block) noexcept {
  allocated_now -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}
void operator delete(void* block, std::size_t /*bytes*/) noexcept { operator delete(block); }

namespace shardwright {
namespace {

constexpr std::int64_t kLayers = 4;

// A Qwen3-MoE of this many small experts in each layer.
std::vector<TensorDesc> tensors_with(std::int64_t experts) {
  std::vector<TensorDesc> tensors = {{"model.embed_tokens.weight", DType::kBF16, {16, 8}},
                                     {"model.norm.weight", DType::kBF16, {8}},
                                     {"lm_head.weight", DType::kBF16, {16, 8}}};
  const auto add = [&](const std::string& name, const Dims& shape) {
    tensors.push_back({name + ".weight", DType::kBF16, shape});
  };
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    add(at + "input_layernorm", {8});
    add(at + "post_attention_layernorm", {8});
    for (const char* projection : {"q", "k", "v"}) {
      add(at + "self_attn." + projection + "_proj", {8, 8});
    }
    add(at + "self_attn.o_proj", {8, 8});
    add(at + "self_attn.q_norm", {4});
    add(at + "self_attn.k_norm", {4});
    add(at + "mlp.gate", {experts, 8});
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const std::string of = at + "mlp.experts." + std::to_string(expert) + ".";
      add(of + "gate_proj", {4, 8});
      add(of + "up_proj", {4, 8});
      add(of + "down_proj", {8, 4});
    }
  }
  return tensors;
}

std::string config_with(std::int64_t experts) {
  return R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
    "attention_bias": false, "decoder_sparse_step": 1, "dtype": "bfloat16", "head_dim": 4,
    "hidden_act": "silu", "hidden_size": 8, "intermediate_size": 8, "mlp_only_layers": [],
    "max_position_embeddings": 64, "moe_intermediate_size": 4, "norm_topk_prob": true,
    "num_attention_heads": 2, "num_experts_per_tok": 2, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 16,
    "num_hidden_layers": )" +
         std::to_string(kLayers) + R"(, "num_experts": )" + std::to_string(experts) + "}";
}

class PlanningMemory : public ::testing::Test {
 protected:
  struct Planned {
    std::int64_t peak = 0;  // of what planning allocates
    std::int64_t told = 0;  // what it is said to need, buffers included
    std::size_t source_tensors = 0;
    std::size_t target_tensors = 0;
  };

  Planned plan(std::int64_t experts, std::string_view format,
               const std::optional<ParallelConfig>& parallel = {}) {
    const std::string folder = place_ / std::to_string(experts);
    put_model(folder, config_with(experts), tensors_with(experts));
    ConvertRequest request;
    request.input = folder;
    request.output = place_ / "out";
    request.format = format;
    request.parallel.expert = format == "hf" ? 1 : 8;
    if (parallel) request.parallel = *parallel;
    allocated_most = allocated_now.load();
    const std::int64_t before = allocated_now;
    const auto prepared = prepare_conversion(request);
    EXPECT_TRUE(prepared) << prepared.error().text();
    if (!prepared) return {};
    return {allocated_most - before, static_cast<std::int64_t>(prepared->peak_memory_bytes),
            prepared->source.catalog.tensors.size(), prepared->plan.target.tensors.size()};
  }

  // Bytes that each further tensor of the source takes.
  std::int64_t bytes_per_tensor(std::string_view format) {
    const Planned few = plan(64, format);
    const Planned many = plan(512, format);
    const auto more = static_cast<std::int64_t>(many.source_tensors - few.source_tensors);
    EXPECT_EQ(more, kLayers * 3 * (512 - 64));
    constexpr std::int64_t kBuffers = std::int64_t{64} << 20;
    EXPECT_LT(many.peak, many.told - kBuffers) << "more than the budget says";
    return (many.peak - few.peak) / more;
  }

  // Tensors that many files hold some rows of each.
  Checkpoint open_shared() {
    constexpr std::int64_t kTensors = 64;
    constexpr std::int64_t kFiles = 128;
    const std::string folder = place_ / "model";
    std::vector<TensorDesc> tensors;
    for (std::int64_t t = 0; t < kTensors; ++t) {
      tensors.push_back({"shared." + std::to_string(t), DType::kBF16, {kFiles, 8}});
    }
    put_model(folder, config_with(1), tensors);
    ConvertRequest request;
    request.input = folder;
    request.output = place_ / "shared";
    request.format = "dcp";
    request.shards = kFiles;
    const auto prepared = prepare_conversion(request);
    EXPECT_TRUE(prepared && run_conversion(*prepared, {}));
    Checkpoint checkpoint = open_checkpoint(request.output, defects_).value();
    EXPECT_EQ(checkpoint.catalog.tensors.size(), kTensors);
    EXPECT_EQ(checkpoint.catalog.tensors[0].chunks.size(), kFiles);
    chunks_ = kTensors * kFiles;
    return checkpoint;
  }

  // What is allocated at most, for each chunk of open_shared().
  std::int64_t bytes_per_chunk(const std::function<void()>& work) {
    allocated_most = allocated_now.load();
    const std::int64_t before = allocated_now;
    work();
    return (allocated_most - before) / chunks_;
  }

  Defects defects_{Defects::Policy::kCollect};
  std::int64_t chunks_ = 0;
  TemporaryFolder place_;
};

TEST_F(PlanningMemory, IsLittleForEachTensorOfTorchDist) {
  EXPECT_LT(bytes_per_tensor("torch_dist"), 2300);
}

TEST_F(PlanningMemory, IsLittleForEachTensorOfLegacyFiles) {
  EXPECT_LT(bytes_per_tensor("legacy"), 2300);
}

// Ranks of a stage have the same pickle but for their number, the same storages, and a chunk each
// of what they share out.
TEST_F(PlanningMemory, IsLittleForEachRankOfLegacyFiles) {
  constexpr std::int64_t kExperts = 512;
  const Planned few = plan(kExperts, "legacy", ParallelConfig{2, 1, 1, 32, 1});
  const Planned many = plan(kExperts, "legacy", ParallelConfig{2, 1, 1, 512, 1});
  EXPECT_LT((many.peak - few.peak) / (512 - 32), 6000);
}

TEST_F(PlanningMemory, IsLittleForEachTensorOfHuggingFace) {
  EXPECT_LT(bytes_per_tensor("hf"), 2300);
}

// A checkpoint of many ranks has a million chunks.
TEST_F(PlanningMemory, IsLittleForEachRecordToBeChecked) {
  Checkpoint checkpoint = open_shared();
  const auto list = [&] {
    EXPECT_EQ(list_payloads(checkpoint, defects_).value().size(),
              static_cast<std::size_t>(chunks_));
  };
  EXPECT_LT(bytes_per_chunk(list), 80);
}

TEST_F(PlanningMemory, IsLittleForEachChunkOfFilesThatMayBeCopies) {
  Checkpoint checkpoint = open_shared();
  ASSERT_TRUE(locate_items(checkpoint.catalog, *checkpoint.files, defects_));
  const auto compare = [&] {
    EXPECT_TRUE(check_files(checkpoint, checkpoint.catalog, ReplicaCheck::kAll, defects_));
  };
  EXPECT_LT(bytes_per_chunk(compare), 40);
}

}  // namespace
}  // namespace shardwright
