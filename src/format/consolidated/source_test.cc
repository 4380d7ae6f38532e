// SPDX-License-Identifier: Apache-2.0
#include "format/consolidated/source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "shardwright/checkpoint.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t kWidth = 8;
constexpr std::int64_t kVocabulary = 16;
constexpr std::int64_t kHidden = 24;

struct MetaModel {
  std::int64_t ranks = 4;
  std::int64_t query_rows = kWidth;
  bool cuts_columns = false;  // of the embedding, as Llama 2's ranks
  std::int64_t turns = 0;     // frequencies that each head is turned by, if they are there
};

// What torch.save makes of one rank's state dict, all elements zero.
std::string rank_file(const MetaModel& model) {
  pickle::Document document;
  const pickle::Value dict = document.dict();
  std::vector<std::uint64_t> sizes;
  const auto add = [&](const char* name, const Dims& shape) {
    document.set(dict, name,
                 make_torch_tensor(document, DType::kF32, shape, std::to_string(sizes.size())));
    sizes.push_back(static_cast<std::uint64_t>(byte_count(shape, DType::kF32).value()));
  };
  const std::int64_t rows = model.query_rows / model.ranks;
  const Dims by_rows = {kVocabulary / model.ranks, kWidth};
  add("tok_embeddings.weight",
      model.cuts_columns ? Dims{kVocabulary, kWidth / model.ranks} : by_rows);
  add("norm.weight", {kWidth});
  add("output.weight", by_rows);
  add("layers.0.attention.wq.weight", {rows, kWidth});
  add("layers.0.attention.wk.weight", {rows, kWidth});
  add("layers.0.attention.wv.weight", {rows, kWidth});
  add("layers.0.attention.wo.weight", {kWidth, rows});
  add("layers.0.feed_forward.w1.weight", {kHidden / model.ranks, kWidth});
  add("layers.0.feed_forward.w2.weight", {kWidth, kHidden / model.ranks});
  add("layers.0.feed_forward.w3.weight", {kHidden / model.ranks, kWidth});
  if (model.turns > 0) add("rope.freqs", {model.turns});
  document.set_root(dict);
  const TorchLayout layout =
      TorchLayout::make(*pickle::encode(document, pickle::Protocol::kTwo), sizes).value();
  std::string bytes = layout.head();
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string zeros(sizes[i], '\0');
    bytes += zeros;
    crcs.push_back(crc32(as_bytes(zeros)));
    if (i + 1 < sizes.size()) bytes += layout.between(i, crcs.back());
  }
  return bytes + layout.tail(crcs);
}

class Consolidated : public ::testing::Test {
 protected:
  // The first `files` of the ranks' files, and nothing else.
  void put(const MetaModel& model, std::int64_t files) {
    for (const auto& entry : std::filesystem::directory_iterator(place_.path())) {
      std::filesystem::remove(entry.path());
    }
    for (std::int64_t rank = 0; rank < files; ++rank) {
      place_.put(fmt::format("consolidated.{:02}.pth", rank), rank_file(model));
    }
  }

  [[nodiscard]] Error refused() const {
    const auto opened = open_checkpoint(place_.path().string());
    EXPECT_FALSE(opened.has_value());
    return opened ? Error{} : opened.error();
  }

  void expect_whole() const {
    const auto opened = open_checkpoint(place_.path().string());
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    EXPECT_THAT(opened->catalog.tensors, SizeIs(10));
  }

  TemporaryFolder place_;
};

TEST_F(Consolidated, FilesOfRanksThatAreMissing) {
  for (const bool cuts_columns : {false, true}) {
    const MetaModel model = {.cuts_columns = cuts_columns};
    for (const std::int64_t files : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} files, by columns {}", files, cuts_columns));
      put(model, files);
      const Error error = refused();
      EXPECT_EQ(error.code, Code::kNotFound);
      EXPECT_THAT(error.message,
                  AllOf(HasSubstr(fmt::format("found {} of 4 files consolidated.NN.pth", files)),
                        HasSubstr(cuts_columns ? "tok_embeddings.weight has 2 of 8 columns"
                                               : "wq.weight has 2 of 8 rows")));
      Defects defects(Defects::Policy::kCollect);
      ASSERT_TRUE(open_checkpoint(place_.path().string(), defects));
      EXPECT_THAT(defects.found(), Contains(::testing::Field(&Error::code, Code::kNotFound)));
    }
    put(model, 4);
    expect_whole();
  }
}

TEST_F(Consolidated, NarrowHeadsAreToldByTheModelsSettings) {
  put({.ranks = 2, .query_rows = 4}, 2);
  EXPECT_THAT(refused().message, HasSubstr("found 2 of 4 files"));
  EXPECT_THAT(refused().message, HasSubstr("params.json"));
  place_.put("params.json", R"({"dim": 8, "n_layers": 1, "n_heads": 2, "head_dim": 2})");
  expect_whole();
  place_.put("params.json", R"({"dim": 8, "n_layers": 1, "n_heads": 4, "head_dim": 2})");
  EXPECT_THAT(refused().message, HasSubstr("found 2 of 4 files"));
  place_.put("config.json", R"({"hidden_size": 8, "num_attention_heads": 2, "head_dim": 2})");
  expect_whole();
  place_.put("config.json", R"({"hidden_size": 8, "num_attention_heads": 2})");
  EXPECT_THAT(refused().message, AllOf(HasSubstr("found 2 of 4"), Not(HasSubstr("params.json"))));
}

// Twice as many heads of half the size have the same shapes.
TEST_F(Consolidated, HeadsOfAnotherSizeThanTheirTurnsShow) {
  put({.ranks = 1, .turns = 2}, 1);
  place_.put("params.json", R"({"dim": 8, "n_layers": 1, "n_heads": 2})");
  EXPECT_TRUE(open_checkpoint(place_.path().string()));
  for (const char* params : {R"({"dim": 8, "n_layers": 1, "n_heads": 1})",
                             R"({"dim": 8, "n_heads": 4, "head_dim": 2})"}) {
    place_.put("params.json", params);
    const Error error = refused();
    EXPECT_EQ(error.code, Code::kArgumentsContradict);
    EXPECT_THAT(error.message, HasSubstr("rope.freqs shows heads of 4"));
  }
  place_.put("config.json", R"({"hidden_size": 8, "num_attention_heads": 2})");
  EXPECT_TRUE(open_checkpoint(place_.path().string()));
}

TEST_F(Consolidated, FilesOfTwoSaves) {
  put({.ranks = 2, .cuts_columns = true}, 4);
  EXPECT_EQ(refused().code, Code::kTwoCheckpoints);
  EXPECT_THAT(refused().message, HasSubstr("found 4 files consolidated.NN.pth, expected 2"));
  put({.ranks = 2}, 4);
  expect_whole();  // heads may be wider
  place_.put("params.json", R"({"dim": 8, "n_layers": 1, "n_heads": 2})");
  EXPECT_EQ(refused().code, Code::kTwoCheckpoints);
  place_.put("params.json", R"({"dim": 8, "n_layers": 1, "n_heads": 4, "head_dim": 4})");
  expect_whole();
}

TEST_F(Consolidated, AFileOfAnotherSaveBesideThem) {
  put({.ranks = 1}, 1);
  place_.put("consolidated.pth", rank_file({.ranks = 1}));
  const Error error = refused();
  EXPECT_EQ(error.code, Code::kTwoCheckpoints);
  EXPECT_THAT(error.message, HasSubstr("consolidated.pth and consolidated.00.pth"));
}

TEST_F(Consolidated, AnAdapterBesideThem) {
  put({.ranks = 1}, 1);
  place_.put("adapter_model.pt", "x");
  const auto opened = open_checkpoint(place_.path().string());
  ASSERT_TRUE(opened.has_value()) << opened.error().text();
  EXPECT_THAT(opened->notes, Contains(HasSubstr("adapter_model.pt is an adapter")));
}

TEST_F(Consolidated, SettingsThatMakeNoSenseTellNothing) {
  put({.ranks = 2}, 2);
  for (const char* params : {R"({"n_heads": 4611686018427387904, "head_dim": 4})",
                             R"({"n_heads": 0, "head_dim": 0})", R"({"n_heads": -1, "dim": -8})",
                             R"({"n_heads": 3, "head_dim": 1})", R"({"n_heads": "2"})"}) {
    place_.put("params.json", params);
    expect_whole();
  }
}

// It may be a part of a model, and has all names of one.
TEST_F(Consolidated, OneFileByItselfIsRefused) {
  put({}, 1);
  const auto opened = open_checkpoint(place_ / "consolidated.00.pth");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(opened.error().message, HasSubstr("give the folder"));
}

}  // namespace
}  // namespace shardwright
