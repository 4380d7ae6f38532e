// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dcp/fsdp_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr const char* kTheMatrix = "decoder.layers.0.mlp.linear_fc1.weight";
constexpr const char* kTheNorm = "decoder.final_layernorm.weight";
const std::string kStatesOf = "optimizer.state.module.module.module.";
const std::string kSettingsOf = "optimizer.param_to_group_meta.module.module.module.";

// A checkpoint of a matrix and a norm, in this order.
class TorchDcpNames : public testing::Test {
 protected:
  TorchDcpNames() {
    add_tensor("model." + std::string(kTheNorm), DType::kBF16, {4});
    add_tensor("model." + std::string(kTheMatrix), DType::kBF16, {2, 4});
  }

  void add_tensor(const std::string& name, DType dtype, const Dims& shape) {
    catalog_.tensors.push_back({{name, dtype, shape}, ChunkList(shape.size()), Encoding::kRaw});
  }

  void add_object(const std::string& name, pickle::Value value) {
    const std::string pickled = pickle::encode(document_, value, pickle::Protocol::kTwo).value();
    const std::string bytes = encode_torch_object(pickled).value();
    catalog_.objects.push_back({name, 0, {bytes_.size(), bytes.size()}});
    bytes_ += bytes;
  }

  pickle::Value list_of(pickle::Value value) { return document_.list(std::span(&value, 1)); }

  // As two groups: one with weight decay, one without.
  void add_groups() {
    for (const int group : {0, 1}) {
      const std::string prefix = "optimizer.optimizer.param_groups." + std::to_string(group) + ".";
      add_object(prefix + "wd_mult", document_.real(group == 0 ? 1.0 : 0.0));
      add_object(prefix + "params", list_of(document_.integer(group)));
    }
  }

  void add_states(const std::string& number, const Dims& shape) {
    const std::string prefix = "optimizer.optimizer.state." + number + ".";
    add_tensor(prefix + "exp_avg", DType::kF32, shape);
    add_tensor(prefix + "exp_avg_sq", DType::kF32, shape);
    add_tensor(prefix + "step", DType::kF32, {});
  }

  FsdpNames names() {
    memory_.put("a", bytes_);
    catalog_.files = {"a"};
    files_ = std::make_unique<SourceFiles>(memory_, catalog_.files, 4);
    return FsdpNames::find(catalog_, *files_);
  }

  static std::vector<std::string> listed(const Catalog& catalog) {
    std::vector<std::string> listed;
    for (const StoredTensor& tensor : catalog.tensors) listed.push_back(tensor.desc.name);
    for (const StoredObject& object : catalog.objects) listed.push_back(object.name);
    return listed;
  }

  std::string refusal() {
    const FsdpNames found = names();
    EXPECT_TRUE(found.unknown_states());
    if (!found.unknown_states()) return {};
    EXPECT_EQ(found.unknown_states()->code, Code::kOptimizerUnsupported);
    EXPECT_THAT(listed(found.apply(catalog_)),
                ElementsAre("model.module." + std::string(kTheNorm),
                            "model.module." + std::string(kTheMatrix)))
        << "states of nobody stay out";
    return found.unknown_states()->message;
  }

  pickle::Document document_;
  Catalog catalog_;

 private:
  MemoryDirectory memory_;
  std::string bytes_;
  std::unique_ptr<SourceFiles> files_;
};

// The group of matrices comes first, whatever the model's order.
TEST_F(TorchDcpNames, OfNumbersFollowFromTheGroups) {
  add_groups();
  add_states("0", {2, 4});
  add_states("1", {4});
  add_tensor("optimizer.fp32_from_fp16_params.0.0", DType::kF32, {2, 4});
  add_tensor("optimizer.fp32_from_fp16_params.1.0", DType::kF32, {4});
  const FsdpNames found = names();
  ASSERT_FALSE(found.unknown_states()) << found.unknown_states()->message;
  const Catalog named = found.apply(catalog_);
  std::vector<std::string> expected;
  for (const std::string& parameter : {std::string(kTheMatrix), std::string(kTheNorm)}) {
    expected.push_back("model.module." + parameter);
    for (const char* state : {".exp_avg", ".exp_avg_sq", ".step", ".param"}) {
      expected.push_back(kStatesOf + parameter + state);
    }
    expected.push_back(kSettingsOf + parameter + ".wd_mult");
  }
  EXPECT_THAT(listed(named), testing::UnorderedElementsAreArray(expected));
  for (const StoredTensor& tensor : named.tensors) {
    if (!tensor.desc.name.ends_with(".param")) continue;
    EXPECT_EQ(tensor.desc.shape.size(), tensor.desc.name.contains(kTheNorm) ? 1 : 2);
  }
  EXPECT_TRUE(FsdpNames::has_numbers(catalog_));
  EXPECT_TRUE(found.check_masters(named));
}

TEST_F(TorchDcpNames, ThatAreStoredNeedNoRule) {
  const std::string prefix = "optimizer.state." + std::string(kTheMatrix);
  for (const char* state : {".exp_avg", ".exp_avg_sq", ".momentum_buffer", ".step"}) {
    add_tensor(prefix + state, DType::kF32, {2, 4});
  }
  add_object("optimizer.param_groups.0.lr", document_.real(0.5));
  add_object("optimizer.param_groups.0.params",
             list_of(document_.string("module." + std::string(kTheMatrix))));
  const FsdpNames found = names();
  ASSERT_FALSE(found.unknown_states()) << found.unknown_states()->message;
  EXPECT_FALSE(FsdpNames::has_numbers(catalog_));
  const Catalog named = found.apply(catalog_);
  EXPECT_THAT(
      listed(named),
      IsSupersetOf({kStatesOf + kTheMatrix + ".exp_avg", kStatesOf + kTheMatrix + ".exp_avg_sq",
                    kStatesOf + kTheMatrix + ".momentum_buffer", kStatesOf + kTheMatrix + ".step",
                    kSettingsOf + kTheMatrix + ".lr"}));
  EXPECT_TRUE(found.check_masters(named)) << "weights that names are given of may be main weights";
}

// torch keeps a group's step in the group where its Adam is fused.
TEST_F(TorchDcpNames, AStepOfAGroupIsOneOfEachOfItsParameters) {
  add_groups();
  add_tensor("optimizer.optimizer.param_groups.1.step", DType::kF32, {});
  const FsdpNames found = names();
  ASSERT_FALSE(found.unknown_states()) << found.unknown_states()->message;
  EXPECT_THAT(listed(found.apply(catalog_)),
              testing::AllOf(testing::Contains(kStatesOf + kTheNorm + ".step"),
                             Not(testing::Contains(kStatesOf + kTheMatrix + ".step"))));
}

TEST_F(TorchDcpNames, AMasterWeightMayNotBeMissing) {
  add_groups();
  add_states("0", {2, 4});
  add_states("1", {4});
  add_tensor("optimizer.fp32_from_fp16_params.1.0", DType::kF32, {4});
  const FsdpNames found = names();
  ASSERT_FALSE(found.unknown_states()) << found.unknown_states()->message;
  const Status refused = found.check_masters(found.apply(catalog_));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr(kTheMatrix));
}

// Of float32 weights there is none apart.
TEST_F(TorchDcpNames, AFloatWeightHasNoMasterApart) {
  for (StoredTensor& tensor : catalog_.tensors) tensor.desc.dtype = DType::kF32;
  add_groups();
  add_states("0", {2, 4});
  const FsdpNames found = names();
  ASSERT_FALSE(found.unknown_states()) << found.unknown_states()->message;
  EXPECT_TRUE(found.check_masters(found.apply(catalog_)));
  add_tensor("optimizer.fp32_from_fp16_params.0.0", DType::kF32, {2, 4});
  EXPECT_THAT(refusal(), HasSubstr("its group has no such parameter"));
}

TEST_F(TorchDcpNames, OfNobodyAreRefused) {
  add_groups();
  add_states("7", {2, 4});
  EXPECT_THAT(refusal(), HasSubstr("no parameter group has its number"));
  catalog_.tensors.resize(2);
  add_tensor("optimizer.optimizer.param_groups.0.lr", DType::kF32, {});
  EXPECT_THAT(refusal(), HasSubstr("found a tensor, expected a setting"));
  catalog_.tensors.resize(2);
  add_tensor("optimizer.optimizer.state.0.hessian", DType::kF32, {2, 4});
  EXPECT_THAT(refusal(), HasSubstr("no rule says whose state it is"));
}

TEST_F(TorchDcpNames, ExtraStatesAreNotAsked) {
  add_tensor("model.decoder.layers.0.mlp.linear_fc1._extra_state", DType::kU8, {0});
  EXPECT_THAT(listed(names().apply(catalog_)), Not(testing::Contains(HasSubstr("_extra_state"))));
}

}  // namespace
}  // namespace shardwright
