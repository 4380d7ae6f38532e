// SPDX-License-Identifier: Apache-2.0
// Conversions of checkpoints in which ranks have copies under names of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "base/text.h"
#include "convert/golden.h"
#include "io/source_files.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::array kTargets = {"torch_dist", "legacy", "safetensors", "dcp", "fsdp_dtensor"};
constexpr const char* kNorm = "decoder.layers.mlp.linear_fc1.layer_norm_weight";
constexpr const char* kOtherNorm = "decoder.layers.self_attention.linear_qkv.layer_norm_weight";
constexpr const char* kFinalNorm = "decoder.final_layernorm.weight";

std::string copy_name(const std::string& tensor, int rank) {
  return tensor + ".__tp_replica_" + std::to_string(rank);
}

ConvertRequest replica_request(const std::string& input, const std::string& output,
                               std::string_view format) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  return request;
}

// The same model where nobody named replicas.
ConvertRequest plain_request(const std::string& output, std::string_view format) {
  ConvertRequest request =
      replica_request(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"), output, format);
  request.optimizer = OptimizerPolicy::kDrop;
  return request;
}

// A copy of a golden checkpoint, whose `.metadata` says something else.
class Edited {
 public:
  explicit Edited(const std::string& golden, const std::function<void(Catalog&)>& edit) {
    std::filesystem::copy(golden_path(golden), place_ / "in",
                          std::filesystem::copy_options::recursive);
    edit_metadata(data(), edit);
  }
  [[nodiscard]] std::string path() const { return place_ / "in"; }
  [[nodiscard]] std::string data() const { return place_ / "in/iter_0000010"; }
  [[nodiscard]] std::string out() const { return place_ / "out"; }

  [[nodiscard]] Result<PreparedConversion> convert(
      std::string_view format = "torch_dist",
      std::optional<std::int64_t> replica = std::nullopt) const {
    std::filesystem::remove_all(out());
    ConvertRequest request = replica_request(path(), out(), format);
    request.replica = replica;
    return convert_now(request);
  }

 private:
  TemporaryFolder place_;
};

StoredTensor& find(Catalog& catalog, const std::string& name) {
  return *std::ranges::find(catalog.tensors, name,
                            [](const StoredTensor& tensor) { return tensor.desc.name; });
}

StoredTensor renamed(StoredTensor tensor, const std::string& name) {
  tensor.desc.name = name;
  return tensor;
}

TensorMap plain_tensors() {
  const TemporaryFolder out;
  EXPECT_TRUE(convert_now(plain_request(out / "x", "torch_dist")));
  return read_all_tensors(out / "x").value();
}

// Every target has each tensor once, under its own name, and the values that the same model has
// where nobody named replicas.
TEST(ReplicaNames, AreNotWritten) {
  for (const std::string_view format : kTargets) {
    const TemporaryFolder out;
    const auto converted =
        convert_now(replica_request(golden_path("replica/sound"), out / "x", format));
    ASSERT_TRUE(converted) << converted.error().text();
    EXPECT_THAT(converted->notes, Contains(HasSubstr(".__tp_replica_RANK")));
    EXPECT_THAT(converted->notes, Not(Contains(HasSubstr("without the whole copy"))));
    EXPECT_GT(converted->replicas.chunks, 0u);
    const TensorMap written = read_all_tensors(out / "x").value();
    for (const auto& [name, tensor] : written) {
      EXPECT_EQ(name.find("__tp_replica"), std::string::npos) << name;
    }
    // The two runs had other modules, whose names show where Megatron-FSDP's files are made.
    ConvertRequest plain = plain_request(out / "y", format);
    if (format == "fsdp_dtensor") plain.spec = ModuleSpec::kLocal;
    ASSERT_TRUE(convert_now(plain));
    EXPECT_EQ(difference(written, read_all_tensors(out / "y").value()), "") << format;
  }
}

TEST(ReplicaNames, OfRanksThatDriftedApartAreRefused) {
  for (const std::string_view format : kTargets) {
    const TemporaryFolder out;
    const auto refused =
        convert_now(replica_request(golden_path("replica/diverged"), out / "x", format));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
    EXPECT_THAT(refused.error().message,
                HasSubstr(std::string(kOtherNorm) + ": its replicas differ at (2, 0): "));
    EXPECT_THAT(refused.error().message, HasSubstr(" in " + copy_name(kOtherNorm, 0) + " (__"));
    EXPECT_THAT(refused.error().message, HasSubstr(" in " + copy_name(kOtherNorm, 1) + " (__"));
    EXPECT_FALSE(std::filesystem::exists(out / "x"));
  }
}

// The element that differs is named with what both ranks hold of it.
TEST(ReplicaNames, ThatDifferAreToldWithBothValues) {
  const TemporaryFolder out;
  ConvertRequest request =
      replica_request(golden_path("replica/diverged"), out / "x", "safetensors");
  request.include = {kFinalNorm};
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  request.replica = 0;
  request.output = out / "0";
  ASSERT_TRUE(convert_now(request));
  request.replica = 1;
  request.output = out / "1";
  ASSERT_TRUE(convert_now(request));
  const std::string first = read_all_tensors(out / "0").value().at(kFinalNorm).bytes;
  const std::string second = read_all_tensors(out / "1").value().at(kFinalNorm).bytes;
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(first.substr(0, 6), second.substr(0, 6));
  EXPECT_NE(first.substr(6, 2), second.substr(6, 2));
  EXPECT_EQ(first.substr(8), second.substr(8));
  EXPECT_THAT(refused.error().message, HasSubstr("differ at (3,): "));
}

TEST(ReplicaNames, ServeForOneAnother) {
  const TensorMap expected = plain_tensors();
  const Edited lacking("replica/sound", [](Catalog& catalog) {
    std::erase_if(catalog.tensors, [](const StoredTensor& tensor) {
      return tensor.desc.name == copy_name(kFinalNorm, 0);
    });
    // Each copy lacks another piece.
    for (const int rank : {0, 1}) {
      StoredTensor& copy = find(catalog, copy_name(kNorm, rank));
      ChunkList fewer(copy.chunks.axes());
      for (std::size_t i = 0; i < copy.chunks.size(); ++i) {
        if (i != static_cast<std::size_t>(rank)) fewer.push_back(copy.chunks[i]);
      }
      ASSERT_LT(fewer.size(), copy.chunks.size());
      copy.chunks = fewer;
    }
  });
  const auto converted = lacking.convert();
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes,
              Contains(HasSubstr("without the whole copy of tensor rank 0, 1: the other copies")));
  EXPECT_EQ(difference(read_all_tensors(lacking.out()).value(), expected), "");
  EXPECT_EQ(lacking.convert("torch_dist", 0).error().code, Code::kUsage);
  EXPECT_EQ(lacking.convert("torch_dist", 1).error().code, Code::kHole);
}

TEST(ReplicaNames, OfRanksThatTheRunDidNotHaveAreRefused) {
  const Edited more("replica/sound", [](Catalog& catalog) {
    catalog.tensors.push_back(renamed(find(catalog, copy_name(kNorm, 1)), copy_name(kNorm, 2)));
  });
  for (const std::string_view format : kTargets) {
    const auto refused = more.convert(format);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kReplicaKeys);
    EXPECT_THAT(refused.error().message,
                HasSubstr(copy_name(kNorm, 2) + ": found a copy of tensor rank 2, but the run"));
  }
  EXPECT_TRUE(more.convert("torch_dist", 0));
}

TEST(ReplicaNames, MayLieBesideTheTensor) {
  const Edited equal("replica/sound", [](Catalog& catalog) {
    catalog.tensors.push_back(renamed(find(catalog, copy_name(kNorm, 1)), kNorm));
  });
  const auto converted = equal.convert();
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes, Contains(HasSubstr(std::string("1 tensor, ") + kNorm +
                                                   " the first, is stored without a tensor rank")));
  EXPECT_EQ(difference(read_all_tensors(equal.out()).value(), plain_tensors()), "");
  const Edited different("replica/sound", [](Catalog& catalog) {
    const std::string other = copy_name(kOtherNorm, 1);
    StoredTensor moved = renamed(find(catalog, other), kNorm);
    std::erase_if(catalog.tensors, [&](const auto& tensor) { return tensor.desc.name == other; });
    catalog.tensors.push_back(std::move(moved));
  });
  const auto refused = different.convert();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
  EXPECT_THAT(refused.error().message, HasSubstr(std::string(" in ") + kNorm + " (__"));
  EXPECT_THAT(refused.error().message, HasSubstr(" in " + copy_name(kNorm, 0) + " (__"));
}

TEST(ReplicaNames, WithOneByteOfOneCopyAlteredAreRefused) {
  const Edited same("replica/sound", [](Catalog&) {});
  const Checkpoint opened = open_checkpoint(same.path()).value();
  Catalog located = opened.catalog;
  ConvertRequest one = replica_request(same.path(), same.out(), "torch_dist");
  one.include = {kFinalNorm};
  one.replica = 1;
  const auto prepared = prepare_conversion(one);
  ASSERT_TRUE(prepared) << prepared.error().text();
  const Chunk chunk = prepared->plan.source.tensors.at(0).chunks[0];
  alter_sealed(same.data() + "/" + prepared->plan.source.files[chunk.file], chunk.range, 11,
               '\x3e');
  const auto refused = same.convert();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
  EXPECT_THAT(refused.error().message, HasSubstr("differ at (5,): "));
  EXPECT_TRUE(same.convert("torch_dist", 0));
  EXPECT_EQ(difference(read_all_tensors(same.out()).value(), plain_tensors()), "");
}

TEST(ReplicaNames, ThatCannotBeFoldedAreRefusedByEveryTarget) {
  const Edited shifted("replica/sound", [](Catalog& catalog) {
    StoredTensor& copy = find(catalog, copy_name(kFinalNorm, 1));
    Chunk whole = copy.chunks[0];
    ChunkList cut(1);
    whole.box.shape[0] /= 2;
    cut.push_back(whole);
    copy.chunks = cut;
  });
  const TemporaryFolder place;
  put_model(place / "hf", "", {{"a.__tp_replica_0", DType::kF32, {4}}, {"b", DType::kF32, {4}}});
  for (const std::string_view format : kTargets) {
    const auto refused = shifted.convert(format);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kReplicaKeys);
    EXPECT_THAT(refused.error().message, HasSubstr(copy_name(kFinalNorm, 1) + ": its piece"));
  }
  EXPECT_TRUE(shifted.convert("torch_dist", 0));
  const auto kept = convert_now(replica_request(place / "hf", place / "x", "safetensors"));
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, Code::kReplicaKeys);
  ConvertRequest without = replica_request(place / "hf", place / "x", "safetensors");
  without.exclude = {"*.__tp_replica_*"};
  EXPECT_TRUE(convert_now(without));
}

// Rank 0 of the run that drifted apart has the weights of the sound one.
TEST(ReplicaNames, LetOneBeChosen) {
  const TensorMap expected = plain_tensors();
  const Edited diverged("replica/diverged", [](Catalog&) {});
  const auto first = diverged.convert("torch_dist", 0);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_THAT(first->notes, Contains(HasSubstr("--replica 0: ")));
  EXPECT_EQ(difference(read_all_tensors(diverged.out()).value(), expected), "");
  ASSERT_TRUE(diverged.convert("torch_dist", 1));
  EXPECT_THAT(difference(read_all_tensors(diverged.out()).value(), expected),
              HasSubstr(kFinalNorm));
  for (const int rank : {2, 7}) {
    const auto refused = diverged.convert("torch_dist", rank);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr("it has those of 0, 1"));
  }
  const TemporaryFolder out;
  ConvertRequest plain = plain_request(out / "x", "torch_dist");
  plain.replica = 0;
  const auto refused = convert_now(plain);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("--replica 0: no tensor has copies"));
}

bool is_held_alike(const std::string& name) {
  return name.ends_with("layernorm.weight") || name.ends_with("layer_norm_weight") ||
         name.ends_with("router.weight") || name.ends_with("router.expert_bias");
}

// What a run would have stored with its states: names of copies, and pieces that a rank keeps.
void add_copies(Catalog& catalog, int ranks) {
  std::vector<StoredTensor> more;
  for (StoredTensor& tensor : catalog.tensors) {
    if (!is_held_alike(tensor.desc.name)) continue;
    const std::string name = tensor.desc.name;
    for (int rank = 1; rank < ranks; ++rank) more.push_back(renamed(tensor, copy_name(name, rank)));
    StoredTensor kept = renamed(tensor, "__shadow_3__" + copy_name(name, ranks - 1));
    kept.chunks = ChunkList(kept.chunks.axes());
    kept.chunks.push_back(tensor.chunks[tensor.chunks.size() - 1]);
    more.push_back(std::move(kept));
    tensor.desc.name = copy_name(name, 0);
  }
  ASSERT_FALSE(more.empty());
  std::ranges::move(more, std::back_inserter(catalog.tensors));
}

TEST(ReplicaNames, OfStatesAndRoutersAreNotWritten) {
  const std::vector<std::pair<std::string, int>> sources = {
      {"mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full", 2},
      {"mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full", 1}};
  for (const auto& [golden, ranks] : sources) {
    const Edited copied(golden, [&](Catalog& catalog) { add_copies(catalog, ranks); });
    const TemporaryFolder out;
    for (const std::string_view format : {"torch_dist", "legacy"}) {
      const auto converted = copied.convert(format);
      ASSERT_TRUE(converted) << converted.error().text();
      EXPECT_EQ(converted->replicas.chunks, 0U) << "each copy is the same item";
      ASSERT_TRUE(convert_now(replica_request(golden_path(golden), out / "plain", format)));
      const TensorMap written = read_all_tensors(copied.out()).value();
      EXPECT_EQ(difference(written, read_all_tensors(out / "plain").value()), "") << golden;
      if (format == "torch_dist") {
        EXPECT_THAT(written, Contains(testing::Key(HasSubstr("optimizer.state.exp_avg"))));
      }
      std::filesystem::remove_all(out / "plain");
    }
  }
}

}  // namespace
}  // namespace shardwright
