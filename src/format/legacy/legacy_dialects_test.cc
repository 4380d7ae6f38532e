// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>

#include "base/crc32.h"
#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "codec/torch_tensor.h"
#include "format/legacy/legacy_reader.h"
#include "io/source_files.h"
#include "testing/temporary_folder.h"

// Files of ranks as others than Megatron-LM itself write them.

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A tensor of float32, whose first byte is `fill`, and the others hang on it.
struct FilledTensor {
  std::string name;
  Dims shape;
  char fill = 0;
};
using StateDict = std::vector<FilledTensor>;

Value argument_value(Document& document, const ArgValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return document.boolean(*flag);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return document.integer(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return document.string(*text);
  return document.none();
}

// What a rank saves: `model`, or several of them as model0, model1.
std::string rank_archive(const std::vector<StateDict>& chunks, const Arguments& arguments) {
  Document document;
  const Value state = document.dict();
  std::vector<std::uint64_t> sizes;
  std::vector<char> fills;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Value dict = document.ordered_dict();
    for (const auto& [name, shape, fill] : chunks[i]) {
      document.set(dict, name,
                   make_torch_tensor(document, DType::kF32, shape, std::to_string(sizes.size())));
      sizes.push_back(static_cast<std::uint64_t>(*element_count(shape) * 4));
      fills.push_back(fill);
    }
    document.set(state, chunks.size() == 1 ? "model" : "model" + std::to_string(i), dict);
  }
  if (!arguments.empty()) {
    const Value args = document.object(document.global("argparse", "Namespace"));
    for (const auto& [name, value] : arguments) {
      document.set_attribute(args, name, argument_value(document, value));
    }
    document.set(state, "args", args);
  }
  document.set_root(state);
  const TorchLayout layout =
      TorchLayout::make(*pickle::encode(document, pickle::Protocol::kTwo), sizes).value();
  std::string bytes = layout.head();
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::string payload(static_cast<std::size_t>(sizes[i]), fills[i]);
    for (std::size_t at = 0; at < payload.size(); ++at) {
      payload[at] = static_cast<char>(static_cast<std::size_t>(fills[i]) * (at + 1) % 113);
    }
    bytes += payload;
    crcs.push_back(crc32(as_bytes(payload)));
    if (i + 1 < sizes.size()) bytes += layout.between(i, crcs.back());
  }
  return bytes + layout.tail(crcs);
}

// A run's files, which know the arguments of the run.
class RankFiles {
 public:
  explicit RankFiles(Arguments arguments = {}) : arguments_(std::move(arguments)) {}

  void put(const std::string& folder, const std::vector<StateDict>& chunks) {
    place_->put(folder + "/model_optim_rng.pt", rank_archive(chunks, arguments_));
  }
  void put_text(const std::string& path, const std::string& text) { place_->put(path, text); }
  [[nodiscard]] Result<Checkpoint> open() const { return open_checkpoint(place_->path().string()); }

 private:
  std::unique_ptr<TemporaryFolder> place_ = std::make_unique<TemporaryFolder>();
  Arguments arguments_;
};

// Layers that their widths tell apart, with the ends of the model where these are.
StateDict layers_of_chunk(const std::vector<std::int64_t>& layers, bool is_first, bool is_last) {
  StateDict chunk;
  if (is_first) chunk.push_back({"embedding.word_embeddings.weight", {8, 4}});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    chunk.push_back(
        {"decoder.layers." + std::to_string(i) + ".mlp.linear_fc2.weight", {4, 100 + layers[i]}});
  }
  if (is_last) chunk.push_back({"decoder.final_layernorm.weight", {4}});
  if (is_last) chunk.push_back({"output_layer.weight", {8, 4}});
  return chunk;
}

// Which layer has which number, by its width.
std::map<std::int64_t, std::int64_t> layers_by_number(const Checkpoint& checkpoint) {
  std::map<std::int64_t, std::int64_t> layers;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    std::int64_t number = 0;
    if (std::sscanf(tensor.desc.name.c_str(), "decoder.layers.%ld.", &number) == 1) {
      layers[number] = tensor.desc.shape[1] - 100;
    }
  }
  return layers;
}

const std::map<std::int64_t, std::int64_t> kInOrder = {{0, 0}, {1, 1}, {2, 2}, {3, 3},
                                                       {4, 4}, {5, 5}, {6, 6}, {7, 7}};

RankFiles folded_run(const Arguments& arguments) {
  RankFiles run(arguments);
  run.put("mp_rank_00_000",
          {layers_of_chunk({0, 1}, true, false), layers_of_chunk({6, 7}, false, true)});
  run.put("mp_rank_00_001",
          {layers_of_chunk({2, 3}, false, false), layers_of_chunk({4, 5}, false, false)});
  return run;
}

// DualPipeV, by the ends of the model that both lie on stage 0, whatever the arguments say.
TEST(LegacyDialects, FoldedStagesCountThereAndBack) {
  const Arguments mindspeed = {{"schedules_method", std::string("dualpipev")}};
  const Arguments flagscale = {{"use_dualpipev", true}};
  for (const Arguments& arguments : {mindspeed, flagscale, Arguments()}) {
    const auto checkpoint = folded_run(arguments).open();
    ASSERT_TRUE(checkpoint) << checkpoint.error().text();
    EXPECT_EQ(layers_by_number(*checkpoint), kInOrder);
    EXPECT_THAT(checkpoint->notes, Contains(HasSubstr("stages are folded")));
  }
}

// As this program wrote what it had read from such a run, with the run's arguments.
TEST(LegacyDialects, InterleavedStagesStaySoWhateverTheArgumentsSay) {
  RankFiles run({{"schedules_method", std::string("dualpipev")}});
  run.put("mp_rank_00_000",
          {layers_of_chunk({0, 1}, true, false), layers_of_chunk({4, 5}, false, false)});
  run.put("mp_rank_00_001",
          {layers_of_chunk({2, 3}, false, false), layers_of_chunk({6, 7}, false, true)});
  const auto checkpoint = run.open();
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(layers_by_number(*checkpoint), kInOrder);
  EXPECT_THAT(checkpoint->notes, Not(Contains(HasSubstr("folded"))));
}

TEST(LegacyDialects, TwoCopiesOfAModelAreRefused) {
  RankFiles run({{"use_dualpipe", true}});
  run.put("mp_rank_00_000",
          {layers_of_chunk({0, 1}, true, false), layers_of_chunk({2, 3}, false, true)});
  run.put("mp_rank_00_001",
          {layers_of_chunk({2, 3}, false, true), layers_of_chunk({0, 1}, true, false)});
  const auto refused = run.open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(refused.error().message, HasSubstr("DualPipe (use_dualpipe)"));
}

// Each chunk's fill by its place along the first axis, which counts experts.
std::map<std::int64_t, char> fills_by_expert(const Checkpoint& checkpoint, std::string_view name) {
  std::map<std::int64_t, char> fills;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    if (tensor.desc.name != name) continue;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      std::array<std::byte, 1> first = {};
      EXPECT_TRUE(
          checkpoint.files->read_at(tensor.chunks.file(i), tensor.chunks.range(i).offset, first));
      fills[tensor.chunks.box(i).origin[0]] = std::to_integer<char>(first[0]);
    }
  }
  return fills;
}

constexpr std::string_view kSecondOfExperts =
    "decoder.layers.0.mlp.experts.experts.linear_fc2.weight";

// MindSpeed gives each of TP times EP ranks whole experts, tensor ranks first.
TEST(LegacyDialects, ExpertsAreWholeOnTensorRanksToo) {
  RankFiles run({{"tensor_model_parallel_size", std::int64_t{2}},
                 {"expert_model_parallel_size", std::int64_t{2}},
                 {"expert_tensor_parallel_size", std::int64_t{1}},
                 {"moe_tp_extend_ep", true}});
  for (std::int64_t tp = 0; tp < 2; ++tp) {
    for (std::int64_t ep = 0; ep < 2; ++ep) {
      const auto fill = static_cast<char>(1 + ep * 2 + tp);
      run.put("mp_rank_0" + std::to_string(tp) + "_00" + std::to_string(ep),
              {{{"decoder.layers.0.mlp.router.weight", {4, 4}},
                {"decoder.layers.0.mlp.experts.local_experts.0.linear_fc2.weight", {4, 6}, fill},
                {"decoder.final_layernorm.weight", {4}}}});
    }
  }
  const auto checkpoint = run.open();
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(fills_by_expert(*checkpoint, kSecondOfExperts),
            (std::map<std::int64_t, char>{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

// All of a rank's experts in one parameter, as moe_single_grouped_weight has them.
TEST(LegacyDialects, StackedExpertsAreThoseOfTheirRank) {
  const auto stacked = [](const Dims& shape) {
    RankFiles run({{"expert_model_parallel_size", std::int64_t{2}}});
    for (std::int64_t ep = 0; ep < 2; ++ep) {
      run.put(
          "mp_rank_00_00" + std::to_string(ep),
          {{{"decoder.layers.0.mlp.router.weight", {4, 4}},
            {"decoder.layers.0.mlp.experts.linear_fc2.weight", shape, static_cast<char>(1 + ep)},
            {"decoder.final_layernorm.weight", {4}}}});
    }
    return run.open();
  };
  const auto checkpoint = stacked({2, 4, 6});
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(fills_by_expert(*checkpoint, kSecondOfExperts),
            (std::map<std::int64_t, char>{{0, 1}, {2, 2}}));
  const auto refused = stacked({8, 6});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kShapeMismatch);
  EXPECT_THAT(refused.error().message, HasSubstr("the rank's 2 experts along the first"));
}

RankFiles tied_run(char head, const Arguments& arguments = {}) {
  RankFiles run(arguments);
  run.put("mp_rank_00_000", {{{"embedding.word_embeddings.weight", {8, 4}, 5},
                              {"decoder.layers.0.mlp.linear_fc2.weight", {4, 6}}}});
  run.put("mp_rank_00_001", {{{"decoder.layers.0.mlp.linear_fc2.weight", {4, 6}},
                              {"decoder.final_layernorm.weight", {4}},
                              {"output_layer.weight", {8, 4}, head}}});
  return run;
}

bool has_head(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name == "output_layer.weight";
  });
}

TEST(LegacyDialects, BytesTellATiedHeadWhereNothingElseDoes) {
  const auto tied = tied_run(5).open();
  ASSERT_TRUE(tied) << tied.error().text();
  EXPECT_FALSE(has_head(*tied));
  EXPECT_THAT(tied->notes, Contains(HasSubstr("tied to the word embeddings")));
  const auto untied = tied_run(6).open();
  ASSERT_TRUE(untied) << untied.error().text();
  EXPECT_TRUE(has_head(*untied));
  EXPECT_THAT(untied->notes, Not(Contains(HasSubstr("tied to the word embeddings"))));
  const auto told = tied_run(5, {{"untie_embeddings_and_output_weights", true}}).open();
  ASSERT_TRUE(told) << told.error().text();
  EXPECT_TRUE(has_head(*told)) << "whatever the bytes are";
}

TEST(LegacyDialects, AConfigurationBesideTheRanksTellsATiedHead) {
  RankFiles untied = tied_run(5);
  untied.put_text("config.json", R"({"tie_word_embeddings": false})");
  const auto opened = untied.open();
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_TRUE(has_head(*opened));
  RankFiles tied = tied_run(5);
  tied.put_text("config.json", R"({"tie_word_embeddings": true})");
  const auto other = tied.open();
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_FALSE(has_head(*other));
  EXPECT_THAT(other->notes, Not(Contains(HasSubstr("tied to the word embeddings"))));
}

// Layers without weights: their numbers are left out within a stage, and counted in num_layers.
TEST(LegacyDialects, LayersWithoutWeightsLeaveNoGaps) {
  const auto run_of = [](const std::vector<std::int64_t>& first, const std::string& noop) {
    RankFiles run({{"num_layers", std::int64_t{8}}, {"noop_layers", noop}});
    StateDict stage;
    stage.push_back({"embedding.word_embeddings.weight", {8, 4}});
    for (std::size_t i = 0; i < first.size(); ++i) {
      stage.push_back({"decoder.layers." + std::to_string(first[i]) + ".mlp.linear_fc2.weight",
                       {4, 100 + static_cast<std::int64_t>(i)}});
    }
    run.put("mp_rank_00_000", {stage});
    run.put("mp_rank_00_001", {layers_of_chunk({3, 4, 5}, false, true)});
    return run.open();
  };
  const std::map<std::int64_t, std::int64_t> six = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}};
  const auto middle = run_of({0, 2, 3}, "1,7");
  ASSERT_TRUE(middle) << middle.error().text();
  EXPECT_EQ(layers_by_number(*middle), six);
  EXPECT_EQ(middle->arguments.at("num_layers"), ArgValue{std::int64_t{6}});
  const auto end = run_of({0, 1, 2}, "3,7");
  ASSERT_TRUE(end) << end.error().text();
  EXPECT_EQ(layers_by_number(*end), six);
  const auto lost = run_of({0, 3}, "1,7");
  ASSERT_FALSE(lost) << "layer 2 is not there";
  EXPECT_EQ(lost.error().code, Code::kLegacyLayout);
  EXPECT_THAT(lost.error().message,
              HasSubstr("pipeline stage 0, virtual stage 0: found layers 0, 3"));
}

TEST(LegacyDialects, NamesOfMindSpeedsLatentAttentionAreRefused) {
  RankFiles run;
  run.put("mp_rank_00", {{{"decoder.layers.0.self_attention.linear_qkv.weight", {10, 4}},
                          {"decoder.layers.0.self_attention.linear_kv_up_proj.weight", {8, 4}}}});
  const auto refused = run.open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(refused.error().message, HasSubstr("MindSpeed's own names for latent attention"));
}

}  // namespace
}  // namespace shardwright
