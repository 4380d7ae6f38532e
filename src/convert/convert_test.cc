// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "codec/safetensors_header.h"
#include "convert/golden.h"
#include "format/legacy/legacy_file.h"
#include "io/memory_directory.h"
#include "shardwright/prepared_conversion.h"
#include "state/common_state.h"
#include "state/recorded_run.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"
#include "testing/tensor_records.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

// Compares bytes, dtypes, shapes and names; vocabulary rows up to the smaller count.
void expect_equal(const TensorMap& got, const TensorMap& expected, bool vocabulary_may_differ) {
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) {
      ADD_FAILURE() << name << " is missing";
      continue;
    }
    EXPECT_EQ(found->second.dtype, tensor.dtype) << name;
    if (vocabulary_may_differ && !(found->second.shape == tensor.shape)) {
      const std::size_t common = std::min(found->second.bytes.size(), tensor.bytes.size());
      EXPECT_EQ(found->second.shape[1], tensor.shape[1]) << name;
      EXPECT_TRUE(found->second.bytes.substr(0, common) == tensor.bytes.substr(0, common)) << name;
      continue;
    }
    EXPECT_EQ(found->second.shape, tensor.shape) << name;
    EXPECT_TRUE(found->second.bytes == tensor.bytes) << name << " differs";
  }
  for (const auto& [name, tensor] : got) {
    EXPECT_TRUE(expected.contains(name)) << name << " is too much";
  }
}

// Takes the optimizer's states out.
TensorMap take_optimizer(TensorMap& tensors) {
  TensorMap states;
  for (auto entry = tensors.begin(); entry != tensors.end();) {
    const auto next = std::next(entry);
    if (entry->first.starts_with("optimizer.")) states.insert(tensors.extract(entry));
    entry = next;
  }
  return states;
}

ConvertRequest request_of(const std::string& input, const std::string& output,
                          std::string_view format, const ParallelConfig& parallel = {}) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  request.parallel = parallel;
  return request;
}

struct Family {
  std::string name;
  ParallelConfig first;
  ParallelConfig second;
};

class Families : public testing::TestWithParam<Family> {};

void expect_record(const TensorBytes& got, const TensorRecord& record, const std::string& name) {
  EXPECT_EQ(safetensors_name(got.dtype), record.dtype) << name;
  std::vector<std::int64_t> shape(got.shape.begin(), got.shape.end());
  std::string_view bytes = got.bytes;
  if (record.rows) {
    ASSERT_GE(shape[0], *record.rows) << name;
    bytes = bytes.substr(0, bytes.size() / static_cast<std::size_t>(shape[0]) *
                                static_cast<std::size_t>(*record.rows));
    shape[0] = record.shape[0];
  }
  EXPECT_EQ(shape, record.shape) << name;
  EXPECT_EQ(content_digest(bytes), record.digest) << name << " differs";
}

// Every record has its tensor, and every tensor its record.
void expect_records(const TensorMap& got, const std::string& path) {
  const auto records = read_tensor_records(path);
  for (const auto& [name, record] : records) {
    const auto found = got.find(name);
    ASSERT_NE(found, got.end()) << name << " is missing";
    expect_record(found->second, record, name);
  }
  for (const auto& [name, tensor] : got) {
    EXPECT_TRUE(records.contains(name)) << name << " is too much";
  }
}

// A golden folder holds the tensors that the real converter made, or what they hash to.
void expect_recorded(const TensorMap& got, const std::string& golden) {
  if (std::filesystem::exists(golden + "/megatron_global.safetensors")) {
    expect_equal(got, read_all_tensors(golden).value(), false);
  } else {
    expect_records(got, golden + "/megatron_global.json");
  }
}

// HF -> Megatron equals what the real converter made; a reshard and the way back are the identity,
// also when only a config folder tells about the model.
TEST_P(Families, GoToMegatronAndBackBitByBit) {
  const std::string golden = golden_path("hf/" + GetParam().name);
  const TensorMap original = read_all_tensors(golden + "/hf").value();
  const TemporaryFolder out;

  const auto imported =
      convert_now(request_of(golden + "/hf", out / "first", "torch_dist", GetParam().first));
  ASSERT_TRUE(imported) << imported.error().text();
  expect_recorded(read_all_tensors(out / "first").value(), golden);

  const auto resharded =
      convert_now(request_of(out / "first", out / "second", "torch_dist", GetParam().second));
  ASSERT_TRUE(resharded) << resharded.error().text();
  expect_recorded(read_all_tensors(out / "second").value(), golden);

  const auto exported = convert_now(request_of(out / "second", out / "hf", "hf"));
  ASSERT_TRUE(exported) << exported.error().text();
  expect_equal(read_all_tensors(out / "hf").value(), original, false);
  EXPECT_TRUE(std::filesystem::exists(out / "hf/config.json"));

  std::filesystem::remove_all(out / "second/iter_0000000/hf");
  std::filesystem::create_directory(out / "config");
  std::filesystem::copy(golden + "/hf/config.json", out / "config/config.json");
  ConvertRequest bare = request_of(out / "second", out / "bare", "hf");
  bare.hf_config_dir = out / "config";
  bare.max_shard_bytes = 100'000;
  const auto from_config = convert_now(bare);
  ASSERT_TRUE(from_config) << from_config.error().text();
  expect_equal(read_all_tensors(out / "bare").value(), original, false);
}

INSTANTIATE_TEST_SUITE_P(Golden, Families,
                         testing::Values(Family{"llama3", {2, 2, 1, 1, 2}, {1, 3, 1, 1, 1}},
                                         Family{"llama3_4l", {4, 1, 1, 1, 4}, {2, 2, 2, 1, 2}},
                                         Family{"mistral", {2, 1, 1, 1, 2}, {1, 2, 1, 1, 1}},
                                         Family{"qwen2", {2, 2, 1, 1, 2}, {4, 1, 1, 1, 4}},
                                         Family{"qwen3", {2, 3, 1, 1, 2}, {1, 2, 1, 1, 1}},
                                         Family{"qwen3_moe", {2, 2, 1, 2, 1}, {1, 3, 1, 4, 2}},
                                         Family{"mixtral", {2, 2, 1, 2, 2}, {4, 1, 1, 4, 1}},
                                         Family{"deepseek_v3", {2, 2, 1, 2, 1}, {4, 1, 1, 8, 1}},
                                         Family{
                                             "deepseek_v3_mtp", {2, 2, 1, 4, 1}, {1, 3, 1, 1, 1}},
                                         Family{"gemma2", {2, 2, 1, 1, 2}, {4, 1, 1, 1, 4}},
                                         Family{"gpt_oss", {2, 2, 1, 2, 2}, {4, 1, 1, 4, 1}},
                                         Family{"glm45", {2, 3, 1, 2, 1}, {4, 1, 1, 8, 1}},
                                         Family{"olmoe", {2, 2, 1, 4, 2}, {4, 1, 1, 2, 4}},
                                         Family{"qwen3_vl", {2, 3, 1, 1, 2}, {1, 1, 1, 1, 1}},
                                         Family{"qwen25_vl", {2, 2, 1, 1, 2}, {4, 1, 1, 1, 4}},
                                         Family{"qwen35_vl", {2, 2, 1, 1, 2}, {1, 4, 1, 1, 1}},
                                         Family{"nemotron_h", {2, 2, 1, 2, 1}, {2, 1, 1, 4, 1}}),
                         [](const auto& test) { return test.param.name; });

// 499 words and the null tokenizer's own, which were padded to 512 for two ranks.
TEST(Vocabulary, IsPaddedAnewForTheTargetsRanks) {
  const std::string golden = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const auto height = [&](std::int64_t tensor, std::int64_t divisor) {
    const TemporaryFolder out;
    ConvertRequest request =
        request_of(golden, out / "megatron", "torch_dist", {tensor, 1, 1, 1, tensor});
    request.make_vocab_size_divisible_by = divisor;
    const auto done = convert_now(request);
    EXPECT_TRUE(done) << done.error().text();
    const Checkpoint made = open_checkpoint(out / "megatron").value();
    std::set<std::int64_t> rows;
    for (const StoredTensor& tensor_of : made.catalog.tensors) {
      const std::string& name = tensor_of.desc.name;
      const bool is_table =
          name.ends_with("word_embeddings.weight") || name.ends_with("output_layer.weight");
      if (is_table) rows.insert(tensor_of.desc.shape[0]);
    }
    EXPECT_EQ(rows.size(), 1U) << "with the optimizer's states";
    EXPECT_EQ(number_of(made.arguments, {"padded_vocab_size"}), *rows.begin());
    return *rows.begin();
  };
  EXPECT_EQ(height(1, 8), 504);
  EXPECT_EQ(height(4, 128), 512);
  EXPECT_EQ(height(8, 128), 1024) << "though eight ranks divide the rows that there are";
  EXPECT_EQ(height(1, 1), 500) << "no word is lost";
}

// What it was told, or one more: where rows don't say which, the version does.
TEST(Vocabulary, OfANullTokenizerIsWhatItsRowsSay) {
  const auto height = [](std::int64_t told, std::int64_t divisor, bool is_later) {
    const TemporaryFolder place;
    std::filesystem::copy(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"),
                          place.path() / "run", std::filesystem::copy_options::recursive);
    const std::string state = "run/iter_0000010/common.pt";
    CommonStateEdits edits;
    edits.arguments.emplace_back("vocab_size", told);
    edits.arguments.emplace_back("make_vocab_size_divisible_by", divisor);
    if (is_later) edits.arguments.emplace_back("null_tokenizer_pad_id", std::int64_t{-1});
    std::vector<std::string> notes;
    place.put(state, CommonState::read(place.get(state)).value().encode(edits, notes).value());
    ConvertRequest request = request_of(place / "run", place / "out", "torch_dist");
    request.make_vocab_size_divisible_by = 1;
    const auto done = convert_now(request);
    EXPECT_TRUE(done) << done.error().text();
    const TensorMap tensors = read_all_tensors(place / "out").value();
    return tensors.at("embedding.word_embeddings.weight").shape[0];
  };
  EXPECT_EQ(height(512, 64, false), 512);
  EXPECT_EQ(height(510, 1, true), 511);
  EXPECT_EQ(height(499, 64, false), 500);
  EXPECT_EQ(height(499, 64, true), 499);
}

// Of a --vocab-size that the tokenizer overruled nothing tells which rows are padding.
TEST(Vocabulary, KeepsRowsThatItsArgumentsDoNotExplain) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"),
                        place.path() / "run", std::filesystem::copy_options::recursive);
  const std::string state = "run/iter_0000010/common.pt";
  CommonStateEdits edits;
  edits.arguments.emplace_back("vocab_size", std::int64_t{100});
  std::vector<std::string> notes;
  place.put(state, CommonState::read(place.get(state)).value().encode(edits, notes).value());
  ConvertRequest request = request_of(place / "run", place / "out", "torch_dist");
  request.make_vocab_size_divisible_by = 1;
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  const TensorMap tensors = read_all_tensors(place / "out").value();
  EXPECT_EQ(tensors.at("embedding.word_embeddings.weight").shape[0], 512);
}

// The padding that a layout needed is cut off again, also where only arguments tell the height.
TEST(Vocabulary, LosesItsPaddingOnTheWayBack) {
  const std::string golden = golden_path("hf/llama3/hf");
  const TensorMap original = read_all_tensors(golden).value();
  for (const std::string_view form : {"torch_dist", "legacy"}) {
    const TemporaryFolder out;
    ConvertRequest import = request_of(golden, out / "megatron", form, {3, 1, 1, 1, 3});
    ASSERT_FALSE(prepare_conversion(import)) << "512 rows, three ranks";
    import.parallel = {1, 1, 1, 1, 1};
    import.make_vocab_size_divisible_by = 500;
    ASSERT_TRUE(convert_now(import));
    std::filesystem::remove_all(out / "megatron/iter_0000000/hf");
    const auto exported = convert_now(request_of(out / "megatron", out / "hf", "hf"));
    ASSERT_TRUE(exported) << exported.error().text();
    expect_equal(read_all_tensors(out / "hf").value(), original, false);
  }
}

struct Saved {
  std::string path;
  std::string truth;
  bool has_optimizer;
};

class MegatronFiles : public testing::TestWithParam<Saved> {};

// Directories that Megatron-Core itself wrote, at every layout that divides.
TEST_P(MegatronFiles, AreReshardedToTheTruth) {
  const std::string input = golden_path("mcore/" + GetParam().path);
  const std::string golden = golden_path("mcore/" + GetParam().truth);
  const TensorMap truth = read_all_tensors(golden).value();
  const bool is_moe = GetParam().truth.starts_with("moe");
  for (const std::int64_t tp : {1, 2, 4}) {
    for (const std::int64_t pp : {1, 2, 4}) {
      for (const std::int64_t ep : {1, 2, 4}) {
        if (ep > 1 && !is_moe) continue;
        const TemporaryFolder out;
        ConvertRequest request = request_of(input, out / "x", "torch_dist", {tp, pp, 1, ep, 1});
        request.optimizer =
            GetParam().has_optimizer ? OptimizerPolicy::kKeep : OptimizerPolicy::kDrop;
        const auto converted = convert_now(request);
        ASSERT_TRUE(converted) << converted.error().text();
        TensorMap got = read_all_tensors(out / "x").value();
        const TensorMap states = take_optimizer(got);
        expect_equal(got, truth, true);
        if (GetParam().has_optimizer) {
          expect_records(states, golden + "/truth_optimizer.json");
        } else {
          EXPECT_TRUE(states.empty());
        }
        const Checkpoint written = open_checkpoint(out / "x").value();
        EXPECT_EQ(written.location.iteration, 10);
        EXPECT_EQ(written.arguments.at("tensor_model_parallel_size"), ArgValue{tp});
        EXPECT_EQ(written.arguments.at("pipeline_model_parallel_size"), ArgValue{pp});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, MegatronFiles,
    testing::Values(Saved{"dense_te/v0.16.1/tp2pp2-torch_dist-full", "dense_te", true},
                    Saved{"dense_te/v0.20.0dev/tp2pp1dp2-torch_dist-full", "dense_te", true},
                    Saved{"gpt2_te/v0.20.0dev/tp1pp2-torch_dist-full", "gpt2_te", true},
                    Saved{"moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full", "moe_te_grouped",
                          true},
                    Saved{"dense/v0.15.3/tp2pp2-torch_dist-modelspace", "dense_te", true},
                    Saved{"dense/v0.15.3/tp2pp1dp2-torch_dist-zero", "dense_te", true},
                    Saved{"dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket", "dense_te", true}),
    [](const auto& test) {
      std::string name = test.param.path;
      std::replace_if(
          name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

// Puts other bytes where one rank's copy of a tensor is.
void alter_copy(const std::string& checkpoint, const std::string& file, const std::string& name) {
  const Checkpoint opened = open_checkpoint(checkpoint).value();
  const auto tensor = std::find_if(opened.catalog.tensors.begin(), opened.catalog.tensors.end(),
                                   [&](const StoredTensor& t) { return t.desc.name == name; });
  ASSERT_NE(tensor, opened.catalog.tensors.end());
  for (std::size_t i = 0; i < tensor->chunks.size(); ++i) {
    if (opened.catalog.files[tensor->chunks.file(i)] != file) continue;
    alter_sealed(opened.location.path + "/" + file, tensor->chunks.range(i), 6, '\x55');
  }
}

// deepseek_v3_mtp's second embedding made to differ from the first: torch_dist keeps it, a legacy
// file has no place for it, and says so.
TEST(HfExtras, AreLeftOutOfLegacyFilesByName) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/deepseek_v3_mtp/hf"), place / "in",
                        std::filesystem::copy_options::recursive);
  const std::string name = "model.layers.3.embed_tokens.weight";
  alter_copy(place / "in", "model.safetensors", name);
  const auto prepared = prepare_conversion(request_of(place / "in", place / "out", "legacy"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  EXPECT_THAT(prepared->notes,
              testing::Contains(name + " is left out: the target has no place for it"));
  const auto is_extra = [](const StoredTensor& tensor) {
    return tensor.desc.name.find("hf_extra") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::none_of(prepared->plan.target.tensors, is_extra));
  const auto kept = prepare_conversion(request_of(place / "in", place / "kept", "torch_dist"));
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_TRUE(std::ranges::any_of(kept->plan.target.tensors, is_extra));
  // The list of what Hugging Face stored asks for nothing that was left out.
  ASSERT_TRUE(convert_now(request_of(place / "in", place / "out", "legacy")));
  const auto back = prepare_conversion(request_of(place / "out", place / "back", "hf"));
  EXPECT_TRUE(back) << back.error().text();
}

struct Legacy {
  std::string family;
  std::string folder;
  ParallelConfig target;
};

class LegacyFiles : public testing::TestWithParam<Legacy> {};

// What Megatron saved with --ckpt-format torch, to torch_dist and to Hugging Face in one step each.
TEST_P(LegacyFiles, BecomeTorchDistAndHuggingFace) {
  const std::string golden = golden_path("hf/" + GetParam().family);
  const std::string input = golden + "/" + GetParam().folder;
  const TemporaryFolder out;
  const auto resharded =
      convert_now(request_of(input, out / "torch_dist", "torch_dist", GetParam().target));
  ASSERT_TRUE(resharded) << resharded.error().text();
  expect_equal(read_all_tensors(out / "torch_dist").value(), read_all_tensors(golden).value(),
               true);
  ConvertRequest request = request_of(input, out / "hf", "hf");
  request.hf_config_dir = golden + "/hf";
  const auto exported = convert_now(request);
  ASSERT_TRUE(exported) << exported.error().text();
  expect_equal(read_all_tensors(out / "hf").value(), read_all_tensors(golden + "/hf").value(),
               false);
}

INSTANTIATE_TEST_SUITE_P(
    Golden, LegacyFiles,
    testing::Values(Legacy{"llama3", "legacy_tp2pp2ep1", {4, 1, 1, 1, 4}},
                    Legacy{"llama3_4l", "legacy_tp1pp2ep1vpp2", {2, 4, 1, 1, 2}},
                    Legacy{"qwen3_moe", "legacy_tp1pp1ep2", {2, 1, 1, 4, 1}},
                    Legacy{"qwen3_moe", "legacy_tp2pp2ep2etp1", {1, 3, 1, 1, 1}}),
    [](const auto& test) { return test.param.family + "_" + test.param.folder; });

// Every entry of every rank's file, by folder, state dict and name.
TensorMap read_rank_files(const std::string& folder) {
  TensorMap entries;
  for (const auto& rank : std::filesystem::directory_iterator(folder)) {
    const std::string path = rank.path() / "model_optim_rng.pt";
    if (!std::filesystem::exists(path)) continue;
    const std::string bytes = read_file(path);
    const auto file =
        read_legacy_file(*make_memory_file(path, bytes), LegacyDetail::kPlaces).value();
    for (std::size_t m = 0; m < file.models.size(); ++m) {
      const std::string prefix = fmt::format("{} {} ", rank.path().filename().string(), m);
      for (const LegacyTensor& tensor : file.models[m].tensors) {
        const ByteRange range = tensor.place.range;
        EXPECT_TRUE(tensor.place.strides.empty());
        entries[prefix + tensor.name] = {tensor.place.dtype, tensor.place.shape,
                                         bytes.substr(range.offset, range.length)};
      }
      for (const std::string& name : file.models[m].objects) entries[prefix + name] = {};
    }
  }
  return entries;
}

class LegacyTargets : public testing::TestWithParam<Legacy> {};

// torch_dist to legacy at the layout that Megatron saved: the same files, tensor by tensor.
TEST_P(LegacyTargets, EqualMegatronsOwnFiles) {
  const std::string golden = golden_path("hf/" + GetParam().family + "/" + GetParam().folder);
  const TemporaryFolder out;
  const auto torch_dist = convert_now(request_of(golden, out / "torch_dist", "torch_dist"));
  ASSERT_TRUE(torch_dist) << torch_dist.error().text();
  const auto legacy =
      convert_now(request_of(out / "torch_dist", out / "legacy", "legacy", GetParam().target));
  ASSERT_TRUE(legacy) << legacy.error().text();
  const TensorMap expected = read_rank_files(golden + "/iter_0000001");
  ASSERT_GT(expected.size(), 40u);
  expect_equal(read_rank_files(out / "legacy/iter_0000001"), expected, false);
  const Checkpoint written = open_checkpoint(out / "legacy").value();
  EXPECT_EQ(written.arguments.at("pipeline_model_parallel_size"),
            ArgValue{GetParam().target.pipeline});
}

INSTANTIATE_TEST_SUITE_P(
    Golden, LegacyTargets,
    testing::Values(Legacy{"llama3", "legacy_tp2pp2ep1", {2, 2, 1, 1, 2}},
                    Legacy{"llama3_4l", "legacy_tp1pp2ep1vpp2", {1, 2, 2, 1, 1}},
                    Legacy{"qwen3_moe", "legacy_tp1pp1ep2", {1, 1, 1, 2, 1}},
                    Legacy{"qwen3_moe", "legacy_tp2pp2ep2etp1", {2, 2, 1, 2, 1}}),
    [](const auto& test) { return test.param.family + "_" + test.param.folder; });

// Through legacy files of any layout and back, for every family.
TEST_P(Families, PassThroughLegacyFiles) {
  const std::string golden = golden_path("hf/" + GetParam().name);
  const TensorMap original = read_all_tensors(golden + "/hf").value();
  for (const ParallelConfig& layout : {GetParam().first, GetParam().second}) {
    if (layout.tensor % layout.expert_tensor != 0) continue;  // no names for that
    for (const bool all_coordinates : {false, true}) {
      const TemporaryFolder out;
      ConvertRequest import = request_of(golden + "/hf", out / "legacy", "legacy", layout);
      import.names_all_coordinates = all_coordinates;
      const auto imported = convert_now(import);
      ASSERT_TRUE(imported) << imported.error().text();
      const auto exported = convert_now(request_of(out / "legacy", out / "hf", "hf"));
      ASSERT_TRUE(exported) << exported.error().text();
      expect_equal(read_all_tensors(out / "hf").value(), original, false);
    }
  }
}

// transformers computes with routers' biases in float32: a cast that rounds them is another model,
// as the way over Megatron's names has it.
TEST(Casts, LeaveRoutersBiasesAlone) {
  const TemporaryFolder folder;
  for (const auto& [dtype, kept] : {std::pair(DType::kF16, "2 tensors (model.layers.1.mlp.gate."),
                                    std::pair(DType::kF32, "")}) {
    ConvertRequest request =
        request_of(golden_path("hf/deepseek_v3/hf"), folder / std::string(torch_name(dtype)), "hf");
    request.dtype = dtype;
    const auto done = convert_now(request);
    ASSERT_TRUE(done) << done.error().text();
    const TensorMap tensors = read_all_tensors(request.output).value();
    for (const auto& [name, tensor] : tensors) {
      const bool is_bias = name.ends_with("e_score_correction_bias");
      EXPECT_EQ(tensor.dtype, is_bias ? DType::kF32 : dtype) << name;
    }
    const std::string told = fmt::format("{}", fmt::join(done->notes, "; "));
    if (*kept != '\0') {
      EXPECT_THAT(told, HasSubstr(kept));
    } else {
      EXPECT_THAT(told, Not(HasSubstr("--dtype")));
    }
  }
  ConvertRequest part = request_of(golden_path("hf/deepseek_v3/hf"), folder / "part", "hf");
  part.dtype = DType::kF16;
  part.include = {"*layers.1.mlp.gate.*"};
  ASSERT_TRUE(convert_now(part));
  const TensorMap tensors = read_all_tensors(part.output).value();
  EXPECT_EQ(tensors.at("model.layers.1.mlp.gate.weight").dtype, DType::kF16);
  EXPECT_EQ(tensors.at("model.layers.1.mlp.gate.e_score_correction_bias").dtype, DType::kF32);
}

TEST(Targets, AreGivenByAName) {
  const TemporaryFolder out;
  const auto unknown =
      prepare_conversion(request_of(golden_path("hf/llama3/hf"), out / "x", "dpc"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUsage);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("did you mean dcp?"));
  for (const std::string_view name : target_names()) {
    EXPECT_THAT(unknown.error().message, testing::HasSubstr(name));
  }
}

TEST(Targets, SayWhatTheyHaveNoPlaceFor) {
  const TemporaryFolder out;
  const std::string source = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  const auto files = prepare_conversion(request_of(source, out / "x", "safetensors"));
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_THAT(files->notes, testing::Contains(testing::HasSubstr("opaque entries are left out")));
  const auto dcp = prepare_conversion(request_of(source, out / "x", "dcp"));
  ASSERT_TRUE(dcp) << dcp.error().text();
  EXPECT_FALSE(dcp->plan.target.objects.empty());
}

TEST(LegacyTarget, RefusesLayoutsThatNamesCannotTell) {
  const TemporaryFolder out;
  const auto refused =
      convert_now(request_of(golden_path("hf/qwen3_moe/hf"), out / "x", "legacy", {1, 1, 1, 2, 2}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotDivisible);
  EXPECT_THAT(refused.error().message, HasSubstr("overwrite each other"));
}

TEST(LegacyReplicas, ThatDifferAreNamed) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/qwen3_moe/legacy_tp2pp2ep2etp1"), place / "in",
                        std::filesystem::copy_options::recursive);
  alter_copy(place / "in", "mp_rank_01_001_001/model_optim_rng.pt",
             "decoder.layers.2.pre_mlp_layernorm.weight");
  ConvertRequest request = request_of(place / "in", place / "out", "torch_dist");
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << "a plan only counts";
  EXPECT_GT(prepared->replicas.chunks, 0U);
  EXPECT_GT(prepared->replicas.bytes, 0U);
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
  EXPECT_THAT(refused.error().message, HasSubstr("decoder.layers.2.pre_mlp_layernorm.weight"));
  EXPECT_THAT(refused.error().message, HasSubstr("mp_rank_01_001_001/model_optim_rng.pt@"));
  EXPECT_FALSE(std::filesystem::exists(place / "out"));
  request.check_replicas = ReplicaCheck::kNone;
  EXPECT_TRUE(convert_now(request));
}

// Both tensor ranks given the first one's part: what a tool does that takes a replica for a shard.
TEST(LegacyShards, ThatAreTheSameOnAllRanksAreNoticed) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/llama3/hf"), place / "hf",
                        std::filesystem::copy_options::recursive);
  const auto model = open_local_directory(place / "hf").value()->open("model.safetensors").value();
  std::string bytes = place.get("hf/model.safetensors");
  const SafetensorsHeader header = read_safetensors_header(*model).value();
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (tensor.desc.name != "lm_head.weight") continue;
    const std::size_t half = tensor.range.length / 2;
    const std::string first = bytes.substr(tensor.range.offset, half);
    bytes.replace(tensor.range.offset + half, half, first);
  }
  place.put("hf/model.safetensors", bytes);
  ASSERT_TRUE(convert_now(request_of(place / "hf", place / "in", "legacy", {2, 1, 1, 1, 2})));
  ConvertRequest request = request_of(place / "in", place / "out", "torch_dist");
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kReplicasDiffer);
  EXPECT_THAT(refused.error().message, HasSubstr("the same bytes in all 2 tensor-parallel ranks"));
  EXPECT_FALSE(std::filesystem::exists(place / "out"));
  request.check_replicas = ReplicaCheck::kNone;
  EXPECT_TRUE(convert_now(request));
}

// Experts made of one dense layer are alike on every rank, and rightly so.
TEST(LegacyShards, OfExpertsMayBeTheSame) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/qwen3_moe/legacy_tp1pp1ep2"), place / "in",
                        std::filesystem::copy_options::recursive);
  const std::string ranks = place / "in/iter_0000001/";
  const std::string name = "/model_optim_rng.pt";
  std::filesystem::copy_file(ranks + "mp_rank_00_000" + name, ranks + "mp_rank_00_001" + name,
                             std::filesystem::copy_options::overwrite_existing);
  const auto converted = convert_now(request_of(place / "in", place / "out", "torch_dist"));
  EXPECT_TRUE(converted) << converted.error().text();
}

TEST(LegacyFolders, ThatAreMissingAreNoticed) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/llama3/legacy_tp2pp2ep1"), place / "in",
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(place / "in/iter_0000001/mp_rank_01_001");
  const auto refused = convert_now(request_of(place / "in", place / "out", "torch_dist"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kHole);
  EXPECT_THAT(refused.error().message, HasSubstr("missing mp_rank_01_001: tensor "));
}

TEST(Convert, CallsAnUnknownModelByWhatItsConfigSays) {
  const TemporaryFolder place;
  std::filesystem::copy(golden_path("hf/llama3/hf"), place / "in");
  auto config = nlohmann::json::parse(read_golden("hf/llama3/hf/config.json"));
  config["model_type"] = "nobodys_text";
  const auto message = [&] {
    place.put("in/config.json", config.dump());
    const auto refused = convert_now(request_of(place / "in", place / "out", "torch_dist"));
    return refused ? "none" : refused.error().message;
  };
  config["architectures"] = {"NobodysModel"};
  EXPECT_THAT(message(), HasSubstr("found architecture 'NobodysModel'"));
  config.erase("architectures");
  EXPECT_THAT(message(), HasSubstr("found architecture 'nobodys_text'"));
}

// A family of the user's own: Llama with a tensor that is the same in every model.
std::string map_with_constant(const TemporaryFolder& place, const std::string& value) {
  place.put("map.json", R"({"family": "llama_scaled", "extends": "llama",
      "architectures": ["LlamaScaledForCausalLM"],
      "model_types": ["llama_scaled"], "rules": [{"use": "ends"},
      {"use": "layer", "for": "layer", "megatron": "decoder.layers.{layer}.",
       "hf": "model.layers.{layer}."},
      {"megatron": "decoder.scale.weight", "transform": "constant", "value": )" +
                            value + R"(, "shape": ["hidden", 2]}]})");
  return place / "map.json";
}

TEST(Constants, AreCheckedBeforeTheyAreLeftOut) {
  const TemporaryFolder place;
  ConvertRequest import =
      request_of(golden_path("hf/llama3/hf"), place / "megatron", "torch_dist", {2, 1, 1, 1, 2});
  import.map_files = {map_with_constant(place, "2.5")};
  import.family = "llama_scaled";
  const auto imported = convert_now(import);
  ASSERT_TRUE(imported) << imported.error().text();
  const TensorMap megatron = read_all_tensors(place / "megatron").value();
  EXPECT_EQ(megatron.at("decoder.scale.weight").bytes.substr(0, 4), "\x20\x40\x20\x40") << "bf16";

  ConvertRequest exported = request_of(place / "megatron", place / "hf", "hf");
  exported.map_files = import.map_files;
  exported.family = import.family;
  const auto back = convert_now(exported);
  ASSERT_TRUE(back) << back.error().text();
  expect_equal(read_all_tensors(place / "hf").value(),
               read_all_tensors(golden_path("hf/llama3/hf")).value(), false);

  exported.map_files = {map_with_constant(place, "1")};
  exported.output = place / "other";
  const auto refused = convert_now(exported);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(refused.error().message, HasSubstr("decoder.scale.weight: found 2.5"));
  EXPECT_FALSE(std::filesystem::exists(place / "other"));
}

}  // namespace
}  // namespace shardwright
