// SPDX-License-Identifier: Apache-2.0
#include "compare/source_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "convert/golden.h"
#include "format/formats.h"
#include "format/fsdp_dtensor/fsdp_source.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

ConvertRequest losses_request(const std::string& input, const std::string& output,
                              std::string_view format) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  return request;
}

std::string notes_of(const PreparedConversion& done) {
  std::string text;
  for (const std::string& note : done.notes) text += note + "\n";
  return text;
}

// A sound model without some of its tensors, in the names that it has.
std::string put_part(const TemporaryFolder& folder, const std::string& model,
                     const std::vector<std::string>& left_out) {
  ConvertRequest request = losses_request(model, folder / "part", "dcp");
  request.exclude = left_out;
  EXPECT_TRUE(convert_now(request));
  return folder / "part";
}

std::string put_fsdp_model(const TemporaryFolder& folder) {
  EXPECT_TRUE(
      convert_now(losses_request(golden_path("hf/llama3/hf"), folder / "whole", "fsdp_dtensor")));
  return folder / "whole";
}

class LossyMlite : public testing::TestWithParam<std::string_view> {};

TEST_P(LossyMlite, IsTakenOnlyWhereTheLossIsAccepted) {
  const TemporaryFolder folder;
  const std::string source = golden_path("dcp/mlite_lost_experts");
  ConvertRequest request = losses_request(source, folder / "out", GetParam());
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLossySource);
  EXPECT_THAT(refused.error().message, HasSubstr("the experts of one EP rank only"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  request.accept_loss = true;
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(notes_of(*done), HasSubstr("--accept-loss: tensor model.layers.0.mlp.experts."));
  EXPECT_EQ(difference(read_all_tensors(folder / "out").value(), read_all_tensors(source).value()),
            "");
}

TEST_P(LossyMlite, IsTakenWithoutItsExperts) {
  const TemporaryFolder folder;
  ConvertRequest request =
      losses_request(golden_path("dcp/mlite_lost_experts"), folder / "out", GetParam());
  request.exclude = {"*.experts.*"};
  const auto done = convert_now(request);
  EXPECT_TRUE(done) << done.error().text();
}

INSTANTIATE_TEST_SUITE_P(Targets, LossyMlite, testing::Values("dcp", "safetensors"));

TEST(SourceLosses, AreLayersThatNamesSkip) {
  const TemporaryFolder folder;
  const std::string part =
      put_part(folder, golden_path("hf/llama3/legacy_tp2pp2ep1"), {"decoder.layers.1.*"});
  for (const std::string_view format : {"dcp", "safetensors", "torch_dist", "legacy"}) {
    ConvertRequest request = losses_request(part, folder / "out", format);
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kLossySource) << refused.error().text();
    EXPECT_THAT(refused.error().message, HasSubstr("found 2 layers, none of 1"));
  }
  ConvertRequest request = losses_request(part, folder / "out", "safetensors");
  request.accept_loss = true;
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(notes_of(*done), HasSubstr("--accept-loss: decoder.layers: found 2 layers"));
}

// No family need be known for that: neither arguments nor config.json name one here.
TEST(SourceLosses, AreTensorsThatAModuleNeverLacks) {
  const TemporaryFolder folder;
  const std::string part =
      put_part(folder, golden_path("hf/llama3/legacy_tp2pp2ep1"), {"*.linear_fc2.*"});
  for (const std::string_view format : {"dcp", "safetensors", "torch_dist", "legacy"}) {
    const auto refused = prepare_conversion(losses_request(part, folder / "out", format));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kLossySource) << refused.error().text();
    EXPECT_THAT(refused.error().message,
                HasSubstr("nothing is stored of decoder.layers.0.mlp.linear_fc2.weight"));
  }
}

// Nothing proves it of a run whose family is not known, so it is told.
TEST(SourceLosses, AreToldWhereOneLayerLacksWhatOthersHave) {
  const TemporaryFolder folder;
  const auto made = [&](const std::string& from, const std::string& name,
                        const std::vector<std::string>& exclude) {
    ConvertRequest request = losses_request(from, folder / name, "torch_dist");
    request.exclude = exclude;
    const auto done = convert_now(request);
    EXPECT_TRUE(done) << done.error().text();
    std::filesystem::remove_all(folder / (name + "/iter_0000000/hf"));
    return done ? notes_of(*done) : "";
  };
  const std::string lost = "decoder.layers.1.self_attention.linear_q_down_proj.weight";
  made(golden_path("hf/deepseek_v3/hf"), "whole", {});
  EXPECT_THAT(made(folder / "whole", "part", {lost}), Not(HasSubstr("is stored of")));
  EXPECT_THAT(made(folder / "part", "again", {}), HasSubstr("nothing is stored of " + lost));
}

// Its names are others, and what they name is the same model.
TEST(SourceLosses, AreThoseOfMegatronFsdpToo) {
  const TemporaryFolder folder;
  const std::string whole = put_fsdp_model(folder);
  const std::string part = put_part(folder, whole, {"*layers.1.self_attention.linear_proj.weight"});
  const std::vector<std::string_view> formats = {"dcp", "safetensors", "torch_dist", "legacy",
                                                 "fsdp_dtensor"};
  for (const std::string_view format : formats) {
    EXPECT_TRUE(prepare_conversion(losses_request(whole, folder / "out", format)));
    ConvertRequest request = losses_request(part, folder / "out", format);
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused) << format;
    EXPECT_EQ(refused.error().code, Code::kLossySource) << refused.error().text();
    EXPECT_THAT(refused.error().message,
                HasSubstr("nothing is stored of decoder.layers.1.self_attention.linear_proj."));
    request.accept_loss = true;
    const auto accepted = prepare_conversion(request);
    ASSERT_TRUE(accepted) << format << accepted.error().text();
    EXPECT_THAT(notes_of(*accepted), HasSubstr("--accept-loss: decoder.layers.1.self_attention."));
  }
}

// Each is stored under a name of its own.
TEST(SourceLosses, AreHalvesOfAGateThatMegatronFsdpStores) {
  const TemporaryFolder folder;
  const std::string part =
      put_part(folder, put_fsdp_model(folder), {"*layers.1.mlp.linear_fc1.weight_v"});
  for (const std::string_view format : {"dcp", "safetensors", "torch_dist", "legacy"}) {
    ConvertRequest request = losses_request(part, folder / "out", format);
    const auto refused = prepare_conversion(request);
    ASSERT_FALSE(refused) << format;
    EXPECT_THAT(refused.error().message,
                HasSubstr("tensor decoder.layers.1.mlp.linear_fc1.weight: found 1 of its pieces"));
    request.accept_loss = true;
    const auto accepted = prepare_conversion(request);
    const bool is_copy = format == "dcp" || format == "safetensors";
    ASSERT_EQ(accepted.has_value(), is_copy) << format;
    if (!is_copy) continue;
    EXPECT_THAT(notes_of(*accepted), HasSubstr("--accept-loss: tensor decoder.layers.1."));
  }
}

// What a family's mapping refuses is no model.
TEST(SourceLosses, OfAHuggingFaceTargetAreTheMappings) {
  const TemporaryFolder folder;
  const std::string part =
      put_part(folder, golden_path("hf/llama3/legacy_tp2pp2ep1"), {"decoder.layers.1.*"});
  ConvertRequest request = losses_request(part, folder / "out", "hf");
  request.hf_config_dir = golden_path("hf/llama3/hf");
  const auto refused = prepare_conversion(request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, Not(HasSubstr("--accept-loss")));
  request.accept_loss = true;
  const auto unaccepted = prepare_conversion(request);
  ASSERT_FALSE(unaccepted);
  EXPECT_EQ(unaccepted.error().code, refused.error().code);
  EXPECT_EQ(unaccepted.error().message,
            refused.error().message +
                "; --accept-loss does not help: config.json asks for the whole model; "
                "--to safetensors keeps what is there under its stored names");
}

// A config.json of fewer layers than the run's arguments say makes a whole model of the rest.
TEST(SourceLosses, GoAlongToHuggingFaceWhereTheRestIsAModel) {
  const TemporaryFolder folder;
  ConvertRequest request =
      losses_request(golden_path("hf/llama3/legacy_tp2pp2ep1"), folder / "part", "torch_dist");
  request.exclude = {"decoder.layers.2.*"};
  ASSERT_TRUE(convert_now(request));
  std::string config = read_golden("hf/llama3/hf/config.json");
  config.replace(config.find("\"num_hidden_layers\": 3"), 22, "\"num_hidden_layers\": 2");
  folder.put("config/config.json", config);
  request = losses_request(folder / "part", folder / "out", "hf");
  request.hf_config_dir = folder / "config";
  request.accept_loss = true;
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(notes_of(*done),
              HasSubstr("--accept-loss: decoder.layers: found 2 layers, none of "));
  request = losses_request(folder / "part", folder / "again", "torch_dist");
  EXPECT_FALSE(prepare_conversion(request));
}

TEST(SourceLosses, AreNamedWhereElementsAreMissing) {
  const TemporaryFolder folder;
  const std::string source = golden_path("hf/llama3/hf");
  Checkpoint checkpoint = open_checkpoint(source).value();
  Catalog wanted = checkpoint.catalog;
  ConvertRequest request = losses_request(source, folder / "out", "safetensors");
  request.accept_loss = true;
  std::vector<std::string> notes;
  EXPECT_TRUE(check_losses(request, checkpoint, wanted, notes));
  for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
    wanted.tensors[i].chunks = ChunkList(wanted.tensors[i].desc.shape.size());
  }
  const Status refused = check_losses(request, checkpoint, wanted, notes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kHole);
  EXPECT_THAT(refused.error().message,
              HasSubstr("tensor " + wanted.tensors[1].desc.name + ": no chunk holds "));
  EXPECT_THAT(refused.error().message,
              HasSubstr("2 tensors have such holes: " + wanted.tensors[1].desc.name + ", " +
                        wanted.tensors[3].desc.name + ")"));
  EXPECT_THAT(refused.error().message,
              HasSubstr("--accept-loss does not help: nothing says what was there; --exclude"));
}

// Which stage's the layers are that are there nobody can say: their names are all that is kept.
TEST(SourceLosses, OfStagesAreAcceptedUnderStoredNamesOnly) {
  const TemporaryFolder folder;
  ConvertRequest request =
      losses_request(golden_path("hf/llama3/hf"), folder / "in", "fsdp_dtensor");
  ASSERT_TRUE(convert_now(request));
  Checkpoint source = open_checkpoint(folder / "in").value();
  source.arguments["pipeline_model_parallel_size"] = std::int64_t{2};
  source.arguments["num_layers"] = std::int64_t{6};
  request.accept_loss = true;
  for (const std::string_view format : {"torch_dist", "hf"}) {
    request.format = format;
    std::vector<std::string> notes;
    Catalog wanted = source.catalog;
    ASSERT_TRUE(check_losses(request, source, wanted, notes));
    EXPECT_THAT(notes, testing::ElementsAre(
                           HasSubstr("--accept-loss: model: found 3 layers by name, expected 6")));
    const Status undone = undo_fsdp(request, source, wanted, notes);
    ASSERT_FALSE(undone);
    const Error told = why_not_accepted(request, undone.error());
    EXPECT_EQ(told.code, Code::kLossySource);
    EXPECT_THAT(told.message,
                HasSubstr("--accept-loss does not help: nothing says which of them is there; --to "
                          "safetensors keeps it under its stored name"));
  }
  // Digests and differences have no other names to give.
  std::vector<std::string> notes;
  EXPECT_EQ(named_canonically(source.catalog, source.arguments, notes).value().tensors.size(),
            source.catalog.tensors.size() - 3);
  EXPECT_FALSE(canonical_from_fsdp(source.catalog, source.arguments, notes));
}

// Whatever files it lies in.
TEST(FsdpSource, IsOneUnderItsOwnNames) {
  const TemporaryFolder folder;
  ASSERT_TRUE(
      convert_now(losses_request(golden_path("hf/llama3/hf"), folder / "fsdp", "fsdp_dtensor")));
  ASSERT_TRUE(convert_now(losses_request(folder / "fsdp", folder / "files", "safetensors")));
  const Location location = open_checkpoint(folder / "files").value().location;
  EXPECT_EQ(location.format, "fsdp_dtensor");
  EXPECT_FALSE(location.traits.has_chunk_list);
  EXPECT_TRUE(location.traits.has_module_pieces);
  EXPECT_TRUE(location.traits.has_state_entries);
  EXPECT_TRUE(location.traits.weights_are_main);
}

TEST(SourceLosses, AreStagesThatReplacedEachOther) {
  Catalog catalog;
  for (const char* layer : {"0", "1"}) {
    catalog.tensors.push_back(
        {{std::string("model.module.module.module.decoder.layers.") + layer + ".w",
          DType::kF32,
          {1}},
         ChunkList(1),
         Encoding::kRaw});
  }
  Arguments arguments{{"pipeline_model_parallel_size", std::int64_t{2}},
                      {"num_layers", std::int64_t{4}}};
  const Status lost = check_fsdp_stages(catalog, arguments);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kLossySource);
  Checkpoint source;
  source.location.format = "fsdp_dtensor";
  source.location.traits = find_source_format("fsdp_dtensor")->traits();
  source.catalog = std::move(catalog);
  source.arguments = arguments;
  EXPECT_THAT(losses_of(source).value(), testing::ElementsAre(HasSubstr("found 2 layers by name")));
  source.arguments["num_layers"] = std::int64_t{2};
  EXPECT_THAT(losses_of(source).value(), testing::IsEmpty());
}

// A copy may have what a model has not: what another tool has put beside it, halves that don't go
// together, those of all layers in one.
TEST(SourceLosses, AreNotWhatOnlyAModelCannotHave) {
  Checkpoint source;
  source.location.format = "fsdp_dtensor";
  source.location.traits = find_source_format("fsdp_dtensor")->traits();
  const auto add = [&](const std::string& name, const Dims& shape) {
    source.catalog.tensors.push_back(
        {{name, DType::kF32, shape}, ChunkList(shape.size()), Encoding::kRaw});
  };
  const std::string decoder = "model.module.module.module.decoder.layers.";
  add("notes", {1});
  for (const std::string name : {"mlp.linear_fc1.weight", "0.mlp.linear_fc1.weight"}) {
    add(decoder + name + "_w", {2, 4});
    add(decoder + name + "_v", {name.starts_with("0") ? 3 : 2, 4});
  }
  EXPECT_THAT(losses_of(source).value(), testing::IsEmpty());
  add(decoder + "1.mlp.linear_fc1.weight_w", {2, 4});
  EXPECT_THAT(losses_of(source).value(),
              testing::ElementsAre(HasSubstr("found 1 of its pieces, expected _w and _v")));
}

}  // namespace
}  // namespace shardwright
