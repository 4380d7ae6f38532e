// SPDX-License-Identifier: Apache-2.0
#include "layout/misplaced_ranks.h"

#include <gmock/gmock.h>

#include <map>
#include <utility>

#include "layout/legacy_run_fixture.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct RankOf {
  std::int64_t tp = 0;
  std::int64_t pp = 0;
  std::int64_t ep = 0;
};

struct World {
  SimulatedRun run;
  std::int64_t dp = 1;  // beside what experts need
  std::int64_t cp = 1;
  bool pipeline_before_data = false;
};

// The files of a run whose every rank knows its number. Ranks are walked one by one, with formulas
// of their own.
class Files {
 public:
  explicit Files(const World& world) {
    const SimulatedRun& run = world.run;
    axes_.config = {run.tp, run.pp, run.vpp, run.ep, run.etp};
    const std::int64_t width = run.tp * world.cp * run.ep * run.etp * world.dp;
    std::map<std::string, std::pair<RankOf, std::int64_t>> first;
    for (std::int64_t p = 0; p < run.pp; ++p) {
      for (std::int64_t r = 0; r < width; ++r) {
        const RankOf of{r % run.tp, p, r / run.etp % run.ep};
        // Data-parallel groups lie within a stage, or stages within those of tensor and context.
        const std::int64_t inner = run.tp * world.cp;
        const std::int64_t number = world.pipeline_before_data
                                        ? r % inner + inner * (p + run.pp * (r / inner))
                                        : r + width * p;
        const LegacyRank rank{of.tp, of.pp, of.ep, of.tp % run.etp};
        first.try_emplace(rank_folder_name(rank, axes_.config, RankNaming::kMegatron), of, number);
      }
    }
    for (const auto& [name, each] : first) {
      const auto& [of, number] = each;
      RankSample sample = rank_sample(name, run, of.pp);
      sample.run.rank = number;
      sample.run.world = width * run.pp;
      sample.run.context = world.cp;
      samples_.push_back(std::move(sample));
      axes_.ranks.push_back({of.tp, of.pp, of.ep, of.tp % run.etp});
    }
  }

  std::vector<RankSample>& samples() { return samples_; }
  void swap(std::size_t a, std::size_t b) {
    std::swap(samples_[a], samples_[b]);
    std::swap(samples_[a].folder, samples_[b].folder);
  }
  // Folders without the pipeline's number, as if the experts' were that.
  void take_experts_for_stages() {
    axes_.config.pipeline = std::exchange(axes_.config.expert, 1);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      axes_.ranks[i].pipeline = std::exchange(axes_.ranks[i].expert, 0);
      samples_[i].folder = rank_folder_name(axes_.ranks[i], axes_.config, RankNaming::kMegatron);
      samples_[i].run.pipeline_before_data = false;
    }
  }
  [[nodiscard]] std::vector<MisplacedRank> misplaced() const {
    std::vector<PlacedSample> placed;
    for (const RankSample& sample : samples_) {
      placed.push_back({&sample, *parse_rank_folder(sample.folder), contents_of(sample)});
    }
    return misplaced_ranks(axes_, RankNaming::kMegatron, placed);
  }
  [[nodiscard]] std::vector<std::string> folders() const {
    std::vector<std::string> names;
    for (const MisplacedRank& rank : misplaced()) names.push_back(rank.folder);
    return names;
  }

 private:
  LegacyAxes axes_;
  std::vector<RankSample> samples_;
};

const std::vector<World>& worlds() {
  static const std::vector<World> all = {
      {{2, 1, 1, 1, 2}},          {{2, 2, 1, 1, 2}},       {{2, 2, 2, 1, 2}, 2},
      {{2, 4, 1, 1, 2}, 3, 2},    {{1, 1, 1, 4, 1, true}}, {{2, 2, 1, 2, 1, true}},
      {{2, 3, 1, 4, 2, true}, 2}, {{4, 1, 1, 8, 1, true}}, {{2, 2, 1, 1, 2}, 2, 1, true}};
  return all;
}

TEST(MisplacedRanks, AreNoneWhereEachFileIsInItsFolder) {
  for (const World& world : worlds()) EXPECT_THAT(Files(world).folders(), IsEmpty());
}

// What ranks record is read by the sizes of the run, which folders without one of the numbers lack.
TEST(MisplacedRanks, AreNoneWhereFoldersHaveOtherSizesThanTheRun) {
  for (const World& world : {World{{2, 1, 1, 2, 2, true}}, World{{1, 1, 1, 4, 1, true}, 2}}) {
    Files files(world);
    files.take_experts_for_stages();
    EXPECT_THAT(files.folders(), IsEmpty());
  }
}

TEST(MisplacedRanks, AreBothOfAnyTwoThatWereSwapped) {
  for (const World& world : worlds()) {
    const std::size_t count = Files(world).samples().size();
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a + 1; b < count; ++b) {
        Files files(world);
        files.swap(a, b);
        EXPECT_THAT(files.folders(),
                    ElementsAre(files.samples()[a].folder, files.samples()[b].folder));
      }
    }
  }
}

TEST(MisplacedRanks, AreCopiesOfOthers) {
  Files files(World{{2, 2, 1, 1, 2}});
  const std::string folder = files.samples()[2].folder;
  files.samples()[2] = files.samples()[0];
  files.samples()[2].folder = folder;
  ASSERT_THAT(files.folders(), ElementsAre("mp_rank_01_000"));
  const MisplacedRank copy = files.misplaced().front();
  EXPECT_EQ(copy.says.english,
            "its arguments say that rank 0 of 8 wrote it, whose folder is mp_rank_00_000");
  EXPECT_THAT(copy.says.chinese, HasSubstr("mp_rank_00_000"));
}

// A converter is one process, or some that write several files each.
TEST(MisplacedRanks, AreNotFoundByTheRanksOfConverters) {
  for (const std::int64_t processes : {1, 2}) {
    Files files(World{{4, 1, 1, 1, 4}});
    for (std::size_t i = 0; i < files.samples().size(); ++i) {
      files.samples()[i].run.rank = static_cast<std::int64_t>(i) % processes;
      files.samples()[i].run.world = processes;
    }
    EXPECT_THAT(files.folders(), IsEmpty()) << processes;
  }
}

// Without ranks the ends of the model still say which stages are which.
TEST(MisplacedRanks, AreFoundByWhatTheyHold) {
  const auto without_ranks = [](const SimulatedRun& run) {
    Files files(World{run});
    for (RankSample& sample : files.samples()) sample.run.rank.reset();
    return files;
  };
  Files sound = without_ranks({1, 3, 1, 1, 1});
  EXPECT_THAT(sound.folders(), IsEmpty());
  Files swapped = without_ranks({1, 3, 1, 1, 1});
  swapped.swap(0, 2);
  ASSERT_THAT(swapped.folders(), ElementsAre("mp_rank_00_000", "mp_rank_00_002"));
  EXPECT_THAT(swapped.misplaced()[0].says.english, HasSubstr("lacks the embedding"));
  EXPECT_THAT(swapped.misplaced()[1].says.english, HasSubstr("holds the embedding"));
  Files behind = without_ranks({1, 3, 1, 1, 1});
  behind.swap(1, 2);
  ASSERT_THAT(behind.folders(), ElementsAre("mp_rank_00_001", "mp_rank_00_002"));
  EXPECT_THAT(behind.misplaced()[0].says.english, HasSubstr("holds the norm"));
  EXPECT_THAT(behind.misplaced()[1].says.english, HasSubstr("lacks the norm"));
  Files copied = without_ranks({1, 2, 1, 1, 1});
  copied.samples()[1].models = copied.samples()[0].models;
  EXPECT_THAT(copied.folders(), ElementsAre("mp_rank_00_001"));
}

// The last stage of a tied model of before Megatron-Core has the embedding too, that of prediction
// layers has a copy, and a stage may hold a tower alone.
TEST(MisplacedRanks, AreNotThoseThatHoldMoreOrLess) {
  const SampledTensor embedding{"embedding.word_embeddings.weight", {64, 16}};
  Files tied(World{{1, 2, 1, 1, 1}});
  tied.samples()[1].models[0].push_back(embedding);
  EXPECT_THAT(tied.folders(), IsEmpty());
  Files predicting(World{{1, 3, 1, 1, 1}});
  predicting.samples()[1].models[0].push_back({"decoder.final_layernorm.weight", {16}});
  predicting.samples()[2].models[0] = {embedding, {"mtp.layers.0.eh_proj.weight", {16, 32}}};
  EXPECT_THAT(predicting.folders(), IsEmpty());
  Files tower(World{{1, 3, 1, 1, 1}});
  tower.samples()[1].models[0].push_back(embedding);
  tower.samples()[0].models[0] = {{"vision_model.conv1.weight", {16, 3, 14, 14}}};
  EXPECT_THAT(tower.folders(), IsEmpty());
  Files folded(World{{1, 2, 1, 1, 1}});
  folded.samples()[0].models[0].push_back({"decoder.final_layernorm.weight", {16}});
  folded.samples()[1].models[0].pop_back();
  EXPECT_THAT(folded.folders(), IsEmpty());
}

// Ranks that contradict the files' contents are another numbering's.
TEST(MisplacedRanks, AreNotFoundByRanksThatCannotBeTrue) {
  Files files(World{{1, 2, 1, 1, 1}});
  std::swap(files.samples()[0].run.rank, files.samples()[1].run.rank);
  EXPECT_THAT(files.folders(), IsEmpty());
}

TEST(MisplacedRanks, AreFilesOfAnotherSave) {
  Files later(World{{2, 1, 1, 1, 2}});
  later.samples()[1].iteration = 7;
  ASSERT_THAT(later.folders(), ElementsAre("mp_rank_01"));
  EXPECT_TRUE(later.misplaced()[0].is_of_another_save);
  EXPECT_EQ(later.misplaced()[0].says.english, "it is of iteration 7, mp_rank_00 of iteration 10");
  Files other(World{{2, 1, 1, 1, 2}});
  other.samples()[1].run.sizes.pipeline = 2;
  EXPECT_THAT(other.folders(), ElementsAre("mp_rank_01"));
}

TEST(MisplacedRanks, MayRecordAnything) {
  constexpr std::int64_t kMost = INT64_MAX;
  for (const std::int64_t number : {kMost, std::int64_t{-1}, INT64_MIN, std::int64_t{0}}) {
    Files files(World{{2, 1, 1, 1, 2}});
    files.samples()[1].run.rank = number;
    files.samples()[0].run.context = number;
    for (RankSample& sample : files.samples()) sample.run.world = kMost;
    EXPECT_THAT(files.folders(), IsEmpty());
  }
}

}  // namespace
}  // namespace shardwright
