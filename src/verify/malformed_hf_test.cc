// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <nlohmann/json.hpp>

#include "verify/malformed_fixture.h"

namespace shardwright {
namespace {

constexpr const char* kFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// The name of a file that the index names.
std::string indexed_file(const Planted& p) {
  return nlohmann::json::parse(p.get(kIndexFile))["weight_map"].begin().value();
}

std::string zeros(std::size_t count) { return std::string(count, '\0'); }

void write_header(const Planted& p, const char* header, std::size_t payload) {
  p.put_header(kFile, header, zeros(payload));
}

constexpr Malformed kCases[] = {
    // Hugging Face: headers
    {"HfCut", Base::kHf, [](const Planted& p) { p.cut(kFile, 1); }, Code::kSafetensorsCorrupt,
     "the file was cut or has grown"},
    {"HfLonger", Base::kHf, [](const Planted& p) { p.append(kFile, "x"); },
     Code::kSafetensorsCorrupt, kFile},
    {"HfEmptyFile", Base::kHf, [](const Planted& p) { p.put(kFile, ""); },
     Code::kSafetensorsCorrupt, "this file is empty, not a safetensors file"},
    {"HfHugeHeader", Base::kHf,
     [](const Planted& p) { p.put(kFile, std::string(8, '\x7f') + "{}"); },
     Code::kSafetensorsCorrupt, "found a header of 9187201950435737471 bytes"},
    {"HfHeaderBehindTheFile", Base::kHf,
     [](const Planted& p) { p.put(kFile, std::string("\x40\0\0\0\0\0\0\0{}", 10)); },
     Code::kSafetensorsCorrupt, "expected one within 10 bytes"},
    {"HfHeaderIsNoJson", Base::kHf, [](const Planted& p) { write_header(p, "{\"a\":", 0); },
     Code::kSafetensorsCorrupt, kFile},
    {"HfHeaderIsAList", Base::kHf, [](const Planted& p) { write_header(p, "[]", 0); },
     Code::kSafetensorsCorrupt, kFile},
    {"HfRepeatedKey", Base::kHf,
     [](const Planted& p) {
       write_header(p,
                    R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                    R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                    1);
     },
     Code::kSafetensorsCorrupt, kFile},
    {"HfGap", Base::kHf,
     [](const Planted& p) {
       write_header(p, R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2);
     },
     Code::kSafetensorsCorrupt, kFile},
    {"HfOverlap", Base::kHf,
     [](const Planted& p) {
       write_header(p,
                    R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                    R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                    3);
     },
     Code::kSafetensorsCorrupt, kFile},
    {"HfSizeOfAnotherShape", Base::kHf,
     [](const Planted& p) {
       write_header(p, R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", 2);
     },
     Code::kSafetensorsCorrupt, kFile},
    {"HfUnknownDtype", Base::kHf,
     [](const Planted& p) {
       write_header(p, R"({"a":{"dtype":"X9","shape":[1],"data_offsets":[0,1]}})", 1);
     },
     Code::kSafetensorsDtype, "X9"},
    {"HfDtypeThatTorchLacks", Base::kHf,
     [](const Planted& p) {
       write_header(p, R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", 3);
     },
     Code::kSafetensorsDtype, "F6_E2M3"},
    {"HfNegativeShape", Base::kHf,
     [](const Planted& p) {
       write_header(p, R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1);
     },
     Code::kSafetensorsCorrupt, kFile},
    {"HfTooManyAxes", Base::kHf,
     [](const Planted& p) {
       write_header(p, R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
                    1);
     },
     Code::kLimit, "a"},
    {"HfPieces", Base::kHf,
     [](const Planted& p) {
       write_header(p,
                    R"({"__metadata__":{"DCP_SHARDING_INFO":)"
                    R"("{\"a\":{\"saved_offsets\":[4]}}"},)"
                    R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                    1);
     },
     Code::kHole, "tensor a"},
    // Hugging Face: the index
    {"GhostKey", Base::kHfIndexed,
     [](const Planted& p) {
       p.edit_json(kIndexFile, [](auto& index) {
         index["weight_map"]["ghost"] = index["weight_map"].begin().value();
       });
     },
     Code::kIndexMismatch, "1 keys are not in the files it names: ghost"},
    {"KeyInNoIndex", Base::kHfIndexed,
     [](const Planted& p) {
       p.edit_json(kIndexFile, [](auto& index) { index["weight_map"].erase("model.norm.weight"); });
     },
     Code::kIndexMismatch, "does not list 1 keys"},
    {"KeyInAnotherFile", Base::kHfIndexed,
     [](const Planted& p) {
       p.edit_json(kIndexFile, [&](auto& index) {
         index["weight_map"]["model.norm.weight"] = index["weight_map"]["lm_head.weight"];
         index["weight_map"]["lm_head.weight"] = indexed_file(p);
       });
     },
     Code::kIndexMismatch, "keys are not in the files it names"},
    {"WrongTotal", Base::kHfIndexed,
     [](const Planted& p) {
       p.edit_json(kIndexFile, [](auto& index) { index["metadata"]["total_size"] = 7; });
     },
     Code::kIndexMismatch, "found total_size 7"},
    {"TotalBeyondAllFiles", Base::kHfIndexed,
     [](const Planted& p) {
       p.edit_json(kIndexFile, [](auto& index) { index["metadata"]["total_size"] = 6.7e86; });
     },
     Code::kIndexMismatch, "found total_size 18446744073709551615"},
    {"IndexNamesNoFile", Base::kHfIndexed, [](const Planted& p) { p.remove(indexed_file(p)); },
     Code::kNotFound, ".safetensors"},
    {"OneOfTheNumbersIsMissing", Base::kHfIndexed,
     [](const Planted& p) {
       p.remove(indexed_file(p));
       p.remove(kIndexFile);
     },
     Code::kNotFound, "copy the missing ones too: model-0000"},
    {"NumbersOfTwoSaves", Base::kHfIndexed,
     [](const Planted& p) {
       p.put("model-00001-of-00009.safetensors", p.get(indexed_file(p)));
       p.remove(kIndexFile);
     },
     Code::kTwoCheckpoints, "which are of two saves"},
    {"IndexLeadsOut", Base::kHfIndexed,
     [](const Planted& p) {
       p.edit_json(kIndexFile, [](auto& index) {
         index["weight_map"]["model.norm.weight"] = "../other.safetensors";
       });
     },
     Code::kPathEscapes, "../other.safetensors"},
    {"IndexIsNoJson", Base::kHfIndexed, [](const Planted& p) { p.put(kIndexFile, "{"); },
     Code::kJsonCorrupt, kIndexFile},
    {"IndexHasNoMap", Base::kHfIndexed, [](const Planted& p) { p.put(kIndexFile, "{}"); },
     Code::kJsonCorrupt, "weight_map"},
    {"IndexNamesNumbers", Base::kHfIndexed,
     [](const Planted& p) { p.put(kIndexFile, R"({"weight_map": {"a": 1}})"); }, Code::kJsonCorrupt,
     "is not a string"},
    {"KeyInTwoFiles", Base::kHf,
     [](const Planted& p) { p.put("model-copy.safetensors", p.get(kFile)); }, Code::kDuplicateName,
     "found in both"},
    {"UnindexedFile", Base::kHfIndexed,
     [](const Planted& p) { p.put("old.safetensors", p.get(indexed_file(p))); },
     Code::kUnreferencedBytes, "old.safetensors"},
    // Hugging Face: the model
    {"NoConfig", Base::kHf, [](const Planted& p) { p.remove("config.json"); }, Code::kConfigMissing,
     "config.json is missing"},
    {"ConfigThatIsCutOff", Base::kHf, [](const Planted& p) { p.cut("config.json", 20); },
     Code::kJsonCorrupt, "config.json: found parse error"},
    {"ConfigWithoutLayers", Base::kHf,
     [](const Planted& p) {
       p.edit_json("config.json", [](auto& config) { config.erase("num_hidden_layers"); });
     },
     Code::kConfigMissing, "num_hidden_layers is missing"},
    {"ConfigOfAnotherSize", Base::kHf,
     [](const Planted& p) {
       p.edit_json("config.json", [](auto& config) { config["intermediate_size"] = 8; });
     },
     Code::kShapeMismatch, ""},
    {"ConfigOfAnotherDtype", Base::kHf,
     [](const Planted& p) {
       p.edit_json("config.json", [](auto& config) {
         config.erase("torch_dtype");
         config["dtype"] = "float16";
       });
     },
     Code::kShapeMismatch, "found dtype float16"},
    {"ConfigWithMoreLayers", Base::kHf,
     [](const Planted& p) {
       p.edit_json("config.json", [](auto& config) { config["num_hidden_layers"] = 4; });
     },
     Code::kUnmatchedTarget, "model.layers.3"},
    {"ConfigWithFewerLayers", Base::kHf,
     [](const Planted& p) {
       p.edit_json("config.json", [](auto& config) { config["num_hidden_layers"] = 2; });
     },
     Code::kUnmatchedSource, "model.layers.2"},
    {"MissingExpert", Base::kHfExperts,
     [](const Planted& p) {
       p.edit_json("config.json", [](auto& config) {
         config["num_local_experts"] = config["num_local_experts"].template get<int>() + 1;
       });
     },
     Code::kUnmatchedTarget, "experts"},
};

class MalformedHf : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedHf, IsNamed) { expect_named(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, MalformedHf, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MalformedHfs, AreMany) { EXPECT_GE(std::size(kCases), 30u); }

}  // namespace
}  // namespace shardwright
