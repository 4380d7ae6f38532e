// SPDX-License-Identifier: Apache-2.0
#include "format/tensors_beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/text.h"
#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using ::testing::ElementsAre;

class BesideTensors : public ::testing::Test {
 protected:
  Value tensor() { return make_torch_tensor(document_, DType::kF32, {2}, "0"); }

  Value dict(std::initializer_list<std::pair<const char*, Value>> pairs) {
    const Value made = document_.dict();
    for (const auto& [key, value] : pairs) document_.set(made, key, value);
    return made;
  }

  bool add(const char* key, Value value) {
    Allowance allowance(0);
    return beside_.add(document_.string(key), value, allowance).value();
  }

  Document document_;
  TensorsBeside beside_;
};

TEST_F(BesideTensors, AreFoundAtAnyDepth) {
  EXPECT_FALSE(add("epoch", document_.integer(3)));
  EXPECT_FALSE(add("lr_schedulers", document_.list(std::array{dict({{"lr", document_.real(1)}})})));
  EXPECT_TRUE(add("mean", tensor()));
  EXPECT_TRUE(add("rng", document_.tuple({document_.none(), dict({{"cuda", tensor()}})})));
  const Value ordered = document_.ordered_dict();
  document_.set(ordered, "w", tensor());
  EXPECT_TRUE(add("ema", ordered));
  const Value object = document_.object(document_.global("trainer", "State"));
  document_.set_attribute(object, "best", document_.list(std::array{tensor()}));
  EXPECT_TRUE(add("state", object));
  EXPECT_THAT(beside_.keys, ElementsAre("mean", "rng", "ema", "state"));
  EXPECT_FALSE(beside_.has_optimizer);
}

TEST_F(BesideTensors, OfAnOptimizerAreKnownByItsLayoutOrItsName) {
  const Value groups = document_.list(std::array{dict({{"lr", document_.real(1)}})});
  EXPECT_FALSE(add("optimizer", dict({{"state", document_.dict()}, {"param_groups", groups}})));
  EXPECT_FALSE(beside_.has_optimizer) << "it has no states";
  const Value state = dict({{"state", dict({{"0", tensor()}})}, {"param_groups", groups}});
  EXPECT_TRUE(add("adam", document_.list(std::array{state})));
  EXPECT_TRUE(beside_.has_optimizer);
  beside_ = {};
  EXPECT_TRUE(add("optimizer_states", dict({{"momentum", tensor()}})));
  EXPECT_TRUE(beside_.has_optimizer);
}

TEST_F(BesideTensors, AreNamedWhateverTheirKeyIs) {
  Allowance allowance(0);
  for (const Value key : {document_.integer(7), document_.string("a\nb"), document_.none()}) {
    EXPECT_TRUE(beside_.add(key, tensor(), allowance).value());
  }
  EXPECT_THAT(beside_.keys, ElementsAre("7", printable("a\nb"), "?"));
}

TEST_F(BesideTensors, AValueInItselfHasAnEnd) {
  const Value ring = document_.list();
  document_.append(ring, ring);
  EXPECT_FALSE(add("ring", ring));
  document_.append(ring, tensor());
  EXPECT_TRUE(add("ring", ring));
}

TEST_F(BesideTensors, MoreValuesThanAFileExpandsToAreRefused) {
  const Value many = document_.list();
  for (int i = 0; i < 1'100'000; ++i) document_.append(many, document_.list());
  Allowance allowance(0);
  const auto found = beside_.add(document_.string("many"), many, allowance);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kLimit);
}

TEST(StateBeside, NamesTheStep) {
  EXPECT_EQ(state_beside(1200),
            "the optimizer's step (1200), its parameter groups and loss scale are not written: set "
            "them in the run that loads these states");
  EXPECT_EQ(state_beside(std::nullopt),
            "the optimizer's parameter groups and loss scale are not written: set them in the run "
            "that loads these states");
}

}  // namespace
}  // namespace shardwright
