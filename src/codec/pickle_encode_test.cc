// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <filesystem>
#include <set>

#include "codec/pickle_decode.h"
#include "codec/pickle_difference.h"
#include "testing/golden_files.h"

namespace shardwright::pickle {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

constexpr std::array kProtocols = {Protocol::kTwo, Protocol::kFour};

std::string must_encode(const Document& document, Protocol protocol) {
  auto encoded = encode(document, protocol);
  EXPECT_TRUE(encoded) << encoded.error().text();
  return encoded ? *std::move(encoded) : std::string();
}

void expect_round_trip(const std::string& pickle, const std::string& what) {
  const auto first = decode(as_bytes(pickle));
  ASSERT_TRUE(first) << what << ": " << first.error().text();
  for (Protocol protocol : kProtocols) {
    const std::string encoded = must_encode(*first, protocol);
    const auto second = decode(as_bytes(encoded));
    ASSERT_TRUE(second) << what << ": " << second.error().text();
    EXPECT_EQ(difference(*first, *second), "") << what;
    EXPECT_EQ(must_encode(*second, protocol), encoded) << what;
  }
}

TEST(PickleEncode, RealPicklesSurviveARoundTrip) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path("pickle"))) {
    if (entry.path().extension() != ".pkl") continue;
    expect_round_trip(read_file(entry.path()), entry.path().filename());
    ++files;
  }
  EXPECT_GE(files, 12);
}

// Numbers of other sizes take other opcodes; what stands around them stays.
TEST(PickleEncode, GoesAroundANumber) {
  Document document;
  const Value rank = document.integer(7);
  const Value dict = document.dict();
  document.set(dict, "rank", rank);
  document.set(dict, "other", document.integer(7));
  document.set(dict, "local_rank", rank);
  document.set_root(dict);
  for (const Protocol protocol : kProtocols) {
    const std::vector<std::string> pieces = encode_around(document, rank, protocol).value();
    ASSERT_EQ(pieces.size(), 3U);
    for (const std::int64_t number : {0, 255, 256, 70000}) {
      Document other;
      const Value same = other.dict();
      other.set(same, "rank", other.integer(number));
      other.set(same, "other", other.integer(7));
      other.set(same, "local_rank", other.integer(number));
      other.set_root(same);
      const std::string text = encode_integer(number, protocol);
      EXPECT_EQ(pieces[0] + text + pieces[1] + text + pieces[2], must_encode(other, protocol));
    }
    EXPECT_EQ(encode_around(document, {}, protocol).value(),
              std::vector<std::string>{must_encode(document, protocol)});
  }
}

TEST(PickleEncode, HandMadeGraphsSurviveARoundTrip) {
  const std::vector<std::string> pickles = {
      "]q\x00h\x00"
      "a."s,  // a list in itself
      "]q\x00(h\x00"
      "h\x00"
      "h\x00"
      "h\x00tq\x01"
      "a0h\x01."s,  // a tuple in its own list
      "]q\x00h\x00\x85q\x01"
      "a0h\x01."s,  // the same with one element
      "]q\x00"
      "cf\ng\nh\x00\x85Rq\x01"
      "a0h\x01."s,                                      // a call among its arguments
      "cm\nC\n)\x81q\x00}X\x01\x00\x00\x00sh\x00sb."s,  // an object in its state
      "\x80\x05(]\x94h\x00]]t."s,                       // shared and equal lists
      "\x80\x04"
      "cm\nC\n(K\x01t}X\x01\x00\x00\x00kK\x02s\x92."s,
      "cm\nC\n)\x81(K\x01K\x02"
      "e(K\x03K\x04u}b."s,
      "ccollections\ndeque\n]N\x86R(K\x01K\x02"
      "e."s,
      "G\x7f\xf8\x00\x00\x00\x00\x00\x01."s,  // a NaN with a payload
      "G\x80\x00\x00\x00\x00\x00\x00\x00."s,  // minus zero
      "(\x82\x01\x83\x00\x01\x84\x00\x00\x01\x00t."s,
      "X\x05\x00\x00\x00storeQ."s,
      "cm\nf\n}X\x01\x00\x00\x00kK\x02sb."s,  // BUILD on a global
      "\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00z."s,
      "\x80\x04"
      "C\x00."s,
      "\x80\x04\x8f\x94(cm\nC\n)\x81}\x8c\x01kh\x00sb\x90."s,  // a set in its member's state
  };
  for (std::size_t i = 0; i < pickles.size(); ++i) {
    expect_round_trip(pickles[i], "hand-made " + std::to_string(i));
  }
}

TEST(PickleEncode, BatchesOfAThousandJoinAgain) {
  for (int count : {0, 1, 2, 999, 1000, 1001, 2000, 2500}) {
    Document document;
    const Value list = document.list();
    const Value dict = document.dict();
    const Value set = document.sequence(Kind::kSet);
    for (int i = 0; i < count; ++i) {
      document.append(list, document.integer(i * 1000));
      document.add_pair(dict, document.integer(i), document.none());
      document.append(set, document.integer(i));
    }
    document.set_root(document.tuple({list, dict, set}));
    expect_round_trip(must_encode(document, Protocol::kFour), std::to_string(count));
  }
}

// torch's weights_only reader knows these and no others.
TEST(PickleEncode, ProtocolTwoUsesOnlyWhatWeightsOnlyReads) {
  const std::set<Op> allowed = {
      Op::kProto,      Op::kGlobal,         Op::kNewObj,     Op::kReduce,    Op::kBuild,
      Op::kAppend,     Op::kAppends,        Op::kSetItem,    Op::kSetItems,  Op::kMark,
      Op::kTuple,      Op::kTuple1,         Op::kTuple2,     Op::kTuple3,    Op::kNone,
      Op::kNewFalse,   Op::kNewTrue,        Op::kEmptyTuple, Op::kEmptyList, Op::kEmptyDict,
      Op::kEmptySet,   Op::kBinInt,         Op::kBinInt1,    Op::kBinInt2,   Op::kBinFloat,
      Op::kBinUnicode, Op::kShortBinString, Op::kBinPersId,  Op::kBinGet,    Op::kLongBinGet,
      Op::kBinPut,     Op::kLongBinPut,     Op::kLong1,      Op::kStop};
  std::set<Op> seen;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path("pickle"))) {
    if (entry.path().extension() != ".pkl") continue;
    const auto document = decode(as_bytes(read_file(entry.path())));
    ASSERT_TRUE(document);
    const std::string encoded = must_encode(*document, Protocol::kTwo);
    SpanInput input(as_bytes(encoded));
    Tokenizer tokens(input, {});
    Token token;
    do {
      ASSERT_TRUE(tokens.next(token)) << tokens.error().text();
      EXPECT_TRUE(allowed.contains(token.op)) << entry.path() << static_cast<int>(token.op);
      seen.insert(token.op);
    } while (token.op != Op::kStop);
  }
  EXPECT_GT(seen.size(), 20u);
}

TEST(PickleEncode, WritesTheSmallestIntForms) {
  const std::vector<std::pair<std::int64_t, std::string>> cases = {
      {0, "K\x00"s},
      {255, "K\xff"},
      {256, "M\x00\x01"s},
      {65536, "J\x00\x00\x01\x00"s},
      {-1, "J\xff\xff\xff\xff"},
      {2147483648, "\x8a\x05\x00\x00\x00\x80\x00"s},
      {-2147483649, "\x8a\x05\xff\xff\xff\x7f\xff"s},
      {std::int64_t{1} << 47, "\x8a\x07\x00\x00\x00\x00\x00\x80\x00"s},
      {std::numeric_limits<std::int64_t>::min(), "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s},
  };
  for (const auto& [value, expected] : cases) {
    Document document;
    document.set_root(document.integer(value));
    EXPECT_EQ(must_encode(document, Protocol::kTwo), "\x80\x02" + expected + ".") << value;
  }
}

TEST(PickleEncode, BuildsANamespace) {
  Document document;
  const Value args = document.object(document.global("argparse", "Namespace"));
  document.set_attribute(args, "num_layers", document.integer(4));
  document.set_attribute(args, "swiglu", document.boolean(true));
  const Value root = document.dict();
  document.set(root, "args", args);
  document.set(root, "checkpoint_version", document.real(3.0));
  const Value extents = document.tuple({document.integer(2), document.integer(3)});
  document.set(root, "size",
               document.reduce(document.global("torch", "Size"), document.tuple({extents})));
  document.set_root(root);
  const auto read = decode(as_bytes(must_encode(document, Protocol::kTwo)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->root().find("args").attribute("num_layers").as_int(), 4);
  EXPECT_EQ(read->root().find("checkpoint_version").as_double(), 3.0);
  EXPECT_EQ(read->root().find("size").args()[0][1].as_int(), 3);
}

TEST(PickleEncode, EditsOfARealPickleTouchNothingElse) {
  auto document = decode(as_bytes(read_golden("pickle/common_mcore_0.16.1.pkl")));
  ASSERT_TRUE(document);
  const Value args = document->root().find("args");
  ASSERT_TRUE(args.is(Kind::kObject));
  const auto count = args.state().size();
  document->set_attribute(args, "tensor_model_parallel_size", document->integer(8));
  auto read = decode(as_bytes(must_encode(*document, Protocol::kTwo)));
  ASSERT_TRUE(read);
  const Value changed = read->root().find("args");
  EXPECT_EQ(changed.attribute("tensor_model_parallel_size").as_int(), 8);
  EXPECT_EQ(changed.state().size(), count);
  read->set_attribute(changed, "tensor_model_parallel_size", read->integer(1));
  const auto original = decode(as_bytes(read_golden("pickle/common_mcore_0.16.1.pkl")));
  EXPECT_EQ(difference(*original, *read), "");
  EXPECT_TRUE(document->erase(args.state(), "tensor_model_parallel_size"));
  EXPECT_FALSE(document->erase(args.state(), "tensor_model_parallel_size"));
  EXPECT_EQ(args.state().size(), count - 1);
}

TEST(PickleEncode, RefusesWhatProtocolTwoCannotSay) {
  Document document;
  document.set_root(document.global("a\nb", "c"));
  const auto broken = encode(document, Protocol::kTwo);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kPickleUnsupported);
  EXPECT_TRUE(encode(document, Protocol::kFour));
  document.set_root(document.big_integer(std::string(299, '\x01')));
  const auto wide = encode(document, Protocol::kTwo);
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message, HasSubstr("int of 299 bytes"));
  expect_round_trip(must_encode(document, Protocol::kFour).substr(0, 2) + "K\x01."s, "small");
}

TEST(PickleEncode, NestingCostsNoCallStack) {
  Document document;
  Value deep = document.list();
  for (int i = 0; i < 500'000; ++i) {
    const Value outer = i % 2 == 0 ? document.tuple({deep}) : document.list({&deep, 1});
    deep = outer;
  }
  document.set_root(deep);
  Limits limits;
  const std::string encoded = must_encode(document, Protocol::kFour);
  const auto read = decode(as_bytes(encoded), limits);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(difference(document, *read), "");
}

TEST(PickleEncode, WritesNothingThatItWouldNotRead) {
  const auto nested = [](int depth) {
    Document document;
    Value deep = document.none();
    for (int i = 0; i < depth; ++i) {
      const std::array<Value, 2> pair = {document.none(), deep};
      deep = document.list(pair);
    }
    document.set_root(deep);
    return encode(document, Protocol::kFour);
  };
  const auto fine = nested(1000);
  ASSERT_TRUE(fine) << fine.error().text();
  EXPECT_TRUE(decode(as_bytes(*fine)));
  const auto deep = nested(1001);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, Code::kLimit);
}

// Each list holds the outermost tuple, so that it is entered again within itself: a graph that only
// a hand can make. It must not cost memory or time out of proportion.
TEST(PickleEncode, EntangledGraphsAreLimited) {
  Document document;
  std::vector<Value> lists;
  for (int i = 0; i < 2000; ++i) lists.push_back(document.list());
  const Value tuple = document.tuple(lists);
  for (Value list : lists) document.append(list, tuple);
  document.set_root(tuple);
  const auto encoded = encode(document, Protocol::kFour);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().code, Code::kLimit);
}

// Arbitrary graphs: nodes refer to any node made before them, lists also to later ones.
RC_GTEST_PROP(PickleEncode, AnyGraphSurvivesARoundTrip, ()) {
  Document document;
  std::vector<Value> made = {document.none()};
  const auto pick = [&] { return made[*rc::gen::inRange<std::size_t>(0, made.size())]; };
  const int count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    switch (*rc::gen::inRange(0, 10)) {
      case 0:
        made.push_back(document.integer(*rc::gen::arbitrary<std::int64_t>()));
        break;
      case 1:
        made.push_back(document.real(*rc::gen::arbitrary<double>()));
        break;
      case 2:
        made.push_back(document.string(std::to_string(i % 7)));
        break;
      case 3:
        made.push_back(document.bytes(*rc::gen::arbitrary<std::string>()));
        break;
      case 4:
        made.push_back(document.list());
        break;
      case 5:
        made.push_back(document.tuple({pick(), pick()}));
        break;
      case 6:
        made.push_back(document.dict());
        break;
      case 7:
        made.push_back(document.reduce(document.global("m", "f"), document.tuple({pick()})));
        break;
      case 8:
        made.push_back(document.object(document.global("m", "C")));
        break;
      default: {
        const std::array<Value, 4> four = {pick(), pick(), pick(), pick()};
        made.push_back(document.tuple(four));
      }
    }
  }
  for (Value node : made) {
    if (node.is(Kind::kList)) document.append(node, pick());
    if (node.is(Kind::kObject)) document.set_state(node, pick());
    if (node.is(Kind::kDict)) document.add_pair(node, document.string("k"), pick());
  }
  document.set_root(pick());
  for (Protocol protocol : kProtocols) {
    const auto encoded = encode(document, protocol);
    RC_ASSERT(encoded.has_value());
    const auto read = decode(as_bytes(*encoded));
    RC_ASSERT(read.has_value());
    RC_ASSERT(difference(document, *read) == "");
  }
}

}  // namespace
}  // namespace shardwright::pickle
