// SPDX-License-Identifier: Apache-2.0
// Reading of checkpoints in which ranks have copies under names of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/golden.h"
#include "shardwright/reader.h"
#include "shardwright/verify.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"
#include "testing/tensor_records.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::Field;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kFinalNorm = "decoder.final_layernorm.weight";
const std::string kSound = golden_path("replica/sound");
const std::string kDiverged = golden_path("replica/diverged");
const std::string kPlain = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");

VerifyReport verify_replicas(const std::string& path) {
  return verify_checkpoint(path, {}).value();
}

ProofOptions replica(std::int64_t rank) {
  ProofOptions options;
  options.source.replica = rank;
  return options;
}

std::string bytes_of(TensorReader& reader, const std::string& name) {
  const std::size_t tensor = reader.find(name).value();
  const TensorDesc& desc = reader.desc(tensor);
  std::string bytes(static_cast<std::size_t>(byte_count(desc.shape, desc.dtype).value()), '\0');
  const Status status =
      reader.read(tensor, Box::whole(desc.shape), std::as_writable_bytes(std::span(bytes)));
  return status ? bytes : status.error().text();
}

TEST(ReplicaNames, AreProvenEqualAndCounted) {
  const VerifyReport report = verify_replicas(kSound);
  EXPECT_FALSE(report.has_errors());
  EXPECT_THAT(report.proven, Contains(Field(&Phrase::english,
                                            HasSubstr("tensors are the same under all of the "))));
  EXPECT_THAT(verify_replicas(kPlain).proven,
              Not(Contains(Field(&Phrase::english, HasSubstr("under all of the ")))));
  EXPECT_EQ(hash_checkpoint(kSound, {}).value().model_digest,
            hash_checkpoint(kPlain, {}).value().model_digest);
  EXPECT_TRUE(diff_checkpoints(kSound, kPlain, {}, std::nullopt).value().equal());
}

TEST(ReplicaNames, OfRanksThatDriftedApartAreFoundByAll) {
  const VerifyReport report = verify_replicas(kDiverged);
  std::size_t differing = 0;
  for (const VerifyFinding& finding : report.findings) {
    if (finding.code == Code::kReplicasDiffer) ++differing;
  }
  EXPECT_EQ(differing, 2U);
  EXPECT_THAT(report.proven,
              Not(Contains(Field(&Phrase::english, HasSubstr("under all of the ")))));
  EXPECT_EQ(hash_checkpoint(kDiverged, {}).error().code, Code::kReplicasDiffer);
  ProofOptions stored;
  stored.own_names = true;
  EXPECT_EQ(hash_checkpoint(kDiverged, stored).error().code, Code::kReplicasDiffer);
  EXPECT_EQ(diff_checkpoints(kPlain, kDiverged, {}, std::nullopt).error().code,
            Code::kReplicasDiffer);
  EXPECT_EQ(show_tensor(kDiverged, kFinalNorm, {}).error().code, Code::kReplicasDiffer);
  TensorReader reader = TensorReader::open(kDiverged).value();
  EXPECT_THAT(bytes_of(reader, kFinalNorm), HasSubstr("differ at (3,)"));
}

TEST(ReplicaNames, LetOneBeChosen) {
  EXPECT_EQ(hash_checkpoint(kDiverged, replica(0)).value().model_digest,
            hash_checkpoint(kPlain, {}).value().model_digest);
  EXPECT_THAT(hash_checkpoint(kDiverged, replica(1)).value().notes,
              Contains(HasSubstr("--replica 1: ")));
  for (const auto& [left, right] : {std::pair(kPlain, kDiverged), std::pair(kDiverged, kPlain)}) {
    EXPECT_TRUE(diff_checkpoints(left, right, replica(0), std::nullopt).value().equal());
    EXPECT_EQ(diff_checkpoints(left, right, replica(1), std::nullopt).value().differences.size(),
              2U);
  }
  const TensorReport first = show_tensor(kDiverged, kFinalNorm, replica(0)).value();
  const TensorReport second = show_tensor(kDiverged, kFinalNorm, replica(1)).value();
  EXPECT_EQ(first.values[2], second.values[2]);
  EXPECT_NE(first.values[3], second.values[3]);
  EXPECT_EQ(show_tensor(kDiverged, std::string(kFinalNorm) + ".__tp_replica_1", {}).value().values,
            second.values);
}

TEST(ReplicaNames, AreNotChosenFromWhereThereAreNone) {
  for (const Error& error :
       {hash_checkpoint(kPlain, replica(0)).error(), hash_checkpoint(kSound, replica(2)).error(),
        diff_checkpoints(kPlain, kPlain, replica(0), std::nullopt).error(),
        show_tensor(kPlain, kFinalNorm, replica(0)).error(),
        show_tensor(kSound, "output_layer.weight", replica(0)).error(),
        verify_checkpoint(kSound, {.proof = replica(0), .against = {}}).error()}) {
    EXPECT_EQ(error.code, Code::kUsage);
    EXPECT_THAT(error.message, HasSubstr("--replica "));
  }
}

TEST(ReplicaNames, AreFoundBesideTheTensor) {
  TensorReader reader = TensorReader::open(kDiverged).value();
  for (const TensorDesc& desc : reader.tensors()) {
    EXPECT_THAT(desc.name, Not(HasSubstr("__tp_replica_")));
  }
  const std::string first = bytes_of(reader, std::string(kFinalNorm) + ".__tp_replica_0");
  const std::string second = bytes_of(reader, std::string(kFinalNorm) + ".__tp_replica_1");
  EXPECT_EQ(first.size(), second.size());
  EXPECT_NE(first, second);
  TensorReader sound = TensorReader::open(kSound).value();
  EXPECT_EQ(bytes_of(sound, kFinalNorm), first);
  EXPECT_EQ(sound.find(std::string(kFinalNorm) + ".__tp_replica_2"), std::nullopt);
}

// A name that has some pieces of a tensor only finds the tensor.
TEST(ReplicaNames, OfPartsFindTheWhole) {
  const TemporaryFolder place;
  std::filesystem::copy(kPlain, place / "in", std::filesystem::copy_options::recursive);
  const std::string name = "decoder.layers.mlp.linear_fc2.weight";
  edit_metadata(place / "in/iter_0000010", [&](Catalog& catalog) {
    StoredTensor kept = *std::ranges::find(
        catalog.tensors, name, [](const StoredTensor& tensor) { return tensor.desc.name; });
    kept.desc.name = "__shadow_1__" + name;
    const Chunk piece = kept.chunks[0];
    kept.chunks = ChunkList(kept.chunks.axes());
    kept.chunks.push_back(piece);
    catalog.tensors.push_back(std::move(kept));
  });
  TensorReader reader = TensorReader::open(place / "in").value();
  TensorReader plain = TensorReader::open(kPlain).value();
  EXPECT_EQ(reader.tensors().size(), plain.tensors().size());
  EXPECT_EQ(content_digest(bytes_of(reader, name)), content_digest(bytes_of(plain, name)));
  EXPECT_EQ(content_digest(bytes_of(reader, "__shadow_1__" + name)),
            content_digest(bytes_of(plain, name)));
}

TEST(ReplicaNames, ThatMakeNoSenseAreAllFound) {
  const TemporaryFolder place;
  std::filesystem::copy(kSound, place / "in", std::filesystem::copy_options::recursive);
  edit_metadata(place / "in/iter_0000010", [](Catalog& catalog) {
    std::vector<StoredTensor> more;
    for (StoredTensor& tensor : catalog.tensors) {
      std::string& name = tensor.desc.name;
      if (!name.ends_with(".__tp_replica_1")) continue;
      if (name.starts_with(kFinalNorm)) {
        name.replace(name.size() - 1, 1, "01");
        continue;
      }
      more.push_back(tensor);
      more.back().desc.name.replace(name.size() - 1, 1, "2");
    }
    std::ranges::move(more, std::back_inserter(catalog.tensors));
  });
  std::size_t told = 0;
  const VerifyReport report = verify_replicas(place / "in");
  for (const VerifyFinding& finding : report.findings) {
    if (finding.code == Code::kReplicaKeys) ++told;
  }
  EXPECT_EQ(told, 3U);
  for (const Error& error :
       {hash_checkpoint(place / "in", {}).error(),
        diff_checkpoints(place / "in", kPlain, {}, std::nullopt).error(),
        show_tensor(place / "in", "decoder.layers.mlp.linear_fc1.layer_norm_weight", {}).error()}) {
    EXPECT_EQ(error.code, Code::kReplicaKeys) << error.message;
  }
}

}  // namespace
}  // namespace shardwright
