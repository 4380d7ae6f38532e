// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "dcp/dcp_metadata_fixture.h"

namespace shardwright::testing_dcp {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

TEST(DcpMetadata, RefusesChunksWithoutEntryAndEntriesWithoutChunk) {
  {
    Maker maker;
    maker.add_usual();
    maker.add_tensor("lost", maker.tensor(maker.properties("float32"), maker.size({4}),
                                          {maker.chunk({0}, {4})}));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt,
                   "tensor lost: no storage entry says in which file chunk [0:4] lies");
  }
  {
    Maker maker;
    maker.add_usual();
    maker.add_place(maker.index("w", maker.size({1, 0})), maker.info("f", 0, 1));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt,
                   "tensor w: found a storage entry for a chunk at (1, 0)");
  }
  {
    Maker maker;
    maker.add_usual();
    maker.add_place(maker.index("ghost", maker.size({0})), maker.info("f", 0, 1));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt,
                   "tensor ghost: found a storage entry for a name without a description");
  }
  {
    Maker maker;
    maker.add_usual();
    maker.add_place(maker.index("w", maker.size({2, 0})), maker.info("f", 0, 1));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt,
                   "two storage entries for chunk [2:4, 0:6]");
  }
  {
    Maker maker;
    maker.add_tensor("step", maker.object(Maker::kModule, "BytesStorageMetadata"));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt, "object step: no storage entry says");
  }
  {
    Maker maker;
    maker.add_usual();
    maker.add_place(maker.index("w"), maker.info("f", 0, 1));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt,
                   "tensor w: found a storage entry for a chunk at ()");
  }
}

TEST(DcpMetadata, RefusesChunksOutsideTheirTensor) {
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> boxes = {
      {{0, 0}, {5, 6}},  {{1, 0}, {4, 6}}, {{-1, 0}, {2, 6}},
      {{0, 0}, {-1, 6}}, {{5, 0}, {0, 6}}, {{std::numeric_limits<std::int64_t>::max(), 0}, {2, 6}}};
  for (const auto& [origin, shape] : boxes) {
    Maker maker;
    maker.add_tensor("w", maker.tensor(maker.properties("float32"), maker.size({4, 6}),
                                       {maker.chunk(origin, shape)}));
    expect_refusal(maker.encode(), Code::kOutOfBounds, "tensor w: found chunk 0 at ");
  }
}

TEST(DcpMetadata, RefusesPathsThatLeaveTheCheckpoint) {
  for (const char* path :
       {"/etc/passwd", "../x", "a/../../x", "a/..", "a\\b", "", ".", "a//b", "a/"}) {
    Maker maker;
    maker.add_tensor(
        "w", maker.tensor(maker.properties("float32"), maker.size({4}), {maker.chunk({0}, {4})}));
    maker.add_place(maker.index("w", maker.size({0})), maker.info(path, 0, 1));
    expect_refusal(maker.encode(), Code::kPathEscapes, "tensor w: found relative_path '");
  }
  Maker maker;
  maker.add_tensor(
      "w", maker.tensor(maker.properties("float32"), maker.size({4}), {maker.chunk({0}, {4})}));
  maker.add_place(maker.index("w", maker.size({0})), maker.info("sub/..dir/..f", 0, 1));
  EXPECT_TRUE(read(maker.encode())) << "names may begin with dots";
}

struct BadTensor {
  const char* what;
  std::function<Value(Maker&)> make;
  Code code;
  const char* fragment;
};

TEST(DcpMetadata, RefusesTensorsItCannotDescribe) {
  const std::vector<std::int64_t> nine(9, 1);
  const std::vector<BadTensor> cases = {
      {"quantised", [](Maker& m) { return m.tensor(m.properties("qint8"), m.size({4}), {}); },
       Code::kDtypeUnsupported, "tensor bad: found dtype torch.qint8"},
      {"sparse",
       [](Maker& m) {
         return m.tensor(m.properties("float32", "torch.sparse_coo"), m.size({4}), {});
       },
       Code::kMetadataCorrupt, "found layout torch.sparse_coo"},
      {"nine axes", [&](Maker& m) { return m.tensor(m.properties("float32"), m.size(nine), {}); },
       Code::kLimit, "tensor bad: found more than 8 axes"},
      {"nine axes in a list",
       [&](Maker& m) {
         std::vector<Value> ones(9, m.document.integer(1));
         return m.tensor(m.properties("float32"), m.document.list(ones), {});
       },
       Code::kLimit, "tensor bad: found more than 8 axes"},
      {"huge",
       [](Maker& m) {
         return m.tensor(m.properties("float32"), m.size({1ll << 40, 1ll << 40}), {});
       },
       Code::kLimit, "tensor bad: shape"},
      {"negative", [](Maker& m) { return m.tensor(m.properties("float32"), m.size({-4}), {}); },
       Code::kOutOfBounds, "tensor bad: shape (-4,) has a negative extent"},
      {"no size", [](Maker& m) { return m.tensor(m.properties("float32"), m.document.none(), {}); },
       Code::kMetadataCorrupt, "tensor bad: found no size"},
      {"no properties", [](Maker& m) { return m.tensor(m.document.none(), m.size({4}), {}); },
       Code::kMetadataCorrupt, "tensor bad: found no properties"},
      {"foreign chunks",
       [](Maker& m) {
         return m.tensor(m.properties("float32"), m.size({4}), {m.object("a", "B")});
       },
       Code::kMetadataCorrupt, "tensor bad: found chunks that are not a list"},
      {"mixed axes",
       [](Maker& m) {
         return m.tensor(m.properties("float32"), m.size({4}),
                         {m.chunk({0}, {2}), m.chunk({2, 0}, {2, 1})});
       },
       Code::kMetadataCorrupt, "of one axis count"},
      {"wrong axes",
       [](Maker& m) {
         return m.tensor(m.properties("float32"), m.size({4}), {m.chunk({2, 0}, {2, 1})});
       },
       Code::kMetadataCorrupt, "found chunks of 2 axes in a tensor of 1"},
      {"uneven chunk",
       [](Maker& m) {
         return m.tensor(m.properties("float32"), m.size({4}), {m.chunk({2, 0}, {2})});
       },
       Code::kMetadataCorrupt, "a chunk's offsets and sizes are missing or of different lengths"},
  };
  for (const BadTensor& c : cases) {
    Maker maker;
    maker.add_tensor("bad", c.make(maker));
    SCOPED_TRACE(c.what);
    expect_refusal(maker.encode(), c.code, c.fragment);
  }
}

TEST(DcpMetadata, RefusesUnknownEntries) {
  {
    Maker maker;
    maker.add_usual();
    maker.add_tensor("odd", maker.object("a.b", "C"));
    expect_refusal(maker.encode(), Code::kMetadataCorrupt,
                   "found 1 entries of unknown classes in state_dict_metadata (the first: odd)");
  }
  {
    Maker maker;
    maker.add_usual();
    maker.add_place(maker.index("w", maker.size({2, 0})), maker.document.none());
    expect_refusal(maker.encode(), Code::kMetadataCorrupt, "of unknown classes in storage_data");
  }
  {
    Maker maker;
    maker.add_usual();
    const Value info = maker.object("a", "Info");
    maker.document.set_attribute(info, "relative_path", maker.document.string("f"));
    maker.document.set_attribute(info, "offset", maker.document.integer(0));
    maker.add_place(maker.index("w", maker.size({2, 0})), info);
    expect_refusal(maker.encode(), Code::kMetadataCorrupt, "of unknown classes in storage_data");
  }
}

TEST(DcpMetadata, RefusesTensorsInSeveralPlaces) {
  {
    Maker maker;
    maker.add_usual();
    const Value root = maker.root();
    const Value backup = maker.document.dict();
    maker.document.set(backup, "copy",
                       maker.tensor(maker.properties("float32"), maker.size({4}), {}));
    maker.document.set_attribute(root, "backup", backup);
    expect_refusal(maker.encode(root), Code::kMetadataCorrupt, "found two dicts of tensors");
  }
  {
    Maker maker;
    maker.add_usual();
    const Value root = maker.root();
    maker.document.set_attribute(root, "state_dict_metadata", maker.document.dict());
    maker.document.set_attribute(root, "backup", maker.tensors);
    expect_refusal(maker.encode(root), Code::kMetadataCorrupt,
                   "found entries of state_dict_metadata outside of it");
  }
}

TEST(DcpMetadata, RefusesMachinesGoneWrong) {
  const std::vector<std::tuple<std::string, Code, const char*>> cases = {
      {"]q\x00]q\x00h\x00."s, Code::kMetadataCorrupt, "@4: found a memo slot set twice"},
      {"Nq\x01h\x02."s, Code::kMetadataCorrupt, "memo slot 2, which was never set"},
      {"Nj\xff\xff\xff\xff."s, Code::kPickleCorrupt, "which was never set"},
      {"Nr\xff\xff\xff\xff."s, Code::kLimit, "found memo slot 4294967295"},
      {"NN.", Code::kMetadataCorrupt, "found 2 values at STOP"},
      {"(N.", Code::kMetadataCorrupt, "values at STOP"},
      {"Nt.", Code::kMetadataCorrupt, "no MARK on the stack"},
      {"N(\x86.", Code::kMetadataCorrupt, "found an empty stack"},
      {"(e.", Code::kMetadataCorrupt, "expected a list"},
      {"(u.", Code::kMetadataCorrupt, "expected a dict"},
      {"}(Nu.", Code::kMetadataCorrupt, "found a key without a value"},
      {"K\x01K\x02\x93.", Code::kMetadataCorrupt, "a global whose name is not a string"},
      {"ca\nb\n0.", Code::kPickleUnsupported, "found opcode 0x30"},
      {std::string(1001, '(') + "N.", Code::kLimit, "found values nested deeper"},
      {"\x80\x06N.", Code::kPickleUnsupported, "found protocol 6"},
  };
  for (const auto& [bytes, code, fragment] : cases) {
    SCOPED_TRACE(fragment);
    expect_refusal(bytes, code, fragment);
  }
  DcpMetadataOptions options;
  options.limits.stack = 3;
  EXPECT_EQ(read("NNNN.", options).error().code, Code::kLimit);
  EXPECT_EQ(read("NNN.", options).error().code, Code::kMetadataCorrupt);
}

// An object that the memo can reach is one object: its second BUILD would change the first.
TEST(DcpMetadata, RefusesObjectsBuiltTwice) {
  const std::string chunk = "c"s + Maker::kModule + "\nChunkStorageMetadata\n)\x81q\x00"s;
  const std::string state = "}(X\x07\x00\x00\x00offsets)X\x05\x00\x00\x00sizes)ub"s;
  expect_refusal(chunk + state + state + "h\x00\x86."s, Code::kMetadataCorrupt,
                 "found BUILD twice on one object");
}

TEST(DcpMetadata, RefusesDuplicateNames) {
  Maker maker;
  maker.add_usual();
  maker.add_tensor("w", maker.object(Maker::kModule, "BytesStorageMetadata"));
  expect_refusal(maker.encode(), Code::kDuplicateName, "object w: found the name twice");
}

TEST(DcpMetadata, RefusesOtherPickles) {
  Maker maker;
  expect_refusal(maker.encode(maker.document.dict()), Code::kMetadataCorrupt,
                 "expected a Metadata object of torch.distributed.checkpoint");
  const Value paddle = maker.object("paddle.distributed.flex_checkpoint", "Metadata");
  maker.document.set_attribute(paddle, "state_dict_metadata", maker.document.none());
  maker.document.set_attribute(paddle, "storage_metadata", maker.document.dict());
  EXPECT_FALSE(read("not a pickle"));
  EXPECT_FALSE(read(""));
  Maker usual;
  usual.add_usual();
  const std::string bytes = usual.encode();
  DcpMetadataOptions options;
  options.limits.bytes = bytes.size() - 1;
  const auto limited = read(bytes, options);
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, Code::kLimit);
}

TEST(DcpMetadata, RefusesNamesThatAreNoText) {
  Maker maker;
  maker.add_usual("name");
  std::string bytes = maker.encode();
  bytes.replace(bytes.find("name", bytes.find("state_dict_metadata") + 19), 4, "na\xff\xfe");
  expect_refusal(bytes, Code::kMetadataCorrupt, "found a name that is no UTF-8");
}

TEST(DcpMetadata, SetsAsideTypesThatItDoesNotKnowWhereThatIsWanted) {
  Maker maker;
  maker.add_usual("usual");
  maker.add_tensor(
      "bad", maker.tensor(maker.properties("qint8"), maker.size({4}), {maker.chunk({0}, {4})}));
  maker.add_place(maker.index("bad", maker.size({0})), maker.info("f", 0, 1));
  Defects defects(Defects::Policy::kSetAside);
  DcpMetadataOptions options;
  options.defects = &defects;
  const auto found = read(maker.encode(), options);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->catalog.tensors.size(), 1U);
  EXPECT_EQ(found->catalog.tensors.front().desc.name, "usual");
  ASSERT_EQ(defects.aside().size(), 1U);
  EXPECT_EQ(defects.aside().begin()->first, "bad");
  EXPECT_EQ(defects.aside().begin()->second.code, Code::kDtypeUnsupported);
  // Nothing else is.
  maker.add_tensor(
      "lost", maker.tensor(maker.properties("float32"), maker.size({4}), {maker.chunk({0}, {4})}));
  const auto damaged = read(maker.encode(), options);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Code::kMetadataCorrupt);
}

TEST(DcpMetadata, ControlCharactersInNamesDoNotReachTheTerminal) {
  Maker maker;
  maker.add_tensor("a\x1b[31mb", maker.tensor(maker.properties("qint8"), maker.size({4}), {}));
  const auto found = read(maker.encode());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("a\\x1b[31mb"));
}

}  // namespace
}  // namespace shardwright::testing_dcp
