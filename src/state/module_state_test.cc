// SPDX-License-Identifier: Apache-2.0
#include "state/module_state.h"

#include <gtest/gtest.h>

#include "codec/pickle_decode.h"
#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

using namespace std::literals;
using pickle::Document;
using pickle::Value;

// As pickle.dumps(io.BytesIO(...)) writes it, by protocols 2 and 4.
TEST(ModuleState, OfAStreamIsItsBytes) {
  const auto holds = [](std::string_view bytes) {
    const Document document = pickle::decode(std::as_bytes(std::span(bytes))).value();
    return holds_module_state(document.root());
  };
  EXPECT_TRUE(
      holds("\x80\x02"
            "c_io\nBytesIO\nq\0)\x81q\x01"
            "c_codecs\nencode\nq\x02X\x02\0\0\0abq\x03X\x06\0\0\0latin1q\x04\x86q\x05Rq\x06"
            "K\0N\x87q\x07"
            "b."sv));
  EXPECT_FALSE(
      holds("\x80\x02"
            "c_io\nBytesIO\nq\0)\x81q\x01"
            "c__builtin__\nbytes\nq\x02)Rq\x03K\0N\x87q\x04"
            "b."sv));
  EXPECT_TRUE(
      holds("\x80\x04\x8c\x03_io\x94\x8c\x07"
            "BytesIO\x94\x93\x94)\x81\x94"
            "C\x02"
            "ab\x94K\0N\x87\x94"
            "b."sv));
  EXPECT_FALSE(
      holds("\x80\x04\x8c\x03_io\x94\x8c\x07"
            "BytesIO\x94\x93\x94)\x81\x94"
            "C\0\x94K\0N\x87\x94"
            "b."sv));
}

TEST(ModuleState, OfATensorIsItsElements) {
  Document document;
  const Value none = document.none();
  const Value empty = make_torch_tensor(document, DType::kU8, {0}, "0");
  const Value full = make_torch_tensor(document, DType::kU8, {9}, "1");
  for (const Value value : {none, empty, Value(), document.string("text")}) {
    EXPECT_FALSE(holds_module_state(value));
  }
  EXPECT_TRUE(holds_module_state(full));
  EXPECT_TRUE(holds_module_state(document.list(std::array{full})));
  EXPECT_FALSE(holds_module_state(document.list(std::array{empty})));
  EXPECT_FALSE(holds_module_state(document.list()));
  // A list may lie in itself: one is looked into.
  const Value inner = document.list(std::array{full});
  EXPECT_FALSE(holds_module_state(document.list(std::array{inner})));
}

}  // namespace
}  // namespace shardwright
