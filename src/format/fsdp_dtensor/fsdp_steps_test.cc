// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "format/fsdp_dtensor/fsdp_state.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

constexpr const char* kStep = "optimizer.state.module.module.module.w.step";
constexpr const char* kOwner = "optimizer.param_to_group_meta.module.module.module.w";

Result<FsdpSteps> steps_of(Catalog catalog, const std::string& bytes) {
  MemoryDirectory memory;
  memory.put("a", bytes);
  catalog.files = {"a"};
  SourceFiles files(memory, catalog.files, 4);
  return read_fsdp_steps(catalog, files);
}

template <class T>
Result<FsdpSteps> steps_of_tensor(DType dtype, T value, const Dims& shape = {}) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  Catalog catalog;
  ChunkList chunks(shape.size());
  chunks.push_back({Box::whole(shape), 0, {0, sizeof(T)}, {}});
  catalog.tensors.push_back({{kStep, dtype, shape}, std::move(chunks), Encoding::kRaw});
  return steps_of(std::move(catalog), bytes);
}

Result<FsdpSteps> steps_of_object(pickle::Document& document, pickle::Value value) {
  const std::string pickled = pickle::encode(document, value, pickle::Protocol::kTwo).value();
  const std::string bytes = encode_torch_object(pickled).value();
  Catalog catalog;
  catalog.objects.push_back({kStep, 0, {0, bytes.size()}});
  return steps_of(std::move(catalog), bytes);
}

TEST(FsdpSteps, AreOfAnyNumberType) {
  EXPECT_EQ(steps_of_tensor(DType::kF32, 10.0F).value().by_parameter.at(kOwner), 10);
  EXPECT_EQ(steps_of_tensor(DType::kF64, 11.0).value().by_parameter.at(kOwner), 11);
  EXPECT_EQ(steps_of_tensor(DType::kI64, std::int64_t{12}).value().by_parameter.at(kOwner), 12);
  EXPECT_EQ(steps_of_tensor(DType::kI32, 13, Dims{1}).value().by_parameter.at(kOwner), 13);
  pickle::Document document;
  EXPECT_EQ(steps_of_object(document, document.integer(14)).value().by_parameter.at(kOwner), 14);
  EXPECT_EQ(steps_of_object(document, document.real(15)).value().by_parameter.at(kOwner), 15);
}

TEST(FsdpSteps, AreCounts) {
  constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {kNothing, -1.0F, 2e9F, 0.5F}) {
    const auto refused = steps_of_tensor(DType::kF32, value);
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code, Code::kStateUnreadable);
    EXPECT_THAT(refused.error().message, HasSubstr(kStep));
  }
  EXPECT_FALSE(steps_of_tensor(DType::kI64, std::int64_t{1}, Dims{2}));
  EXPECT_FALSE(steps_of_tensor(DType::kBF16, std::int16_t{1}));
  pickle::Document document;
  const auto refused = steps_of_object(document, document.string("ten"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("found a Python object"));
}

TEST(FsdpSteps, AreMissedOfAdam) {
  Catalog catalog;
  for (const char* name : {"optimizer.state.module.module.module.w.exp_avg_sq",
                           "optimizer.state.module.module.module.lion.exp_avg"}) {
    catalog.tensors.push_back({{name, DType::kF32, {2}}, ChunkList(1), Encoding::kRaw});
  }
  const FsdpSteps steps = steps_of(std::move(catalog), "").value();
  EXPECT_THAT(steps.uncounted, testing::ElementsAre(kOwner));
}

// An optimizer that is not distributed counts for all parameters; nothing else tells its steps.
TEST(FsdpSteps, ArePutDownAsTheOptimizerCountedThem) {
  const auto split = [](std::optional<double> common_step, bool is_float32) {
    pickle::Document document;
    const pickle::Value states = document.dict();
    if (common_step) document.set(states, "common_step", document.real(*common_step));
    const pickle::Value inner = document.dict();
    document.set(inner, "state", states);
    document.set(inner, "param_groups", document.list({}));
    const pickle::Value optimizer = document.dict();
    document.set(optimizer, "optimizer", inner);
    const pickle::Value state = document.dict();
    document.set(state, "optimizer", is_float32 ? inner : optimizer);
    document.set(state, "iteration", document.integer(10));
    const std::string bytes =
        encode_torch_object(pickle::encode(document, state, pickle::Protocol::kTwo).value())
            .value();
    return split_common_state(bytes, {});
  };
  EXPECT_EQ(split(2.0, false).value().step, 2);
  EXPECT_EQ(split(2.0, true).value().step, 2);
  EXPECT_EQ(split(std::nullopt, false).value().step, 10);
  for (const double none : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    const auto refused = split(none, false);
    ASSERT_FALSE(refused) << none;
    EXPECT_EQ(refused.error().code, Code::kStateUnreadable);
  }
}

}  // namespace
}  // namespace shardwright
