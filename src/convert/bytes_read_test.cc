// SPDX-License-Identifier: Apache-2.0
// How often the bytes of a source are read: once, however the target cuts its tensors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convert/golden.h"
#include "convert/memory_budget.h"
#include "io/source_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

constexpr std::int64_t kModelWidth = 256;
constexpr std::int64_t kModelFfn = 512;
constexpr std::int64_t kModelWords = 512;

constexpr const char* kBytesReadConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "attention_bias": false, "dtype": "bfloat16", "head_dim": 64, "hidden_act": "silu",
  "hidden_size": 256, "intermediate_size": 512, "max_position_embeddings": 64, "mlp_bias": false,
  "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 512})";

std::vector<TensorDesc> dense_model() {
  std::vector<TensorDesc> tensors = {
      {"model.embed_tokens.weight", DType::kBF16, {kModelWords, kModelWidth}},
      {"model.norm.weight", DType::kBF16, {kModelWidth}},
      {"lm_head.weight", DType::kBF16, {kModelWords, kModelWidth}}};
  const auto add = [&](const std::string& name, const Dims& shape) {
    tensors.push_back({name + ".weight", DType::kBF16, shape});
  };
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    add(at + "input_layernorm", {kModelWidth});
    add(at + "post_attention_layernorm", {kModelWidth});
    for (const char* part : {"q", "k", "v", "o"}) {
      add(at + "self_attn." + part + "_proj", {kModelWidth, kModelWidth});
    }
    add(at + "mlp.gate_proj", {kModelFfn, kModelWidth});
    add(at + "mlp.up_proj", {kModelFfn, kModelWidth});
    add(at + "mlp.down_proj", {kModelWidth, kModelFfn});
  }
  return tensors;
}

class BytesRead : public testing::Test {
 protected:
  void SetUp() override { put_model(place_ / "hf", kBytesReadConfig, dense_model()); }

  ConvertRequest request_to(const std::string& format, const std::string& from) {
    ConvertRequest request;
    request.input = from;
    request.output = place_ / std::to_string(++outputs_);
    request.format = format;
    return request;
  }

  // As a fraction of the elements' bytes, which it is said to read.
  static double share_read(const ConvertRequest& request) {
    const PreparedConversion prepared = prepare_conversion(request).value();
    std::uint64_t payload = 0;
    for (const StoredTensor& tensor : prepared.plan.source.tensors) {
      payload +=
          static_cast<std::uint64_t>(byte_count(tensor.desc.shape, tensor.desc.dtype).value());
    }
    // Besides elements only what goes along is read: config.json, and little else.
    const std::uint64_t told = cost_of(prepared.plan).payload_bytes_read;
    EXPECT_GE(told, payload);
    EXPECT_LE(told, payload + 1024);
    const std::uint64_t before = prepared.source.files->bytes_read();
    const ConvertReport report = run_conversion(prepared, {}).value();
    return static_cast<double>(report.bytes_read - before) / static_cast<double>(payload);
  }

  TemporaryFolder place_;
  int outputs_ = 0;
};

TEST_F(BytesRead, AreThePayloadForLegacyFilesOfTensorRanks) {
  ConvertRequest request = request_to("legacy", place_ / "hf");
  request.parallel = {4, 2, 1, 1, 4};
  EXPECT_LE(share_read(request), 1.01);
}

TEST_F(BytesRead, AreThePayloadFromTorchDistToo) {
  ConvertRequest first = request_to("torch_dist", place_ / "hf");
  first.parallel = {2, 1, 1, 1, 2};
  ASSERT_TRUE(convert_now(first));
  ConvertRequest request = request_to("legacy", first.output);
  request.parallel = {4, 1, 1, 1, 4};
  EXPECT_LE(share_read(request), 1.01);
}

// Tiles are a few rows then, and so is what each of them reads.
TEST_F(BytesRead, AreThePayloadWithLittleMemory) {
  ConvertRequest request = request_to("legacy", place_ / "hf");
  request.parallel = {4, 1, 1, 1, 4};
  const PreparedConversion prepared = prepare_conversion(request).value();
  constexpr std::uint64_t kLeastBuffers = std::uint64_t{128} << 10;
  const MemoryBudget budget = budget_of(request, prepared.source, prepared.plan).value();
  request.max_memory_bytes = budget.held_bytes + kLeastBuffers;
  EXPECT_LE(share_read(request), 1.01);
}

}  // namespace
}  // namespace shardwright
