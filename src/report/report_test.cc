// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "report/catalog_columns.h"
#include "report/plan_document.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The document in a page.
Json shown(const std::string& html) {
  const std::string begin = R"(id="document">)";
  const std::size_t from = html.find(begin) + begin.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from));
}

std::vector<std::string> names_in(const Json& column) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < column["rest"].size(); ++i) {
    const std::string before = names.empty() ? "" : names.back();
    names.push_back(before.substr(0, column["shared"][i].get<std::size_t>()) +
                    column["rest"][i].get<std::string>());
  }
  return names;
}

TEST(Report, IsWhatTheOtherCommandsFind) {
  const Planted made;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 2, 1, 1, 2}, made.path());
  const Report report = make_report({.path = made.path()}).value();
  EXPECT_EQ(report.findings, 0u);
  EXPECT_THAT(report.failures, IsEmpty());
  const Json document = shown(report.html);
  EXPECT_EQ(document["schema"], "shardwright/page/1");
  EXPECT_EQ(document["kind"], "checkpoint");
  const Json& side = document["checkpoints"][0];
  EXPECT_EQ(side["format"], "torch_dist");
  EXPECT_EQ(side["saved_with"], Json::parse(R"([["TP","2"],["PP","2"],["ETP","2"]])"));
  const Checkpoint checkpoint = open_checkpoint(made.path()).value();
  EXPECT_THAT(names_in(side["catalog"]["names"]), SizeIs(checkpoint.catalog.tensors.size()));
  EXPECT_EQ(report.tensors, checkpoint.catalog.tensors.size());
  EXPECT_EQ(side["diagnosis"]["complete"], true);
  // What reads every byte is not done unasked.
  EXPECT_FALSE(side.contains("proof"));
  EXPECT_FALSE(side.contains("statistics"));
}

TEST(Report, HasStatisticsAndTheProofWhereTheyAreAskedFor) {
  const std::string path = golden_path("hf/llama3/hf");
  const Report report = make_report({.path = path, .statistics = true, .verify = true}).value();
  const Json side = shown(report.html)["checkpoints"][0];
  EXPECT_EQ(side["proof"]["proven"], true);
  EXPECT_THAT(side["proof"]["checks"], testing::Not(IsEmpty()));
  const auto names = names_in(side["catalog"]["names"]);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorReport tensor = show_tensor(path, names[i], {}).value();
    EXPECT_NEAR(side["statistics"]["min"][i].get<double>(), *tensor.least, 1e-6) << names[i];
    EXPECT_NEAR(side["statistics"]["std"][i].get<double>(), *tensor.deviation, 1e-6) << names[i];
    EXPECT_EQ(side["statistics"]["zero"][i], tensor.zero) << names[i];
    EXPECT_TRUE(side["statistics"]["histogram"][i].is_array()) << names[i];
  }
}

// One element is another number: of two pages' worth of tensors only that one differs.
TEST(Report, ShowsWhatIsDifferent) {
  const Planted left;
  const Planted right;
  Planted::copy("hf/llama3/hf", left);
  Planted::copy("hf/llama3/hf", right);
  const auto chunk = show_tensor(right.path(), "model.norm.weight", {}).value().chunks.at(0);
  right.flip("model.safetensors", chunk.range.offset + 1);
  const Report report = make_report({.path = left.path(), .other = right.path()}).value();
  EXPECT_FALSE(report.is_equal);
  const Json difference = shown(report.html)["difference"];
  EXPECT_EQ(difference["equal"], false);
  EXPECT_EQ(report.verdict, "DIFFERENT");
  EXPECT_EQ(difference["differs"], true);
  EXPECT_EQ(difference["not_compared"], 0);
  EXPECT_EQ(difference["differing"], 1);
  ASSERT_THAT(difference["delta"], SizeIs(1));
  EXPECT_GT(difference["delta"][0], 0.0);
  const auto names = names_in(difference["names"]);
  EXPECT_EQ(names.at(0), "model.norm.weight");
  EXPECT_THAT(names, SizeIs(difference["compared"].get<std::size_t>()));
  EXPECT_THAT(difference["layer"], SizeIs(names.size()));
}

TEST(Report, TellsWhatIsWrongInThePage) {
  const Planted planted;
  Planted::copy("hf/llama3/hf", planted);
  planted.cut("model.safetensors", 10);
  const Report report = make_report({.path = planted.path()}).value();
  EXPECT_GT(report.findings, 0u);
  EXPECT_FALSE(report.failures.empty());
  const Json side = shown(report.html)["checkpoints"][0];
  ASSERT_THAT(side["losses"], SizeIs(report.failures.size()));
  EXPECT_EQ(side["losses"][0]["code"], code_name(report.failures.at(0).code));
  EXPECT_EQ(make_report({.path = planted.path() + "/nowhere"}).error().code, Code::kNotFound);
}

// Between the ends of a plan every byte of its tensors flows once.
TEST(Report, ShowsAPlan) {
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  const Planted target;
  request.output = target.path();
  request.format = "torch_dist";
  request.parallel = {2, 2, 1, 1, 2};
  const PreparedConversion conversion = prepare_conversion(request).value();
  const Json document = shown(plan_page(conversion, Language::kChinese));
  EXPECT_EQ(document["language"], "zh");
  const Json& plan = document["plan"];
  EXPECT_EQ(plan["target"]["sizes"][0], Json::parse(R"(["TP",2])"));
  std::uint64_t bytes = 0;
  for (const Json& flow : plan["flows"]) bytes += flow[2].get<std::uint64_t>();
  std::uint64_t stored = 0;
  for (const StoredTensor& tensor : conversion.plan.target.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      stored += static_cast<std::uint64_t>(tensor.chunks.box(i).volume()) *
                static_cast<std::uint64_t>(bytes_of(tensor.desc.dtype));
    }
  }
  EXPECT_EQ(bytes, stored);
  const auto from = names_in(plan["from"]["names"]);
  const auto to = names_in(plan["to"]["names"]);
  const auto at = static_cast<std::size_t>(
      std::ranges::find(to, "embedding.word_embeddings.weight") - to.begin());
  ASSERT_LT(at, to.size());
  ASSERT_THAT(plan["made_of"][at], SizeIs(1));
  EXPECT_EQ(from.at(plan["made_of"][at][0].get<std::size_t>()), "model.embed_tokens.weight");
}

// Of values and scales what flows is the matrix that they are made of, once for each.
TEST(Report, ShowsWhereBlocksComeFrom) {
  ConvertRequest request;
  request.input = golden_path("hf/gpt_oss/hf");
  const Planted target;
  request.output = target.path();
  request.format = "hf";
  request.quantise = WeightForm::kMxfp4;
  const PreparedConversion conversion = prepare_conversion(request).value();
  const Json plan = shown(plan_page(conversion, Language::kEnglish))["plan"];
  std::uint64_t bytes = 0;
  for (const Json& flow : plan["flows"]) bytes += flow[2].get<std::uint64_t>();
  for (const ObjectRecipe& object : conversion.plan.objects) {
    if (object.is_copy) bytes += conversion.plan.source.objects[object.source].range.length;
  }
  EXPECT_EQ(bytes, plan["cost"]["bytes_read"]);
  std::uint64_t stored = 0;
  for (const StoredTensor& tensor : conversion.plan.source.tensors) {
    stored += tensor.chunks.range(0).length;
  }
  EXPECT_GT(bytes, stored);
}

// 46,000 tensors stay a page that a browser opens at once.
TEST(Report, OfManyTensorsIsSmall) {
  Catalog catalog;
  for (int file = 0; file < 512; ++file)
    catalog.files.push_back(fmt::format("__{}_0.distcp", file));
  for (int layer = 0; layer < 60; ++layer) {
    for (int expert = 0; expert < 256; ++expert) {
      for (const char* name : {"gate", "up", "down"}) {
        StoredTensor tensor{
            {fmt::format("model.layers.{}.mlp.experts.{}.{}_proj.weight", layer, expert, name),
             DType::kBF16,
             {2048, 7168}},
            ChunkList(2)};
        for (int rank = 0; rank < 8; ++rank) {
          const auto file = static_cast<std::uint32_t>((layer * 8 + expert / 32 * 64 + rank) % 512);
          tensor.chunks.push_back({{{rank * 256, 0}, {256, 7168}}, file, {0, 1}, {}});
        }
        catalog.tensors.push_back(std::move(tensor));
      }
    }
  }
  const std::string columns = catalog_columns(catalog, shown_order(catalog)).dump();
  EXPECT_LT(columns.size(), 4'000'000u);
  EXPECT_EQ(Json::parse(columns)["without_boxes"], 0);
}

}  // namespace
}  // namespace shardwright
