// SPDX-License-Identifier: Apache-2.0
#include "dcp/named_replicas.h"

#include <gmock/gmock.h>

#include "tensor/stored_copy.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two rows for each of `rows`; `file` tells copies apart.
StoredTensor tensor(std::string name, std::uint32_t file, std::vector<std::int64_t> rows = {0, 2}) {
  StoredTensor stored{{std::move(name), DType::kF32, {4, 2}}, ChunkList(2)};
  for (const std::int64_t row : rows) {
    stored.chunks.push_back(
        {Box{{row, 0}, {2, 2}}, file, {static_cast<std::uint64_t>(row), 16}, {}});
  }
  return stored;
}

Catalog folded(std::vector<StoredTensor> tensors) {
  Catalog catalog{{}, std::move(tensors), {}};
  fold_replicas(catalog);
  return catalog;
}

std::vector<std::string> names(const Catalog& catalog) {
  std::vector<std::string> all;
  for (const StoredTensor& stored : catalog.tensors) all.push_back(stored.desc.name);
  return all;
}

std::vector<std::uint32_t> files(const StoredTensor& stored) {
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < stored.chunks.size(); ++i) all.push_back(stored.chunks.file(i));
  return all;
}

// What is wrong with the names: messages.
std::vector<std::string> wrong(const Catalog& catalog, const TensorRanks& ranks = {}) {
  Defects defects(Defects::Policy::kCollect);
  EXPECT_TRUE(check_replica_names(catalog, ranks, defects));
  std::vector<std::string> messages;
  for (const Error& error : defects.found()) {
    EXPECT_EQ(error.code, Code::kReplicaKeys);
    messages.push_back(error.message);
  }
  return messages;
}

TEST(NamedReplicas, BecomeOneTensorWithTheFirstRanksPiecesInFront) {
  const Catalog catalog =
      folded({tensor("a.__tp_replica_10", 10), tensor("b", 7),
              tensor("a.__tp_replica_2", 2, {2, 0}), tensor("a.__tp_replica_0", 0)});
  EXPECT_THAT(names(catalog), ElementsAre("b", "a"));
  EXPECT_THAT(files(catalog.tensors[1]), ElementsAre(0, 0, 2, 2, 10, 10));
  EXPECT_THAT(catalog.tensors[0].copies, IsEmpty());
  const StoredTensor& a = catalog.tensors[1];
  ASSERT_THAT(a.copies, SizeIs(3));
  EXPECT_EQ(a.copies[1].name, "a.__tp_replica_2");
  EXPECT_EQ(a.copies[1].replica, 2);
  EXPECT_EQ(copy_of_chunk(a, 4)->replica, 10);
  EXPECT_EQ(copy_of_chunk(catalog.tensors[0], 0), nullptr);
  EXPECT_THAT(files(tensor_of_copy(a, 1)), ElementsAre(2, 2));
  EXPECT_THAT(wrong(catalog), IsEmpty());
}

TEST(NamedReplicas, JoinATensorThatHasItsOwnName) {
  const Catalog catalog = folded({tensor("a.__tp_replica_1", 1), tensor("a", 5)});
  ASSERT_THAT(names(catalog), ElementsAre("a"));
  EXPECT_THAT(files(catalog.tensors[0]), ElementsAre(5, 5, 1, 1));
  EXPECT_THAT(
      describe_replicas(catalog, {2, 2}),
      ElementsAre(HasSubstr(".__tp_replica_RANK"), HasSubstr("a the first, is stored without"),
                  HasSubstr("without the whole copy of tensor rank 0:")));
}

TEST(NamedReplicas, TakeInWhatRanksKeepToLoad) {
  const Catalog catalog =
      folded({tensor("__shadow_1__a", 11, {2}), tensor("a", 0), tensor("b.__tp_replica_1", 1),
              tensor("__shadow_3__b.__tp_replica_1", 13, {0}), tensor("b.__tp_replica_0", 2)});
  EXPECT_THAT(names(catalog), ElementsAre("a", "b"));
  EXPECT_THAT(files(catalog.tensors[0]), ElementsAre(0, 0, 11));
  EXPECT_THAT(files(catalog.tensors[1]), ElementsAre(2, 2, 1, 1, 13));
  EXPECT_TRUE(catalog.tensors[1].copies[2].is_shadow);
  EXPECT_THAT(wrong(catalog, {2, 2}), IsEmpty());
  EXPECT_THAT(describe_replicas(catalog, {2, 2}),
              ElementsAre(HasSubstr("1 tensor, b the first"), HasSubstr("__shadow_RANK__NAME")));
}

TEST(NamedReplicas, ComplementOneAnother) {
  const Catalog catalog =
      folded({tensor("a.__tp_replica_0", 0, {0}), tensor("__shadow_7__a.__tp_replica_1", 1, {2}),
              tensor("b.__tp_replica_1", 4), tensor("__shadow_2__c", 5)});
  EXPECT_THAT(names(catalog), ElementsAre("a", "b", "c"));
  for (const StoredTensor& stored : catalog.tensors) EXPECT_TRUE(check_coverage(stored));
  EXPECT_THAT(describe_replicas(catalog, {3, 3}),
              testing::Contains(HasSubstr(
                  "2 tensors, a the first, are without the whole copy of tensor rank 0, 1, 2")));
  // What no copy has is a hole of the tensor.
  const Catalog holed =
      folded({tensor("a.__tp_replica_0", 0, {0}), tensor("__shadow_1__a", 1, {0})});
  ASSERT_THAT(names(holed), ElementsAre("a"));
  EXPECT_EQ(check_coverage(holed.tensors[0]).error().code, Code::kHole);
}

TEST(NamedReplicas, ThatLackARankOrAPartOfItsCopyAreToldOf) {
  const Catalog whole = folded({tensor("a.__tp_replica_0", 0), tensor("a.__tp_replica_1", 1)});
  EXPECT_THAT(describe_replicas(whole, {}), ElementsAre(HasSubstr("stored once by each")));
  const Catalog partly = folded({tensor("a.__tp_replica_0", 0), tensor("a.__tp_replica_2", 2, {2}),
                                 tensor("__shadow_7__a.__tp_replica_1", 7)});
  EXPECT_THAT(describe_replicas(partly, {}),
              Contains(HasSubstr("without the whole copy of tensor rank 1, 2:")));
}

TEST(NamedReplicas, ThatAreNotAlikeStayAndAreRefused) {
  StoredTensor wide = tensor("a.__tp_replica_1", 1);
  wide.desc.dtype = DType::kF64;
  StoredTensor compressed = tensor("a.__tp_replica_1", 1);
  compressed.encoding = Encoding::kZstdItem;
  StoredTensor shadow = tensor("__shadow_1__a.__tp_replica_0", 1);
  shadow.desc.shape = {4, 3};
  const std::vector<std::pair<StoredTensor, const char*>> cases = {
      {wide,
       "tensor a.__tp_replica_1: it is float64 (4, 2), and a.__tp_replica_0 is float32 (4, 2)"},
      {compressed, "tensor a.__tp_replica_1: only one of it and a.__tp_replica_0 is compressed"},
      {shadow, "tensor __shadow_1__a.__tp_replica_0: it is float32 (4, 3)"},
      {tensor("a.__tp_replica_1", 1, {0, 1}), "is cut otherwise than"},
      {tensor("__shadow_1__a", 1, {1}), "is cut otherwise than"}};
  for (const auto& [copy, why] : cases) {
    const Catalog catalog = folded({tensor("a.__tp_replica_0", 0), copy});
    EXPECT_THAT(names(catalog), ElementsAre("a.__tp_replica_0", copy.desc.name));
    EXPECT_THAT(wrong(catalog), ElementsAre(HasSubstr(why)));
  }
}

TEST(NamedReplicas, OfRanksThatTheRunDidNotHaveAreRefused) {
  const Catalog catalog = folded({tensor("a.__tp_replica_1", 1),
                                  tensor("mlp.experts.linear_fc2.bias.__tp_replica_1", 2),
                                  tensor("__shadow_9__b.__tp_replica_2", 3)});
  EXPECT_THAT(wrong(catalog, {3, 2}), IsEmpty());
  EXPECT_THAT(wrong(catalog), IsEmpty()) << "nothing says how many there were";
  EXPECT_THAT(wrong(catalog, {2, 2}),
              ElementsAre(HasSubstr("tensor __shadow_9__b.__tp_replica_2: found a copy of tensor "
                                    "rank 2, but the run that saved it had 2")));
  EXPECT_THAT(wrong(catalog, {3, 1}), ElementsAre(HasSubstr("experts.linear_fc2.bias")));
}

TEST(NamedReplicas, WithNumbersThatNobodyWritesAreRefused) {
  Catalog catalog = folded({tensor("a.__tp_replica_1", 1), tensor("a.__tp_replica_01", 2)});
  catalog.objects = {{"a._extra_state.__tp_replica_1/shard_0_1", 0, {}}};
  EXPECT_THAT(names(catalog), ElementsAre("a", "a.__tp_replica_01"));
  EXPECT_THAT(wrong(catalog), ElementsAre(HasSubstr("tensor a.__tp_replica_01: the name says"),
                                          HasSubstr("entry a._extra_state.__tp_replica_1/")));
}

// As in a format whose reader folds nothing.
TEST(NamedReplicas, ThatNobodyFoldedAreRefused) {
  const Catalog catalog{{}, {tensor("a.__tp_replica_1", 1)}, {}};
  EXPECT_THAT(wrong(catalog), ElementsAre(HasSubstr("tensor a.__tp_replica_1: the name says")));
}

TEST(ChosenReplica, IsAllThatIsLeft) {
  StoredTensor wide = tensor("c.__tp_replica_0", 6);
  wide.desc.dtype = DType::kF64;
  Catalog catalog =
      folded({tensor("a", 9), tensor("a.__tp_replica_0", 0), tensor("a.__tp_replica_1", 1),
              tensor("__shadow_3__a.__tp_replica_1", 2, {2}), tensor("b", 4), wide,
              tensor("c.__tp_replica_1", 7), tensor("__shadow_1__d", 3, {0}), tensor("d", 5)});
  EXPECT_TRUE(has_numbered_replicas(catalog));
  const auto told = take_replica(catalog, 1);
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_THAT(*told, HasSubstr("--replica 1: 2 tensors, "));
  ASSERT_THAT(names(catalog), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(files(catalog.tensors[0]), ElementsAre(1, 1, 2));
  EXPECT_THAT(files(catalog.tensors[2]), ElementsAre(7, 7));
  EXPECT_THAT(files(catalog.tensors[3]), ElementsAre(5, 5, 3)) << "not a tensor rank's";
  EXPECT_FALSE(has_numbered_replicas(catalog));
}

TEST(ChosenReplica, HasToBeThere) {
  const std::vector<StoredTensor> stored = {tensor("a.__tp_replica_0", 0),
                                            tensor("a.__tp_replica_2", 2)};
  Catalog catalog = folded(stored);
  const auto lacking = take_replica(catalog, 1);
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().code, Code::kUsage);
  EXPECT_THAT(lacking.error().message, HasSubstr("tensor a has no copy of that tensor rank"));
  EXPECT_THAT(lacking.error().message, HasSubstr("it has those of 0, 2"));
  Catalog unfolded{{}, stored, {}};
  unfolded.tensors[0].desc.dtype = DType::kF64;
  EXPECT_THAT(take_replica(unfolded, 1).error().message, HasSubstr("it has those of 0, 2"));
  Catalog plain = folded({tensor("a", 0), tensor("__shadow_1__a", 1, {0})});
  EXPECT_FALSE(has_numbered_replicas(plain));
  EXPECT_EQ(take_replica(plain, 0).error().code, Code::kUsage);
}

}  // namespace
}  // namespace shardwright
