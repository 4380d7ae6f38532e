// SPDX-License-Identifier: Apache-2.0
// What all tensor ranks hold alike, written once for each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "convert/golden.h"
#include "dcp/dcp_metadata.h"
#include "dcp/replica_name.h"
#include "dcp/torch_items.h"
#include "io/source_files.h"
#include "layout/rank_order.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

const std::string kDenseGolden = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full";
const std::string kMoeGolden = "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full";

struct Piece {
  std::int64_t rank = 0;
  std::string bytes;
  friend bool operator==(const Piece&, const Piece&) = default;
};

// Every stored piece by name and box, as it lies in the files: nothing is folded.
std::map<std::string, Piece> stored_pieces(const std::string& folder) {
  const auto directory = open_local_directory(folder).value();
  Catalog catalog = read_dcp_metadata(*directory->open(".metadata").value()).value().catalog;
  SourceFiles files(*directory, catalog.files, 64);
  EXPECT_TRUE(locate_items(catalog, files));
  std::map<std::string, Piece> pieces;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      Piece piece{rank_of_file(catalog.files[chunk.file]).value(),
                  std::string(static_cast<std::size_t>(chunk.range.length), '\0')};
      EXPECT_TRUE(files.read_at(chunk.file, chunk.range.offset,
                                std::as_writable_bytes(std::span(piece.bytes))));
      const std::string place = tensor.desc.name + " " + to_string(chunk.box);
      EXPECT_TRUE(pieces.emplace(place, std::move(piece)).second) << place;
    }
  }
  return pieces;
}

// Names of tensors, and how many tensor ranks have one of their own under each.
std::map<std::string, std::set<std::int64_t>> copies_in(const std::string& folder) {
  std::map<std::string, std::set<std::int64_t>> copies;
  for (const auto& [place, piece] : stored_pieces(folder)) {
    const std::string name = place.substr(0, place.find(' '));
    const auto replica = parse_replica_name(name);
    auto& ranks = copies[replica ? std::string(replica->tensor) : name];
    if (replica) ranks.insert(*replica->replica);
  }
  return copies;
}

ConvertRequest expanding(const std::string& input, const std::string& output,
                         const ParallelConfig& parallel) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.parallel = parallel;
  request.tp_replicas = TpReplicas::kExpand;
  return request;
}

// The names, pieces, ranks and bytes that a Megatron-Core which names replicas wrote of the same
// weights, from a checkpoint without such names and from its own.
TEST(ExpandedReplicas, AreThoseThatMegatronWrites) {
  const auto expected = stored_pieces(golden_path("replica/sound/iter_0000010"));
  for (const std::string& source : {kDenseGolden, std::string("replica/sound")}) {
    const TemporaryFolder out;
    ConvertRequest request = expanding(golden_path(source), out / "x", {2, 2, 1, 1, 2});
    request.optimizer = OptimizerPolicy::kDrop;
    const auto converted = convert_now(request);
    ASSERT_TRUE(converted) << converted.error().text();
    EXPECT_THAT(converted->notes,
                testing::Contains(HasSubstr("all 2 tensor ranks hold (3 of them)")));
    const auto written = stored_pieces(out / "x/iter_0000010");
    EXPECT_EQ(written.size(), expected.size());
    for (const auto& [place, piece] : expected) {
      const auto found = written.find(place);
      ASSERT_NE(found, written.end()) << place;
      EXPECT_TRUE(found->second == piece) << place << " on rank " << found->second.rank;
    }
  }
}

TEST(ExpandedReplicas, AreReadAsOneAndComeBack) {
  const TemporaryFolder out;
  ASSERT_TRUE(convert_now(expanding(golden_path(kDenseGolden), out / "a", {2, 2, 1, 1, 2})));
  ConvertRequest collapse = expanding(out / "a", out / "b", {2, 2, 1, 1, 2});
  collapse.tp_replicas = TpReplicas::kCollapse;
  ASSERT_TRUE(convert_now(collapse));
  EXPECT_TRUE(copies_in(out / "b/iter_0000010").at("decoder.final_layernorm.weight").empty());
  ASSERT_TRUE(convert_now(expanding(out / "b", out / "c", {2, 2, 1, 1, 2})));
  for (const char* file :
       {".metadata", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp", "common.pt"}) {
    EXPECT_EQ(read_file(out / "a/iter_0000010/" + file), read_file(out / "c/iter_0000010/" + file))
        << file;
  }
  EXPECT_EQ(difference(read_all_tensors(out / "a").value(),
                       read_all_tensors(golden_path(kDenseGolden)).value()),
            "");
}

// Their optimizer states too; nothing that tensor ranks share out, and no expert.
TEST(ExpandedReplicas, AreWhatTensorRanksHoldAlike) {
  const TemporaryFolder out;
  ASSERT_TRUE(convert_now(expanding(golden_path(kMoeGolden), out / "x", {2, 1, 1, 2, 1})));
  const auto copies = copies_in(out / "x/iter_0000010");
  const std::set<std::int64_t> both = {0, 1};
  for (const char* name :
       {"decoder.final_layernorm.weight", "decoder.layers.mlp.router.weight",
        "decoder.layers.mlp.router.expert_bias", "decoder.layers.pre_mlp_layernorm.weight",
        "decoder.layers.self_attention.linear_qkv.layer_norm_weight"}) {
    EXPECT_EQ(copies.at(name), both) << name;
    if (std::string_view(name).ends_with("expert_bias")) continue;
    for (const char* kind : {"param.", "exp_avg.", "exp_avg_sq."}) {
      EXPECT_EQ(copies.at("optimizer.state." + std::string(kind) + name), both) << kind << name;
    }
  }
  std::size_t expanded = 0;
  for (const auto& [name, ranks] : copies) expanded += ranks.empty() ? 0 : 1;
  EXPECT_EQ(expanded, 5U + 4 * 3);
}

TEST(ExpandedReplicas, AreReadOnce) {
  const TemporaryFolder out;
  const auto bytes_read = [&](const std::string& name, TpReplicas replicas) {
    ConvertRequest request = expanding(golden_path(kDenseGolden), out / name, {4, 2, 1, 1, 4});
    request.tp_replicas = replicas;
    const PreparedConversion prepared = prepare_conversion(request).value();
    const ConvertReport report = run_conversion(prepared, {}).value();
    return std::pair(report.bytes_read, cost_of(prepared.plan).payload_bytes_read);
  };
  EXPECT_EQ(bytes_read("a", TpReplicas::kExpand), bytes_read("b", TpReplicas::kCollapse));
}

TEST(ExpandedReplicas, NeedTensorRanks) {
  const TemporaryFolder out;
  const auto refused =
      prepare_conversion(expanding(golden_path(kDenseGolden), out / "x", {1, 2, 1, 1, 1}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("one tensor rank shares nothing"));
}

// A second embedding that Megatron has no place for, which torch_dist keeps.
TEST(ExpandedReplicas, LeaveAloneWhatNoRankHolds) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/deepseek_v3_mtp/hf"), place / "in",
                        std::filesystem::copy_options::recursive);
  const Catalog catalog = open_checkpoint(place / "in").value().catalog;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.desc.name != "model.layers.3.embed_tokens.weight") continue;
    alter_sealed(place / "in/model.safetensors", tensor.chunks.range(0), 6, '\x55');
  }
  const auto prepared = prepare_conversion(expanding(place / "in", place / "out", {2}));
  ASSERT_TRUE(prepared) << prepared.error().text();
  std::size_t extras = 0;
  for (const StoredTensor& tensor : prepared->plan.target.tensors) {
    const std::string& name = tensor.desc.name;
    if (name.starts_with("hf_extra.")) ++extras;
    EXPECT_FALSE(name.starts_with("hf_extra.") && parse_replica_name(name)) << name;
  }
  EXPECT_EQ(extras, 1U);
}

}  // namespace
}  // namespace shardwright
