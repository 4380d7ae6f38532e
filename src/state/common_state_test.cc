// SPDX-License-Identifier: Apache-2.0
#include "state/common_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A group of torch's own Adam.
Value adam_group(Document& document, bool is_expert) {
  const Value group = document.dict();
  document.set(group, "is_expert_parallel", document.boolean(is_expert));
  document.set(group, "betas", document.tuple({document.real(0.9), document.real(0.95)}));
  document.set(group, "foreach", document.none());
  return group;
}

Value optimizer_of(Document& document, Value group) {
  const Value inner = document.dict();
  document.set(inner, "state", document.dict());
  const std::array<Value, 1> groups = {group};
  document.set(inner, "param_groups", document.list(groups));
  const Value optimizer = document.dict();
  document.set(optimizer, "optimizer", inner);
  return optimizer;
}

Value inner_of(Value optimizer) { return optimizer.find("optimizer"); }
Value group_of(Value optimizer) { return inner_of(optimizer).find("param_groups")[0]; }

// What a target's common.pt says of the optimizer, and the notes.
class EncodedOptimizer {
 public:
  EncodedOptimizer(Document& document, Value optimizer, const CommonStateEdits& edits) {
    const Value state = document.dict();
    document.set(state, "optimizer", optimizer);
    const std::string bytes =
        encode_torch_object(pickle::encode(document, state, pickle::Protocol::kTwo).value())
            .value();
    const CommonState common = CommonState::read(bytes).value();
    state_.emplace(StateDocument::read(common.encode(edits, notes_).value()).value());
  }
  [[nodiscard]] Value get() const { return state_->dict().find("optimizer"); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::optional<StateDocument> state_;
  std::vector<std::string> notes_;
};

// Whoever saves with Megatron-Core alone may give a dict, or something else.
TEST(CommonStateArguments, OfADictStayOne) {
  const auto args_in = [](Document& document, Value args, std::vector<std::string>& notes) {
    const Value state = document.dict();
    document.set(state, "args", args);
    const CommonState common =
        CommonState::read(
            encode_torch_object(pickle::encode(document, state, pickle::Protocol::kTwo).value())
                .value())
            .value();
    CommonStateEdits edits;
    edits.arguments = {{"tensor_model_parallel_size", std::int64_t{2}}, {"new", true}};
    edits.dtype = DType::kBF16;
    return common.encode(edits, notes).value();
  };
  for (const bool is_ordered : {false, true}) {
    Document document;
    const Value args = is_ordered ? document.ordered_dict() : document.dict();
    document.set(args, "tensor_model_parallel_size", document.integer(1));
    document.set(args, "params_dtype", document.global("torch", "float32"));
    std::vector<std::string> notes;
    const std::string bytes = args_in(document, args, notes);
    EXPECT_THAT(notes, IsEmpty());
    const Arguments written = CommonState::read(bytes).value().arguments();
    EXPECT_EQ(written.at("tensor_model_parallel_size"), ArgValue{std::int64_t{2}});
    EXPECT_EQ(written.at("new"), ArgValue{true});
    const StateDocument state = StateDocument::read(bytes).value();
    const Value dict = state.dict().find("args");
    EXPECT_EQ(dict.find("bf16").as_bool(), true);
    EXPECT_TRUE(dict.find("params_dtype").is_global("torch", "bfloat16"));
    EXPECT_FALSE(dict.state()) << "torch.load knows no such dict";
  }
  Document document;
  const std::array<Value, 1> one = {document.integer(7)};
  std::vector<std::string> notes;
  const CommonState written =
      CommonState::read(args_in(document, document.list(one), notes)).value();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("'args' are no arguments of a run (a list)")));
  EXPECT_THAT(written.arguments(), IsEmpty());
}

// An optimizer with parts on the CPU has the classes of its parts among its settings.
TEST(CommonStateOptimizer, IsWrittenWithoutClasses) {
  Document document;
  const Value group = adam_group(document, false);
  document.set(group, "cpu_optimizer_cls", document.global("torch.optim.adamw", "AdamW"));
  const std::array<Value, 1> nested = {document.global("torch", "Tensor")};
  document.set(group, "more", document.tuple(nested));
  document.set(group, "dtype", document.global("torch", "float32"));
  const EncodedOptimizer written(document, optimizer_of(document, group), {});
  EXPECT_FALSE(group_of(written.get()).find("cpu_optimizer_cls"));
  EXPECT_FALSE(group_of(written.get()).find("more"));
  EXPECT_TRUE(group_of(written.get()).find("dtype").is_global("torch", "float32"));
  EXPECT_TRUE(group_of(written.get()).find("betas"));
  EXPECT_THAT(written.notes(), ElementsAre(HasSubstr("without cpu_optimizer_cls, more: ")));
}

class IdleExperts : public testing::Test {
 protected:
  IdleExperts() {
    edits_.chain.experts_apart = true;
    document_.set(inner_of(dense_).find("state"), "common_step", document_.real(7.0));
    document_.set(group_of(dense_), "step", document_.integer(7));
  }
  // Master weights of one group; of a rank with parameters they are entries, and none is here.
  void give_masters(Value optimizer, std::span<const Value> masters) {
    const std::array<Value, 1> groups = {document_.list(masters)};
    document_.set(optimizer, "fp32_from_fp16_params", document_.list(groups));
  }
  EncodedOptimizer written() {
    const Value chain = document_.dict();
    document_.add_pair(chain, document_.integer(0), dense_);
    document_.add_pair(chain, document_.integer(1), experts_);
    return {document_, chain, edits_};
  }

  Document document_;
  Value dense_ = optimizer_of(document_, adam_group(document_, false));
  Value experts_ = optimizer_of(document_, adam_group(document_, true));
  CommonStateEdits edits_;
};

TEST_F(IdleExperts, HaveTheStepsOfTheOthersAndNoListOfMasters) {
  give_masters(experts_, {});
  const EncodedOptimizer written = this->written();
  const Value experts = written.get().find(std::int64_t{1});
  EXPECT_FALSE(experts.find("fp32_from_fp16_params"));
  EXPECT_EQ(inner_of(experts).find("state").find("common_step").as_double(), 7.0);
  EXPECT_EQ(group_of(experts).find("step").as_int(), 7);
  EXPECT_THAT(written.notes(), IsEmpty());
}

TEST_F(IdleExperts, GetNoStepsWhereTheyCountNone) {
  give_masters(experts_, {});
  for (const char* key : {"betas", "foreach"}) document_.erase(group_of(experts_), key);
  document_.set(group_of(experts_), "momentum", document_.real(0.95));
  const EncodedOptimizer written = this->written();
  const Value experts = written.get().find(std::int64_t{1});
  EXPECT_FALSE(inner_of(experts).find("state").find("common_step"));
  EXPECT_FALSE(group_of(experts).find("step"));
}

TEST_F(IdleExperts, AreNotThoseWithMasters) {
  const std::array<Value, 1> masters = {document_.integer(1)};
  give_masters(experts_, masters);
  const EncodedOptimizer written = this->written();
  const Value experts = written.get().find(std::int64_t{1});
  EXPECT_EQ(experts.find("fp32_from_fp16_params").size(), 1U);
  EXPECT_FALSE(group_of(experts).find("step"));
}

}  // namespace
}  // namespace shardwright
