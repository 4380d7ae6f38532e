// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/endian.h"
#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using pickle::Document;
using ::testing::HasSubstr;

Result<LegacyFile> read(const std::string& bytes, LegacyDetail detail = LegacyDetail::kPlaces) {
  return read_legacy_file(*make_memory_file("model_optim_rng.pt", bytes), detail);
}

const LegacyTensor* find(const LegacyModel& model, std::string_view name) {
  for (const LegacyTensor& tensor : model.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

TEST(LegacyFile, TellsTheTensorsOfARank) {
  const std::string bytes = read_golden(
      "hf/qwen3_moe/legacy_tp2pp2ep2etp1/iter_0000001/mp_rank_01_001_001/model_optim_rng.pt");
  const LegacyFile file = read(bytes).value();
  EXPECT_EQ(file.iteration, 1);
  EXPECT_EQ(file.checkpoint_version, 3.0);
  EXPECT_EQ(file.arguments.at("expert_model_parallel_size"), ArgValue{std::int64_t{2}});
  ASSERT_EQ(file.models.size(), 1u);
  EXPECT_EQ(find(file.models[0], "embedding.word_embeddings.weight"), nullptr) << "stage 1";
  const LegacyTensor* experts =
      find(file.models[0], "decoder.layers.0.mlp.experts.linear_fc1.weight0");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->place.dtype, DType::kBF16);
  EXPECT_EQ(experts->place.range.length,
            static_cast<std::uint64_t>(experts->place.shape[0] * experts->place.shape[1] * 2));
  EXPECT_LE(experts->place.range.offset + experts->place.range.length, bytes.size());
  EXPECT_FALSE(file.models[0].objects.empty()) << "extra states";
  const LegacyFile names = read(bytes, LegacyDetail::kNames).value();
  EXPECT_EQ(names.models[0].tensors.size(), file.models[0].tensors.size());
  EXPECT_EQ(find(names.models[0], experts->name)->place.shape, experts->place.shape);
}

TEST(LegacyFile, KeepsVirtualStagesApart) {
  const LegacyFile file = read(read_golden("hf/llama3_4l/legacy_tp1pp2ep1vpp2/iter_0000001/"
                                           "mp_rank_00_001/model_optim_rng.pt"))
                              .value();
  ASSERT_EQ(file.models.size(), 2u);
  EXPECT_NE(find(file.models[0], "decoder.layers.0.mlp.linear_fc2.weight"), nullptr);
  EXPECT_NE(find(file.models[1], "decoder.layers.0.mlp.linear_fc2.weight"), nullptr);
  EXPECT_EQ(find(file.models[0], "output_layer.weight"), nullptr);
  EXPECT_NE(find(file.models[1], "output_layer.weight"), nullptr);
}

std::string archive_of(Document& document, pickle::Value root) {
  document.set_root(root);
  return encode_torch_object(pickle::encode(document, pickle::Protocol::kTwo).value()).value();
}

// As verl's older workers saved it.
TEST(LegacyFile, MayBeAListOfVirtualStages) {
  Document document;
  const pickle::Value empty = document.dict();
  const LegacyFile file =
      read(archive_of(document, document.list(std::array{empty, empty}))).value();
  EXPECT_EQ(file.models.size(), 2U);
  EXPECT_TRUE(file.arguments.empty());
  const auto refused = read(archive_of(document, document.list(std::array{document.integer(1)})));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("'[0]' is not a dict of tensors"));
}

TEST(LegacyFile, RefusesOtherStatesByName) {
  Document document;
  EXPECT_EQ(read(archive_of(document, document.list())).error().code, Code::kUnsupportedFormat);
  const pickle::Value state = document.dict();
  EXPECT_THAT(read(archive_of(document, state)).error().message,
              HasSubstr("neither 'model' nor 'model0'"));
  pickle::Value nested = document.dict();
  for (int depth = 0; depth < 9; ++depth) {
    const pickle::Value outer = document.dict();
    document.set(outer, "deeper", nested);
    nested = outer;
  }
  document.set(state, "model", nested);
  EXPECT_THAT(read(archive_of(document, state)).error().message, HasSubstr("nested too deep"));
  document.set(state, "model", document.integer(3));
  EXPECT_EQ(read(archive_of(document, state)).error().code, Code::kUnsupportedFormat);
  EXPECT_FALSE(read("no archive"));
}

}  // namespace
}  // namespace shardwright
