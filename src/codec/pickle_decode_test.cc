// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codec/pickle_difference.h"
#include "testing/golden_files.h"

namespace shardwright::pickle {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

Result<Document> decode_text(const std::string& pickle, const Limits& limits = {}) {
  return decode(as_bytes(pickle), limits);
}

TEST(PickleDecode, ReadsEveryScalarForm) {
  struct Case {
    std::string pickle;
    std::int64_t expected;
  };
  const std::vector<Case> cases = {
      {"K\x07."s, 7},
      {"M\x01\x02."s, 513},
      {"J\xff\xff\xff\xff."s, -1},
      {"\x8a\x00."s, 0},
      {"\x8a\x01\xff."s, -1},
      {"\x8a\x05\x00\x00\x00\x80\x00."s, 2147483648},
      {"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s, std::numeric_limits<std::int64_t>::min()},
      {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00."s, std::numeric_limits<std::int64_t>::max()},
      {"\x8b\x02\x00\x00\x00\xfe\xff."s, -2},
      {"I42\n."s, 42},
      {"I-9223372036854775808\n."s, std::numeric_limits<std::int64_t>::min()},
      {"L-7L\n."s, -7},
  };
  for (const Case& c : cases) {
    const auto document = decode_text(c.pickle);
    ASSERT_TRUE(document) << document.error().text();
    EXPECT_EQ(document->root().kind(), Kind::kInt);
    EXPECT_EQ(document->root().as_int(), c.expected) << c.pickle;
  }
  EXPECT_EQ(decode_text("I000\n.")->root().as_int(), 0);
  for (const char* number : {"I007\n.", "I-01\n.", "I010\n.", "L007L\n."}) {
    ASSERT_FALSE(decode_text(number)) << number;
    EXPECT_EQ(decode_text(number).error().code, Code::kPickleCorrupt);
  }
  EXPECT_EQ(decode_text("I01\n.")->root().as_bool(), true);
  EXPECT_EQ(decode_text("\x88.")->root().as_bool(), true);
  EXPECT_EQ(decode_text("\x89.")->root().as_bool(), false);
  EXPECT_TRUE(decode_text("N.")->root().is_none());
  EXPECT_EQ(decode_text("G\x3f\xf8\x00\x00\x00\x00\x00\x00."s)->root().as_double(), 1.5);
  EXPECT_EQ(decode_text("F-0.25\n.")->root().as_double(), -0.25);
}

TEST(PickleDecode, KeepsIntsBeyondInt64AsBytes) {
  const auto magic = decode_text("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s);
  ASSERT_TRUE(magic);
  EXPECT_EQ(magic->root().kind(), Kind::kBigInt);
  EXPECT_EQ(magic->root().text(), "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
  const auto above = decode_text("L9223372036854775808L\n.");
  ASSERT_TRUE(above);
  EXPECT_EQ(above->root().text(), "\x00\x00\x00\x00\x00\x00\x00\x80\x00"s);
  const auto below = decode_text("L-9223372036854775809L\n.");
  ASSERT_TRUE(below);
  EXPECT_EQ(below->root().text(), "\xff\xff\xff\xff\xff\xff\xff\x7f\xff"s);
}

TEST(PickleDecode, ReadsEveryTextForm) {
  struct Case {
    std::string pickle;
    Kind kind;
    std::string text;
  };
  const std::vector<Case> cases = {
      {"\x8c\x02hi."s, Kind::kString, "hi"},
      {"X\x02\x00\x00\x00hi."s, Kind::kString, "hi"},
      {"\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."s, Kind::kString, "hi"},
      {"\x8c\x03\xed\xa0\x80."s, Kind::kString, "\xed\xa0\x80"},
      {"V\\u4e2d\\U0001f600\xe9\n."s, Kind::kString, "中😀é"},
      {"S'a\\n\\x41\\101\\''\n."s, Kind::kString, "a\nAA'"},
      {"S\"\\xff\"\n."s, Kind::kBytes, "\xff"},
      {"U\x01\xff."s, Kind::kBytes, "\xff"},
      {"T\x01\x00\x00\x00z."s, Kind::kString, "z"},
      {"C\x02\x00\x01."s, Kind::kBytes, "\x00\x01"s},
      {"B\x01\x00\x00\x00z."s, Kind::kBytes, "z"},
      {"\x8e\x01\x00\x00\x00\x00\x00\x00\x00z."s, Kind::kBytes, "z"},
      {"\x96\x01\x00\x00\x00\x00\x00\x00\x00z."s, Kind::kByteArray, "z"},
  };
  for (const Case& c : cases) {
    const auto document = decode_text(c.pickle);
    ASSERT_TRUE(document) << document.error().text();
    EXPECT_EQ(document->root().kind(), c.kind);
    EXPECT_EQ(document->root().text(), c.text);
  }
}

TEST(PickleDecode, ReadsContainersOfEveryProtocol) {
  for (const std::string& pickle : {"(lp0\nI1\naI2\na."s,
                                    "](K\x01K\x02"
                                    "e."s,
                                    "(K\x01K\x02l."s,
                                    "\x80\x04]\x94(K\x01K\x02"
                                    "e."s}) {
    const auto document = decode_text(pickle);
    ASSERT_TRUE(document) << document.error().text();
    ASSERT_EQ(document->root().size(), 2u);
    EXPECT_EQ(document->root().kind(), Kind::kList);
    EXPECT_EQ(document->root()[1].as_int(), 2);
  }
  for (const std::string& pickle : {"(dp0\nVa\nI1\ns."s,
                                    "}\x8c\x01"
                                    "aK\x01s."s,
                                    "}(\x8c\x01"
                                    "aK\x01u."s,
                                    "(\x8c\x01"
                                    "aK\x01"
                                    "d."s}) {
    const auto document = decode_text(pickle);
    ASSERT_TRUE(document) << document.error().text();
    ASSERT_EQ(document->root().size(), 1u);
    EXPECT_EQ(document->root().find("a").as_int(), 1);
  }
}

TEST(PickleDecode, SetsAreSetsInEveryProtocol) {
  for (const std::string& pickle : {"\x80\x04\x8f\x94(K\x01K\x02\x90."s,
                                    "\x80\x02"
                                    "c__builtin__\nset\n](K\x01K\x02"
                                    "e\x85R."s,
                                    "\x80\x03"
                                    "cbuiltins\nset\n](K\x01K\x02"
                                    "e\x85R."s}) {
    const auto document = decode_text(pickle);
    ASSERT_TRUE(document) << document.error().text();
    EXPECT_EQ(document->root().kind(), Kind::kSet);
    EXPECT_EQ(document->root().size(), 2u);
  }
  EXPECT_EQ(decode_text("\x80\x04(K\x01\x91."s)->root().kind(), Kind::kFrozenSet);
}

TEST(PickleDecode, BytesThatProtocolTwoSpellsAsCallsAreBytes) {
  const auto bytes = decode_text(
      "\x80\x02"
      "c_codecs\nencode\nX\x03\x00\x00\x00\xc3\xbf\x01X\x06\x00\x00\x00latin1\x86R."s);
  ASSERT_TRUE(bytes) << bytes.error().text();
  EXPECT_EQ(bytes->root().as_bytes(), "\xff\x01"s);
  // Text beyond Latin-1 is no such spelling: the call is kept.
  const auto kept = decode_text(
      "\x80\x02"
      "c_codecs\nencode\nX\x03\x00\x00\x00\xe4\xb8\xadX\x06\x00\x00\x00latin1\x86R."s);
  EXPECT_EQ(kept->root().kind(), Kind::kReduce);
  EXPECT_EQ(decode_text("\x80\x02"
                        "c__builtin__\nbytearray\n)R."s)
                ->root()
                .kind(),
            Kind::kByteArray);
}

TEST(PickleDecode, MapsPythonTwoNamesOnlyInOldProtocols) {
  const auto old = decode_text(
      "\x80\x02"
      "c__builtin__\nlong\n."s);
  EXPECT_TRUE(old->root().is_global("builtins", "int"));
  const auto attribute = decode_text(
      "\x80\x02"
      "ccopy_reg\n_reconstructor\n."s);
  EXPECT_TRUE(attribute->root().is_global("copyreg", "_reconstructor"));
  const auto newer = decode_text(
      "\x80\x03"
      "c__builtin__\nlong\n."s);
  EXPECT_TRUE(newer->root().is_global("__builtin__", "long"));
}

TEST(PickleDecode, RecordsObjectsWithoutMakingThem) {
  const auto document = decode_text(
      "\x80\x02"
      "cargparse\nNamespace\nq\x00)\x81}(X\x0a\x00\x00\x00num_layersK\x04X\x04\x00\x00\x00nameN"
      "ub."s);
  ASSERT_TRUE(document) << document.error().text();
  const Value root = document->root();
  EXPECT_EQ(root.kind(), Kind::kObject);
  EXPECT_TRUE(root.callable().is_global("argparse", "Namespace"));
  EXPECT_EQ(root.attribute("num_layers").as_int(), 4);
  EXPECT_TRUE(root.attribute("name").is_none());
  EXPECT_FALSE(root.attribute("absent"));
}

TEST(PickleDecode, FindsAttributesInSlotState) {
  const auto document = decode_text(
      "\x80\x02"
      "cm\nC\n)\x81}X\x01\x00\x00\x00"
      "aK\x01s}X\x01\x00\x00\x00"
      "bK\x02s\x86"
      "b."s);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->root().attribute("a").as_int(), 1);
  EXPECT_EQ(document->root().attribute("b").as_int(), 2);
}

TEST(PickleDecode, RecordsItemsOfCalls) {
  const auto document = decode_text(
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00kK\x01X\x01\x00\x00\x00kK\x02u."s);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->root().kind(), Kind::kReduce);
  EXPECT_EQ(document->root().items().size(), 2u);
  EXPECT_EQ(document->root().find("k").as_int(), 2) << "the last of two equal keys counts";
}

TEST(PickleDecode, KeepsSharingAndCycles) {
  const auto cycle = decode_text(
      "]q\x00h\x00"
      "a."s);
  ASSERT_TRUE(cycle);
  EXPECT_EQ(cycle->root()[0], cycle->root());
  const auto shared = decode_text(
      "](]\x94h\x00"
      "e."s);
  ASSERT_TRUE(shared) << shared.error().text();
  EXPECT_EQ(shared->root()[0], shared->root()[1]);
  const auto apart = decode_text("](]]e."s);
  EXPECT_NE(apart->root()[0], apart->root()[1]);
}

TEST(PickleDecode, PrefixTellsWhereThePickleEnds) {
  const std::string two = "K\x01.K\x02."s;
  const auto first = decode_prefix(as_bytes(two));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->consumed, 3u);
  EXPECT_EQ(first->document.root().as_int(), 1);
  const auto refused = decode(as_bytes(two));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kPickleCorrupt);
  EXPECT_THAT(refused.error().message, HasSubstr("pickle@3: found 3 bytes behind STOP"));
}

TEST(PickleDecode, LegacyTorchFileIsFivePicklesAndThenData) {
  const std::string file = read_golden("pickle/legacy_containers_torch_2.13.bin");
  std::span<const std::byte> rest = as_bytes(file);
  std::vector<Document> documents;
  for (int i = 0; i < 5; ++i) {
    auto prefix = decode_prefix(rest);
    ASSERT_TRUE(prefix) << prefix.error().text();
    rest = rest.subspan(static_cast<std::size_t>(prefix->consumed));
    documents.push_back(std::move(prefix->document));
  }
  EXPECT_EQ(documents[0].root().kind(), Kind::kBigInt);
  EXPECT_EQ(documents[1].root().as_int(), 1001);
  EXPECT_EQ(documents[2].root().find("little_endian").as_bool(), true);
  EXPECT_EQ(documents[4].root().kind(), Kind::kList);
}

struct Malformed {
  const char* what;
  std::string pickle;
  Code code;
  const char* fragment;
};

TEST(PickleDecode, RefusesMalformedStreams) {
  const std::vector<Malformed> cases = {
      {"empty", "", Code::kPickleCorrupt, "found the end of the input at 0"},
      {"no STOP", "K\x01", Code::kPickleCorrupt, "pickle@0: found the end of the input at 2"},
      {"unknown opcode", "\xff.", Code::kPickleCorrupt, "found byte 0xff, expected an opcode"},
      {"underflow", "\x80\x02\x86.", Code::kPickleCorrupt, "found an empty stack"},
      {"tuple across a mark", "K\x01(K\x02\x86.", Code::kPickleCorrupt, "empty stack"},
      {"no mark", "K\x01t.", Code::kPickleCorrupt, "no MARK on the stack"},
      {"leftovers", "K\x01K\x02.", Code::kPickleCorrupt, "found 2 values at STOP"},
      {"open mark", "(K\x01.", Code::kPickleCorrupt, "values at STOP"},
      {"protocol 6", "\x80\x06N.", Code::kPickleUnsupported, "found protocol 6"},
      {"second PROTO", "\x80\x02\x80\x02N.", Code::kPickleCorrupt, "PROTO inside"},
      {"PUT twice", "]q\x00]q\x00"s + "00N.", Code::kPickleCorrupt, "memo slot 0 set twice"},
      {"far PUT", "Nr\xf0\xff\xff\xff.", Code::kLimit, "found memo slot 4294967280"},
      {"text PUT", "Np99999999999\n.", Code::kPickleCorrupt, "no 32-bit decimal number"},
      {"unset GET", "h\x09.", Code::kPickleCorrupt, "memo slot 9, which was never set"},
      {"PUT on nothing", "q\x01.", Code::kPickleCorrupt, "empty stack"},
      {"frame too long", "\x95\xff\x00\x00\x00\x00\x00\x00\x00N."s, Code::kPickleCorrupt,
       "found a frame of 255 bytes"},
      {"frame in frame",
       "\x95\x0a\x00\x00\x00\x00\x00\x00\x00\x95\x01\x00\x00\x00\x00\x00\x00\x00N."s,
       Code::kPickleCorrupt, "frame inside a frame"},
      {"opcode across frame end", "\x95\x01\x00\x00\x00\x00\x00\x00\x00K\x01."s,
       Code::kPickleCorrupt, "crosses the end of its frame"},
      {"odd items", "}(K\x01u.", Code::kPickleCorrupt, "a key without a value"},
      {"items on a list", "]K\x01K\x02s.", Code::kPickleType, "found SETITEMS of list"},
      {"append to a dict",
       "}K\x01"
       "a.",
       Code::kPickleType, "found an append of dict"},
      {"additems on a list", "](K\x01\x90.", Code::kPickleType, "expected a set"},
      {"list as key", "}]K\x01s.", Code::kPickleType, "something that can be hashed"},
      {"list in a set", "\x8f(]\x90.", Code::kPickleType, "found a set's member of list"},
      {"tuple with a list as key", "}(K\x01]tK\x01s.", Code::kPickleType,
       "something that can be hashed"},
      {"list far inside a key", "}]\x85\x85\x94\x85K\x01s.", Code::kPickleType,
       "something that can be hashed"},
      {"tuple with a dict in a set", "\x8f(}\x85\x90.", Code::kPickleType,
       "something that can be hashed"},
      {"dict in a frozenset", "(}\x91.", Code::kPickleType, "something that can be hashed"},
      {"args not a tuple", "cos\nsystem\n]R.", Code::kPickleType, "found arguments of list"},
      {"call of an int", "K\x01)R.", Code::kPickleType, "found a call of int"},
      {"instance of a string", "\x8c\x01x)\x81.", Code::kPickleType, "expected a class"},
      {"global from ints", "K\x01K\x02\x93.", Code::kPickleType, "expected a string"},
      {"BUILD on None", "N}b.", Code::kPickleType, "found BUILD of None"},
      {"BUILD on a list", "]}b.", Code::kPickleType, "found BUILD of list"},
      {"BUILD on a dict", "}}b.", Code::kPickleType, "found BUILD of dict"},
      {"BUILD on a set", "\x8f}b.", Code::kPickleType, "found BUILD of set"},
      {"BUILD twice", "cm\nC\n)\x81}b}b.", Code::kPickleUnsupported, "BUILD twice"},
      {"items behind BUILD", "cm\nC\n)\x81}bK\x01K\x02s.", Code::kPickleUnsupported,
       "SETITEMS behind BUILD"},
      {"bad UTF-8", "X\x02\x00\x00\x00\xff\xfe."s, Code::kPickleCorrupt, "no UTF-8"},
      {"overlong UTF-8", "\x8c\x02\xc0\xaf.", Code::kPickleCorrupt, "no UTF-8"},
      {"long length", "\x8b\xff\xff\xff\x7f.", Code::kPickleCorrupt,
       "found a length of 2147483647"},
      {"negative length", "\x8b\xff\xff\xff\xff.", Code::kPickleCorrupt, "negative length"},
      {"length 2^63", "\x8e\x00\x00\x00\x00\x00\x00\x00\x80."s, Code::kPickleCorrupt,
       "found a length of 9223372036854775808"},
      {"no number", "Ix1\n.", Code::kPickleCorrupt, "not a number"},
      {"extension 0", "\x82\x00."s, Code::kPickleCorrupt, "extension code below 1"},
      {"out-of-band buffer", "\x80\x05\x97.", Code::kPickleUnsupported, "out-of-band"},
      {"kwargs not a dict", "cm\nC\n)N\x92.", Code::kPickleType, "keyword arguments of None"},
  };
  for (const Malformed& c : cases) {
    const auto document = decode_text(c.pickle);
    ASSERT_FALSE(document) << c.what;
    EXPECT_EQ(document.error().code, c.code) << c.what << ": " << document.error().text();
    EXPECT_THAT(document.error().message, HasSubstr(c.fragment)) << c.what;
  }
}

TEST(PickleDecode, HonoursLimits) {
  const auto refuses = [](const std::string& pickle, const Limits& limits) {
    const auto document = decode_text(pickle, limits);
    return !document && document.error().code == Code::kLimit;
  };
  EXPECT_TRUE(refuses("(((N", {.marks = 2}));
  EXPECT_FALSE(refuses("((N", {.marks = 2}));
  EXPECT_TRUE(refuses("NNN", {.stack = 2}));
  EXPECT_TRUE(refuses("N0N0N0N.", {.opcodes = 5}));
  EXPECT_TRUE(decode_text("N0N0N.", {.opcodes = 6}));
  EXPECT_TRUE(refuses("\x8c\x05hello.", {.string_bytes = 4}));
  EXPECT_TRUE(decode_text("\x8c\x05hello.", {.string_bytes = 5}));
  EXPECT_TRUE(refuses("N0N0N0N0N0N.", {.bytes = 8}));
  EXPECT_TRUE(decode_text("N0N0N0N.", {.bytes = 8}));
  EXPECT_TRUE(refuses("N\x94\x94\x94.", {.memo = 2}));
  EXPECT_TRUE(decode_text("N\x94\x94.", {.memo = 2}));
}

TEST(PickleDecode, NestingCostsNoCallStack) {
  const std::size_t depth = 2'000'000;
  std::string tuples = ")" + std::string(depth, '\x85') + ".";
  const auto document = decode_text(tuples);
  ASSERT_TRUE(document) << document.error().text();
  std::string lists = std::string(depth, ']') + std::string(depth - 1, 'a') + ".";
  EXPECT_TRUE(decode_text(lists));
}

// One operand named a million times must not be copied a million times.
TEST(PickleDecode, CopiesOfSharedOperandsAreBounded) {
  std::string pickle =
      "\x80\x03"
      "cbuiltins\nset\nq\x00"
      "0]("s +
      std::string(100'000, 'N') +
      "eq\x01"
      "0("s;
  for (int i = 0; i < 100'000; ++i) pickle += "h\x00h\x01\x85R"s;
  pickle += "l.";
  const auto document = decode_text(pickle);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->root()[0].kind(), Kind::kSet);
  EXPECT_EQ(document->root()[99'999].kind(), Kind::kReduce);
}

TEST(PickleDecode, HostileFilesAreInertOrRefused) {
  int files = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path("malicious/pickle"))) {
    const std::string pickle = read_file(entry.path());
    const auto document = decode_text(pickle);
    ++files;
    refused += document ? 0 : 1;
  }
  EXPECT_EQ(files, 49);
  EXPECT_EQ(refused, 20);
}

TEST(PickleDecode, HostileFilesRefusedForTheRightReason) {
  const std::vector<std::pair<const char*, Code>> cases = {
      {"14c_many_marks", Code::kLimit},
      {"15_long4_huge", Code::kPickleCorrupt},
      {"15b_long4_negative", Code::kPickleCorrupt},
      {"16_binunicode8_2e60", Code::kPickleCorrupt},
      {"16b_bytearray8_2e33", Code::kPickleCorrupt},
      {"16c_binbytes8_2e63", Code::kPickleCorrupt},
      {"17_long_text_digits", Code::kPickleCorrupt},
      {"18_memo_overwrite", Code::kPickleCorrupt},
      {"18b_long_binput_index", Code::kLimit},
      {"18c_get_unset", Code::kPickleCorrupt},
      {"19_frame_huge", Code::kPickleCorrupt},
      {"20_no_stop", Code::kPickleCorrupt},
      {"20b_trailing_second_pickle", Code::kPickleCorrupt},
      {"20c_empty_stack", Code::kPickleCorrupt},
      {"20d_stack_global_nonstr", Code::kPickleType},
      {"20e_setitems_on_list", Code::kPickleType},
      {"20f_reduce_args_not_tuple", Code::kPickleType},
      {"20g_bad_proto", Code::kPickleUnsupported},
      {"20h_unhashable_key", Code::kPickleType},
      {"20i_bad_utf8", Code::kPickleCorrupt},
  };
  for (const auto& [name, code] : cases) {
    const auto document =
        decode_text(read_golden(std::string("malicious/pickle/") + name + ".pkl"));
    ASSERT_FALSE(document) << name;
    EXPECT_EQ(document.error().code, code) << name << ": " << document.error().text();
  }
}

}  // namespace
}  // namespace shardwright::pickle
