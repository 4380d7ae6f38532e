// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "state/common_state.h"
#include "verify/malformed_fixture.h"

namespace shardwright {
namespace {

constexpr const char* kIter = "iter_0000000/";
constexpr const char* kNorm = "decoder.final_layernorm.weight";
constexpr const char* kQkv = "decoder.layers.self_attention.linear_qkv.weight";
constexpr const char* kRank = "iter_0000001/mp_rank_00_000/model_optim_rng.pt";

std::string iter(const std::string& file) { return kIter + file; }

// Removes a layer from every stack.
void lose_last_layer(Catalog& catalog) {
  for (StoredTensor& tensor : catalog.tensors) {
    if (!tensor.desc.name.starts_with("decoder.layers.")) continue;
    const std::int64_t layers = --tensor.desc.shape[0];
    edit_chunks(catalog, tensor.desc.name, [&](std::vector<Chunk>& chunks) {
      std::erase_if(chunks, [&](const Chunk& c) { return c.box.origin[0] >= layers; });
    });
  }
}

// Halves an axis of the experts, as if only the first expert-parallel rank had saved.
void lose_experts(Catalog& catalog) {
  for (StoredTensor& tensor : catalog.tensors) {
    if (tensor.desc.name.find(".experts.experts.") == std::string::npos) continue;
    const std::int64_t left = tensor.desc.shape[1] /= 2;
    edit_chunks(catalog, tensor.desc.name, [&](std::vector<Chunk>& chunks) {
      std::erase_if(chunks, [&](const Chunk& c) { return c.box.origin[1] >= left; });
    });
  }
}

// Where the bytes of the tensor's first chunk lie.
std::pair<std::string, std::size_t> payload_of(const Planted& p, const std::string& name) {
  const auto report = show_tensor(p.path(), name, {}).value();
  return {report.files.at(0), report.chunks.at(0).range.offset};
}

constexpr Malformed kMegatronCases[] = {
    // torch_dist: the metadata
    {"TrainStateThatIsNone", Base::kTorchDist,
     [](const Planted& p) { p.put(iter("train_state.pt"), "hello"); }, Code::kTorchArchive,
     "train_state.pt: this is text, not a torch.save archive"},
    {"Hole", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) { edit_chunks(c, kQkv, [](auto& v) { v.pop_back(); }); });
     },
     Code::kHole, "no chunk holds ["},
    {"ChunksInOnePlace", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         edit_chunks(c, kQkv, [](auto& chunks) {
           chunks.back().file = chunks.front().file;
           chunks.back().range = chunks.front().range;
         });
       });
     },
     Code::kMetadataCorrupt,
     ".metadata: tensor decoder.layers.self_attention.linear_qkv.weight: chunk [0:1, 0:64, 0:64] "
     "and tensor decoder.layers.self_attention.linear_qkv.weight: chunk ["},
    {"NextChunkInOnePlace", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         edit_chunks(c, kQkv, [](auto& chunks) {
           const auto by_place = [](const Chunk& chunk) {
             return std::pair(chunk.file, chunk.range.offset);
           };
           std::ranges::sort(chunks, {}, by_place);
           chunks.back().file = chunks[chunks.size() - 2].file;
           chunks.back().range = chunks[chunks.size() - 2].range;
         });
       });
     },
     Code::kMetadataCorrupt,
     ".metadata: tensor decoder.layers.self_attention.linear_qkv.weight: chunk ["},
    {"WholeTensorUnstored", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) { edit_chunks(c, kNorm, [](auto& v) { v.clear(); }); });
     },
     Code::kHole, "(64 elements)"},
    {"Overlap", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata(
           [](Catalog& c) { edit_chunks(c, kQkv, [](auto& v) { v.back().box.origin[1] -= 8; }); });
     },
     Code::kOverlap, "expected disjoint chunks"},
    {"OverlapNamesFileAndOffset", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata(
           [](Catalog& c) { edit_chunks(c, kQkv, [](auto& v) { v.back().box.origin[1] -= 8; }); });
     },
     Code::kOverlap, ".distcp@"},
    {"OutOfBounds", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata(
           [](Catalog& c) { edit_chunks(c, kQkv, [](auto& v) { v.back().box.origin[1] += 8; }); });
     },
     Code::kOutOfBounds, "expected it inside (3, 128, 64)"},
    {"OutOfBoundsLeavesAHoleToo", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata(
           [](Catalog& c) { edit_chunks(c, kQkv, [](auto& v) { v.back().box.origin[1] += 8; }); });
     },
     Code::kHole, kQkv},
    {"StridedShardsOfTorch", Base::kTorchDist,
     [](const Planted& p) {
       // As torch 2.12 and 2.13 do: one item has a row less than its chunk, another one more.
       p.edit_metadata([](Catalog& c) {
         edit_chunks(c, "output_layer.weight", [](auto& v) {
           v[0].box.shape[0] -= 1;
           v[1].box.origin[0] -= 1;
           v[1].box.shape[0] += 1;
         });
       });
     },
     Code::kChunkMismatch, "torch wrote them wrong"},
    {"AnotherDtype", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) { tensor_of(c, kNorm).desc.dtype = DType::kF16; });
     },
     Code::kChunkMismatch, "expected float16"},
    {"SwappedItems", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         StoredTensor& norm = tensor_of(c, kNorm);
         norm.chunks.set_location(0, tensor_of(c, kQkv).chunks.file(0),
                                  tensor_of(c, kQkv).chunks.range(0));
       });
     },
     Code::kChunkMismatch, kNorm},
    {"RangeBehindTheFile", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         StoredTensor& norm = tensor_of(c, kNorm);
         norm.chunks.set_location(0, norm.chunks.file(0), {std::uint64_t{1} << 40, 100});
       });
     },
     Code::kShortRead, "it was cut or does not belong"},
    {"ObjectBehindTheFile", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) { c.objects.front().range.offset = std::uint64_t{1} << 40; });
     },
     Code::kShortRead, "_extra_state"},
    {"WrongItemLength", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         StoredTensor& norm = tensor_of(c, kNorm);
         ByteRange range = norm.chunks.range(0);
         range.length -= 1;
         norm.chunks.set_location(0, norm.chunks.file(0), range);
       });
     },
     Code::kZipCorrupt, kNorm},
    {"PathLeadsOut", Base::kTorchDist,
     [](const Planted& p) { p.edit_metadata([](Catalog& c) { c.files.front() = "../secret"; }); },
     Code::kPathEscapes, "do not use this checkpoint"},
    {"AbsolutePath", Base::kTorchDist,
     [](const Planted& p) { p.edit_metadata([](Catalog& c) { c.files.front() = "/etc/passwd"; }); },
     Code::kPathEscapes, "which is absolute"},
    {"MetadataCut", Base::kTorchDist, [](const Planted& p) { p.cut(iter(".metadata"), 20); },
     Code::kPickleCorrupt, ".metadata"},
    {"MetadataIsNoPickle", Base::kTorchDist,
     [](const Planted& p) { p.put(iter(".metadata"), "hello"); }, Code::kPickleCorrupt,
     ".metadata"},
    {"MetadataIsAnotherPickle", Base::kTorchDist,
     [](const Planted& p) { p.put(iter(".metadata"), "\x80\x04}."); }, Code::kMetadataCorrupt,
     ".metadata"},
    {"MetadataIsEmpty", Base::kTorchDist, [](const Planted& p) { p.put(iter(".metadata"), ""); },
     Code::kPickleCorrupt, ".metadata"},
    {"Transformed", Base::kDcpPieces,
     [](const Planted& p) {
       p.put(".metadata", read_golden("metadata/torch_2.13_transforms.metadata"));
     },
     Code::kItemTransformed, "stream extension test.xor"},
    // torch_dist: the files
    {"MissingFile", Base::kTorchDist, [](const Planted& p) { p.remove(iter("__1_0.distcp")); },
     Code::kNotFound, "__1_0.distcp"},
    {"ShortFile", Base::kTorchDist, [](const Planted& p) { p.cut(iter("__1_0.distcp"), 1); },
     Code::kShortRead, "__1_0.distcp"},
    {"EmptyFile", Base::kTorchDist, [](const Planted& p) { p.put(iter("__1_0.distcp"), ""); },
     Code::kShortRead, "this file is empty, not a .distcp file"},
    {"SwappedFiles", Base::kTorchDist,
     [](const Planted& p) { p.swap(iter("__0_0.distcp"), iter("__3_0.distcp")); },
     Code::kZipCorrupt, ".distcp"},
    {"FlippedPayloadByte", Base::kTorchDist,
     [](const Planted& p) {
       const auto [file, offset] = payload_of(p, kNorm);
       p.flip(iter(file), offset + 5);
     },
     Code::kPayloadDamaged, "data/0' (128 bytes)"},
    {"FlippedHeaderByte", Base::kTorchDist,
     [](const Planted& p) { p.flip(iter("__0_0.distcp"), 2); }, Code::kZipCorrupt,
     "__0_0.distcp@0"},
    {"TrailingBytes", Base::kTorchDist,
     [](const Planted& p) { p.append(iter("__0_0.distcp"), "rest"); }, Code::kUnreferencedBytes,
     "belongs to nothing"},
    {"LeftoverFile", Base::kTorchDist, [](const Planted& p) { p.put(iter("__9_9.distcp"), "old"); },
     Code::kUnreferencedBytes, "nothing names"},
    {"ZarrBackend", Base::kTorchDist,
     [](const Planted& p) { p.put(iter("metadata.json"), R"({"sharded_backend": "zarr"})"); },
     Code::kNothingStored, "stored"},
    {"UnknownBackend", Base::kTorchDist,
     [](const Planted& p) { p.put(iter("metadata.json"), R"({"sharded_backend": "x"})"); },
     Code::kUnsupportedFormat, "names the backend 'x'"},
    {"RankLocal", Base::kTorchDist,
     [](const Planted& p) { p.rename(iter(".metadata"), iter("__1.metadata")); },
     Code::kMetadataCorrupt, "__0.metadata: not found"},
    {"MoreLayersThanAnyModelHas", Base::kTorchDist,
     [](const Planted& p) {
       const std::int64_t layers = std::int64_t{1} << 62;
       p.put(iter("common.pt"), new_common_state({{"num_layers", layers}}, 0, true).value());
     },
     Code::kModelIncomplete, "expected all up to 4611686018427387903"},
    // torch_dist: what lies around
    {"TrackerIsEmpty", Base::kTorchDist,
     [](const Planted& p) { p.put("latest_checkpointed_iteration.txt", ""); }, Code::kTrackerBroken,
     "expected an iteration"},
    {"TrackerIsText", Base::kTorchDist,
     [](const Planted& p) { p.put("latest_checkpointed_iteration.txt", "ten"); },
     Code::kTrackerBroken, "ten"},
    {"TrackerNamesNothing", Base::kTorchDist,
     [](const Planted& p) { p.put("latest_checkpointed_iteration.txt", "7"); },
     Code::kTrackerBroken, "iter_0000007"},
    {"TrackerIsMissing", Base::kTorchDist,
     [](const Planted& p) { p.remove("latest_checkpointed_iteration.txt"); }, Code::kTrackerBroken,
     "if the save of iter_0000000 was finished, write '0' into it"},
    {"MetadataJsonIsMissing", Base::kTorchDist,
     [](const Planted& p) { p.remove(iter("metadata.json")); }, Code::kNotFound,
     "metadata.json is missing"},
    {"RenamedIteration", Base::kTorchDist,
     [](const Planted& p) {
       p.rename("iter_0000000", "iter_0000005");
       p.put("latest_checkpointed_iteration.txt", "5");
     },
     Code::kIterationMismatch, "expected 5"},
    {"CommonStateCut", Base::kTorchDist, [](const Planted& p) { p.cut(iter("common.pt"), 30); },
     Code::kZipCorrupt, "common.pt"},
    {"CommonStateIsAnother", Base::kTorchDist,
     [](const Planted& p) { p.put(iter("common.pt"), "text"); }, Code::kTorchArchive,
     "this is text"},
    {"NotACheckpoint", Base::kTorchDist, [](const Planted& p) { p.remove("iter_0000000"); },
     Code::kTrackerBroken, "which is not there"},
    // torch_dist: the model
    {"MissingTensor", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         std::erase_if(c.tensors, [](const auto& t) { return t.desc.name == kNorm; });
       });
     },
     Code::kUnmatchedTarget, kNorm},
    {"UnknownTensor", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) { tensor_of(c, kNorm).desc.name += "_new"; });
     },
     Code::kUnmatchedSource, "final_layernorm.weight_new"},
    {"MissingLayer", Base::kTorchDist, [](const Planted& p) { p.edit_metadata(lose_last_layer); },
     Code::kModelIncomplete, "found 2 layers, none of 2, expected all up to 2"},
    {"LostHalfOfEachMlp", Base::kTorchDist,
     [](const Planted& p) {
       p.edit_metadata([](Catalog& c) {
         std::erase_if(c.tensors, [](const StoredTensor& tensor) {
           return tensor.desc.name.contains(".mlp.linear_fc2.");
         });
       });
     },
     Code::kModelIncomplete, "nothing is stored of decoder.layers.0.mlp.linear_fc2.weight"},
    {"LostExperts", Base::kExperts, [](const Planted& p) { p.edit_metadata(lose_experts); },
     Code::kModelIncomplete, "found 2 experts, expected 4 as the router has"},
    // legacy
    {"LegacyRankMissing", Base::kLegacy,
     [](const Planted& p) { p.remove("iter_0000001/mp_rank_01_001"); }, Code::kHole,
     "no chunk holds"},
    {"LegacyRankMissingIsNamed", Base::kLegacy,
     [](const Planted& p) { p.remove("iter_0000001/mp_rank_01_001"); }, Code::kHole,
     "missing mp_rank_01_001"},
    {"LegacyStageMissing", Base::kLegacy,
     [](const Planted& p) {
       p.remove("iter_0000001/mp_rank_00_001");
       p.remove("iter_0000001/mp_rank_01_001");
     },
     Code::kLegacyLayout, "mp_rank_00_001"},
    {"LegacyTensorRanksSwapped", Base::kLegacy,
     [](const Planted& p) { p.swap(kRank, "iter_0000001/mp_rank_01_000/model_optim_rng.pt"); },
     Code::kRankMisplaced, "mp_rank_01_000: its arguments say that rank 0 of 4 wrote it"},
    {"LegacyStagesRenamed", Base::kLegacy,
     [](const Planted& p) {
       for (const std::string rank : {"0", "1"}) {
         const std::string folder = "iter_0000001/mp_rank_0" + rank + "_00";
         p.rename(folder + "0", folder + "9");
         p.rename(folder + "1", folder + "0");
         p.rename(folder + "9", folder + "1");
       }
     },
     Code::kRankMisplaced, "mp_rank_01_001: its arguments say that rank 1 of 4 wrote it"},
    {"LegacyRankIsACopy", Base::kLegacy,
     [](const Planted& p) {
       p.put("iter_0000001/mp_rank_01_000/model_optim_rng.pt", p.get(kRank));
     },
     Code::kRankMisplaced, "mp_rank_01_000: its arguments"},
    {"LegacyRanksHoldTheSame", Base::kLegacy,
     [](const Planted& p) {
       p.put("iter_0000001/mp_rank_01_000/model_optim_rng.pt", p.get(kRank));
     },
     Code::kReplicasDiffer, "found the same bytes in all 2 tensor-parallel ranks"},
    {"LegacyFileCut", Base::kLegacy, [](const Planted& p) { p.cut(kRank, 100); }, Code::kZipCorrupt,
     "mp_rank_00_000"},
    {"LegacyFileIsText", Base::kLegacy, [](const Planted& p) { p.put(kRank, "text"); },
     Code::kTorchArchive, "this is text"},
    {"LegacyFileIsEmpty", Base::kLegacy, [](const Planted& p) { p.put(kRank, ""); },
     Code::kTorchArchive, "this file is empty"},
    {"LegacyFileBeginsWithOtherBytes", Base::kLegacy,
     [](const Planted& p) { p.put(kRank, std::string(64, '\xff')); }, Code::kTorchArchive,
     "found unknown bytes"},
    {"LegacyIterationRenamed", Base::kLegacy,
     [](const Planted& p) {
       p.rename("iter_0000001", "iter_0000009");
       p.put("latest_checkpointed_iteration.txt", "9");
     },
     Code::kIterationMismatch, "expected 9"},
    {"LegacyPayload", Base::kLegacy,
     [](const Planted& p) {
       const auto [file, offset] = payload_of(p, "embedding.word_embeddings.weight");
       p.flip("iter_0000001/" + file, offset);
     },
     Code::kPayloadDamaged, "its bytes were altered"},
};

class MalformedMegatron : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedMegatron, IsNamed) { expect_named(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, MalformedMegatron, ::testing::ValuesIn(kMegatronCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MalformedMegatrons, AreMany) { EXPECT_GE(std::size(kMegatronCases), 40u); }

}  // namespace
}  // namespace shardwright
