// SPDX-License-Identifier: Apache-2.0
#include "format/targets.h"

#include <gmock/gmock.h>

#include <set>

namespace shardwright {
namespace {

TEST(Targets, AreListedOnce) {
  std::set<std::string_view> names;
  for (const std::string_view name : target_names()) {
    EXPECT_EQ(traits_of(name).name, name);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), all_targets().size());
}

TEST(Targets, AreFoundByTheirNameOnly) {
  const Result<const Target*> unknown = find_target("torchdist");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUsage);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("'torchdist'"));
  EXPECT_THAT(unknown.error().message, testing::EndsWith("did you mean torch_dist?"));
  EXPECT_FALSE(find_target(""));
}

// What the steps of a conversion rely on.
TEST(Targets, TraitsAgreeWithEachOther) {
  for (const Target* target : all_targets()) {
    const TargetTraits& traits = target->traits();
    SCOPED_TRACE(traits.name);
    const bool is_megatron = traits.names == TargetNames::kMegatron;
    EXPECT_EQ(traits.has_grid || traits.has_components, is_megatron);
    EXPECT_NE(traits.backend.empty(), is_megatron);
    EXPECT_NE(traits.hf_folder.empty(), is_megatron);
    EXPECT_FALSE(traits.has_grid && traits.has_components);
    EXPECT_FALSE(traits.keeps_optimizer && !traits.holds_optimizer);
    EXPECT_FALSE(traits.has_run_config && !is_megatron);
    EXPECT_FALSE(traits.has_shard_files && traits.has_shards);
  }
}

// What a format must have: all else does nothing, or keeps what the source has.
class PlainTarget final : public Target {
 public:
  PlainTarget() : Target({.name = "plain"}) {}
  Status lay_out(const ConvertRequest& /*request*/, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    complete(parts, plan);
    return {};
  }
};

TEST(Targets, NeedTraitsAndALayoutOnly) {
  const PlainTarget target;
  ConvertRequest request;
  request.parallel.tensor = 2;
  Checkpoint source;
  Catalog catalog;
  catalog.tensors.push_back({{"a.weight", DType::kF32, {2, 3}}, ChunkList(2)});
  TargetParts parts;
  std::vector<std::string> notes;
  EXPECT_TRUE(target.settle_sizes(request, parts));
  EXPECT_EQ(request.parallel.tensor, 2);
  ASSERT_TRUE(target.draft_stored(request, source, catalog, parts, notes));
  EXPECT_TRUE(target.take_family({}, parts));
  target.add_prefix("module.", parts);
  EXPECT_TRUE(target.check_tensors("llama", parts));
  EXPECT_TRUE(target.make_entries(request, parts, notes));
  EXPECT_THAT(target.components(parts), testing::IsEmpty());
  ASSERT_THAT(parts.tensors, testing::SizeIs(1));
  EXPECT_EQ(parts.tensors[0].desc.name, "a.weight");
  EXPECT_EQ(parts.tensors[0].desc.shape, (Dims{2, 3}));
  EXPECT_THAT(notes, testing::IsEmpty());
}

}  // namespace
}  // namespace shardwright
