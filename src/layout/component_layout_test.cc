// SPDX-License-Identifier: Apache-2.0
#include "layout/component_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "layout/component_spec.h"
#include "layout/rank_groups_fixture.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

Result<ComponentLayout> solve(const std::vector<std::string>& texts,
                              std::optional<std::int64_t> world = std::nullopt) {
  const std::vector<ComponentSpec> specs = SW_TRY(parse_components(texts));
  return solve_component_layout(specs, world);
}

// `language 0-3, images 4`.
std::string ranges(const Result<ComponentLayout>& layout) {
  if (!layout) return layout.error().text();
  std::string text;
  for (const Component& component : layout->components) {
    text += (text.empty() ? "" : ", ") + component.name + " " + ranks_text(component);
  }
  return text;
}

TEST(ComponentSpec, IsReadAsWritten) {
  const ComponentSpec spec =
      parse_component(" language = tp = +2 ,pp=1_0, dp=03,rank_offset=-1").value();
  EXPECT_EQ(spec.name, "language");
  EXPECT_EQ(spec.tensor, 2);
  EXPECT_EQ(spec.pipeline, 10);
  EXPECT_EQ(spec.data, 3);
  EXPECT_EQ(spec.rank_offset, -1);
  EXPECT_FALSE(spec.expert);
  EXPECT_EQ(parse_component("a=,, tp=2,").value().tensor, 2);
  EXPECT_FALSE(parse_component("a=").value().tensor);
}

TEST(ComponentSpec, RefusesWhatItCannotRead) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a=tp=1, tp=1", "tp is given twice"},
      {"language", "expected name=tp=N"},
      {"", "expected name=tp=N"},
      {"=tp=1", "'=tp=1' has no name"},
      {"a=tp", "found 'tp', expected key=value"},
      {"a=vpp=1", "found the key 'vpp'"},
      {"a=tp=", "found '' for tp"},
      {"a=tp=two", "found 'two' for tp"},
      {"a=tp=1=2", "found '1=2' for tp"},
      {"a=tp=1__0", "found '1__0' for tp"},
      {"a=tp=_1", "found '_1' for tp"},
      {"a=tp=--1", "found '--1' for tp"},
      {"a=tp=99999999999999999999", "for tp"},
  };
  for (const auto& [text, message] : cases) {
    const auto refused = parse_component(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr(message));
  }
  EXPECT_THAT(ranges(solve({"a=tp=1", " a=tp=2"})), HasSubstr("'a' is given twice"));
}

TEST(ComponentLayout, SharesWhatIsLeft) {
  EXPECT_EQ(ranges(solve({"language=tp=4", "images=tp=1"}, 8)),
            "language ranks 0-3, images ranks 4-7");
  EXPECT_EQ(ranges(solve({"language=tp=4,dp=1", "images=tp=1"}, 5)),
            "language ranks 0-3, images rank 4");
  EXPECT_EQ(ranges(solve({"language=tp=4,dp=1", "images=tp=1"}, 6)),
            "language ranks 0-3, images ranks 4-5");
  EXPECT_EQ(ranges(solve({"images=tp=1", "language=tp=1,dp=1"}, 2)),
            "images rank 0, language rank 1");
  EXPECT_EQ(ranges(solve({"language=tp=4", "images=tp=1"})), "language ranks 0-3, images rank 4")
      << "one replica where nothing is said";
  EXPECT_EQ(ranges(solve({"language=tp=4", "images=tp=1"}, 5)), "language ranks 0-3, images rank 4")
      << "equal shares don't fit, one other way does";
}

TEST(ComponentLayout, KeepsOffsets) {
  EXPECT_EQ(ranges(solve({"language=tp=1,rank_offset=2", "images=tp=1,rank_offset=0"}, 4)),
            "language ranks 2-3, images ranks 0-1");
  EXPECT_EQ(ranges(solve({"language=tp=2,rank_offset=1", "images=tp=1"}, 3)),
            "language ranks 1-2, images rank 0");
  // The sizes follow from the offset: equal shares would not.
  EXPECT_EQ(ranges(solve({"language=tp=1,rank_offset=2", "images=tp=1,rank_offset=0"}, 6)),
            "language ranks 2-5, images ranks 0-1");
}

TEST(ComponentLayout, TriesOtherOrdersWhereTheGivenOneLeavesAGap) {
  EXPECT_EQ(ranges(solve({"language=tp=4", "audio=tp=2", "images=tp=2,rank_offset=2"})),
            "language ranks 4-7, audio ranks 0-1, images ranks 2-3");
}

TEST(ComponentLayout, SaysWhatDoesNotFit) {
  struct Case {
    std::vector<std::string> specs;
    std::optional<std::int64_t> world;
    std::string message;
    Code code = Code::kComponentLayout;
  };
  const std::vector<Case> cases = {
      {{"images=tp=1"}, {}, "the component 'language' is missing"},
      {{"language=tp=0"}, {}, "component language: found tp=0"},
      {{"language=tp=-1"}, 2, "component language: found tp=-1"},
      {{"language=ep=0"}, {}, "found ep=0"},
      {{"language=dp=0"}, {}, "found dp=0"},
      {{"language=rank_offset=-1"}, {}, "found rank_offset=-1"},
      {{"language=tp=3"}, {}, "found tp=3, expected a power of two"},
      {{"language=tp=1", "images=etp=2,tp=2"}, {}, "only language has experts"},
      {{"language=tp=1,ep=3", "images=tp=2"}, 4, "expected their product to be a multiple"},
      {{"language=dp=2", "images=dp=3"}, {}, "found dp=2 and dp=3"},
      {{"language=dp=2", "images=dp=2,rank_offset=1"},
       {},
       "found images at ranks 1-2, expected offsets that leave no gap"},
      {{"language=dp=2,rank_offset=0", "images=dp=2,rank_offset=1"}, {}, "ranges that overlap"},
      {{"language=tp=2,dp=1", "images=dp=1,rank_offset=3"}, 4, "found components with 3 ranks"},
      {{"language=dp=1,rank_offset=1", "images=dp=1,rank_offset=2"}, {}, "leave no gap"},
      {{"language=tp=4,dp=1", "images=tp=2"}, 5, "found 1 of 5 ranks left for images"},
      {{"language=tp=4", "images=tp=1"},
       9,
       "language dp=1, images dp=5 or language dp=2, images dp=1"},
      {{"language=tp=4", "images=tp=4"}, 10, "no data-parallel sizes"},
      {{"language=tp=1"}, 0, "a run of 0 ranks"},
      {{"language=tp=1048576,cp=1048576"}, {}, "beyond 1048576 ranks", Code::kLimit},
  };
  for (const Case& c : cases) {
    const auto refused = solve(c.specs, c.world);
    ASSERT_FALSE(refused) << c.specs.back();
    EXPECT_THAT(refused.error().message, HasSubstr(c.message)) << c.specs.back();
    EXPECT_EQ(refused.error().code, c.code) << c.specs.back();
  }
}

// Every layout of two and three components on up to 64 ranks: what comes out tiles the ranks and
// keeps what was given, and what is refused has no layout of equal shares.
class Bruteforce {
 public:
  void all_of(std::size_t count) {
    std::vector<ComponentSpec> specs(count);
    fill(specs, 0);
  }

  int solved = 0;
  int refused = 0;

 private:
  void fill(std::vector<ComponentSpec>& specs, std::size_t at) {
    if (at == specs.size()) {
      for (const std::int64_t world : {1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 33, 48, 64}) {
        check(specs, world);
      }
      return;
    }
    constexpr std::array<std::string_view, 3> kNames = {"language", "images", "audio"};
    for (const std::int64_t tensor : {1, 2, 8}) {
      for (const std::int64_t pipeline : {1, 3}) {
        for (const std::int64_t data : {0, 1, 2}) {
          for (const std::int64_t offset : {-1, 0, 4}) {
            ComponentSpec& spec = specs[at] = {};
            spec.name = kNames[at];
            spec.tensor = tensor;
            spec.pipeline = pipeline;
            if (data > 0) spec.data = data;
            if (offset >= 0) spec.rank_offset = offset;
            fill(specs, at + 1);
          }
        }
      }
    }
  }

  void check(const std::vector<ComponentSpec>& specs, std::int64_t world) {
    const auto layout = solve_component_layout(specs, world);
    if (!layout) {
      ++refused;
      return;
    }
    ++solved;
    std::vector<int> owners(static_cast<std::size_t>(world), 0);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const Component& c = layout->components[i];
      ASSERT_EQ(c.rank_offset, specs[i].rank_offset.value_or(c.rank_offset));
      ASSERT_EQ(c.data, specs[i].data.value_or(c.data));
      ASSERT_EQ(c.tensor, *specs[i].tensor);
      for (std::int64_t r = c.rank_offset; r < c.rank_offset + c.ranks(); ++r) {
        ASSERT_LT(r, world);
        ++owners[static_cast<std::size_t>(r)];
      }
    }
    ASSERT_EQ(std::ranges::count(owners, 1), world) << ranges(layout);
  }
};

TEST(ComponentLayout, AlwaysTilesTheRun) {
  Bruteforce brute;
  brute.all_of(2);
  EXPECT_GT(brute.solved, 1000);
  EXPECT_GT(brute.refused, 1000);
  brute = {};
  brute.all_of(3);
  EXPECT_GT(brute.solved, 10'000);
}

TEST(RankGroups, CountTensorFirst) {
  const ComponentLayout layout =
      solve({"images=tp=2", "language=tp=2,cp=1,pp=2,dp=2,ep=2"}, 10).value();
  const Component& language = *layout.find("language");
  using Groups = RankGroups;
  EXPECT_EQ(rank_groups(language, &RankPlace::tensor), (Groups{{2, 3}, {4, 5}, {6, 7}, {8, 9}}));
  EXPECT_EQ(rank_groups(language, &RankPlace::data), (Groups{{2, 4}, {3, 5}, {6, 8}, {7, 9}}));
  EXPECT_EQ(rank_groups(language, &RankPlace::pipeline), (Groups{{2, 6}, {3, 7}, {4, 8}, {5, 9}}));
  EXPECT_EQ(rank_groups(language, &RankPlace::expert), (Groups{{2, 3}, {4, 5}, {6, 7}, {8, 9}}));
  EXPECT_EQ(rank_groups(language, &RankPlace::expert_data),
            (Groups{{2, 4}, {3, 5}, {6, 8}, {7, 9}}));
}

}  // namespace
}  // namespace shardwright
