// SPDX-License-Identifier: Apache-2.0
// The file of a saved plan, whole and hostile.
#include "convert/saved_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <tuple>

#include "convert/golden.h"
#include "convert/request_fields.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

ConvertRequest full_request() {
  ConvertRequest request;
  request.family = "llama";
  request.hf_config_dir = "/cfg";
  request.map_files = {"/a.json", "/b \"2\".json"};
  request.models_dir = "/models";
  request.source_expert = 2;
  request.source_expert_tensor = 3;
  request.source_tensor = 4;
  request.replica = 0;
  request.accept_loss = true;
  request.input = "/in";
  request.output = "/out";
  request.format = "legacy";
  request.parallel = {2, 3, 4, 5, 6, 7};
  request.tp_replicas = TpReplicas::kExpand;
  request.data_ranks = 8;
  request.components = {{.name = "language",
                         .tensor = 1,
                         .pipeline = 2,
                         .data = 3,
                         .context = 4,
                         .expert = 5,
                         .expert_tensor = 6,
                         .rank_offset = 0}};
  request.world_size = 9;
  request.spec = ModuleSpec::kLocal;
  request.mtp = MtpPolicy::kDrop;
  request.mtp_from = "/mtp";
  request.adapter = "/adapter";
  request.averaged = {"/b", "/c"};
  request.weights = {0.5, 0.25, 0.25};
  request.dtype = DType::kF16;
  request.quantise = WeightForm::kFp8BlockUe8m0;
  request.adapter_names = AdapterNames::kSwift;
  request.max_shard_bytes = 10;
  request.shards = 11;
  request.include = {"a*"};
  request.exclude = {"b*", ""};
  request.optimizer = OptimizerPolicy::kDrop;
  request.check_replicas = ReplicaCheck::kSample;
  request.names_all_coordinates = true;
  request.make_vocab_size_divisible_by = 12;
  request.extend_vocab = 13;
  request.upcycle = Upcycling{8, 2, 4, true, 7};
  request.digests = true;
  request.sha256 = true;
  request.sign = "/keys/key.pem";
  request.overwrite = true;
  request.as = "hf";
  return request;
}

// Every field that a plan keeps, to be compared.
auto fields_of(const ConvertRequest& r) {
  const ComponentSpec& c = r.components.at(0);
  const Upcycling u = r.upcycle.value_or(Upcycling());
  return std::tuple(
      std::tuple(r.family, r.hf_config_dir, r.map_files, r.models_dir, r.source_expert,
                 r.source_expert_tensor, r.source_tensor, r.replica, r.accept_loss),
      std::tuple(r.input, r.output, r.format, r.tp_replicas, r.data_ranks, r.world_size, r.spec,
                 r.mtp, r.mtp_from, r.adapter, r.averaged, r.weights, r.dtype, r.quantise,
                 r.adapter_names, r.max_shard_bytes, r.shards, r.include, r.exclude),
      std::tuple(r.optimizer, r.check_replicas, r.names_all_coordinates,
                 r.make_vocab_size_divisible_by, r.extend_vocab, r.digests, r.sha256, r.sign,
                 r.overwrite, r.as),
      std::tuple(u.experts, u.granularity, u.top_k, u.softmax_before_top, u.seed),
      std::tuple(r.parallel.tensor, r.parallel.pipeline, r.parallel.virtual_pipeline,
                 r.parallel.expert, r.parallel.expert_tensor, r.parallel.encoder_tensor),
      std::tuple(c.name, c.tensor, c.pipeline, c.data, c.context, c.expert, c.expert_tensor,
                 c.rank_offset));
}

SavedPlan full_plan() {
  SavedPlan plan;
  plan.file = "p.plan";
  plan.request = full_request();
  plan.version = SHARDWRIGHT_VERSION;
  plan.plan = "0123456789abcdef0123456789abcdef";
  plan.source = "ffffffffffffffffffffffffffffffff";
  plan.piece_bytes = 4096;
  return plan;
}

Error why_refused(const Json& json) {
  const auto plan = parse_plan_file(json.dump(), "p.plan");
  EXPECT_FALSE(plan) << json.dump();
  return plan ? Error{} : plan.error();
}

TEST(SavedPlanFile, HoldsEveryFieldOfARequest) {
  const SavedPlan plan = parse_plan_file(plan_file_text(full_plan()), "p.plan").value();
  EXPECT_EQ(plan.plan, full_plan().plan);
  EXPECT_EQ(plan.source, full_plan().source);
  EXPECT_EQ(plan.piece_bytes, 4096U);
  // Each of them differs from what it is by default, so none was left out on the way.
  const Json read = json_of_request(plan.request);
  const Json defaults = json_of_request(ConvertRequest{});
  EXPECT_EQ(read, json_of_request(full_request()));
  for (const auto& [key, value] : read.items()) EXPECT_NE(value, defaults[key]) << key;
  ASSERT_EQ(plan.request.components.size(), 1U);
  EXPECT_TRUE(fields_of(plan.request) == fields_of(full_request()));
}

TEST(SavedPlanFile, RefusesAKeyThatIsMissingOrTooMuch) {
  const Json whole = Json::parse(plan_file_text(full_plan()));
  for (const auto& [key, value] : whole.items()) {
    Json less = whole;
    less.erase(key);
    EXPECT_EQ(why_refused(less).code, Code::kJsonCorrupt) << key;
  }
  for (const auto& [key, value] : whole["request"].items()) {
    Json less = whole;
    less["request"].erase(key);
    EXPECT_THAT(why_refused(less).message, HasSubstr("the key '" + key + "' is missing"));
  }
  for (const char* place : {"", "/request", "/request/component/0"}) {
    Json more = whole;
    more[Json::json_pointer(place)]["shell"] = "rm -rf";
    EXPECT_THAT(why_refused(more).message, HasSubstr("found the key 'shell'"));
  }
}

TEST(SavedPlanFile, RefusesValuesOfOtherKinds) {
  const Json whole = Json::parse(plan_file_text(full_plan()));
  const std::vector<Json> others = {
      nullptr, true, 7, -7, 1.5, "text", Json::array(), Json::object(), Json::array({7})};
  const auto accepts = [&](const Json& was, const Json& now) {
    const bool is_text = was.is_string() && now.is_string();
    const bool is_number = was.is_number() && (now.is_null() || now == Json(7));
    const bool is_of_numbers = was.is_array() && !was.empty() && was.front().is_number();
    const bool is_list =
        was.is_array() && (now == Json::array() || (is_of_numbers && now == Json::array({7})));
    return is_text || is_number || is_list || (was.is_boolean() && now.is_boolean()) ||
           ((was.is_string() || was.is_object()) && now.is_null());
  };
  for (const auto& [key, value] : whole["request"].items()) {
    for (const Json& other : others) {
      if (accepts(value, other)) continue;
      Json changed = whole;
      changed["request"][key] = other;
      EXPECT_EQ(why_refused(changed).code, Code::kJsonCorrupt) << key << " = " << other;
    }
  }
  for (const char* key : {"source", "plan", "piece_bytes", "request", "schema", "version"}) {
    for (const Json& other : others) {
      if (std::string_view(key) == "piece_bytes" && other == Json(7)) continue;
      if (std::string_view(key) == "version" && other.is_string()) continue;
      Json changed = whole;
      changed[key] = other;
      EXPECT_EQ(why_refused(changed).code, Code::kJsonCorrupt) << key << " = " << other;
    }
  }
}

TEST(SavedPlanFile, RefusesValuesThatTheCommandLineRefuses) {
  const Json whole = Json::parse(plan_file_text(full_plan()));
  const std::vector<std::pair<const char*, Json>> wrong = {
      {"in", ""},
      {"in", "relative"},
      {"out", "../out"},
      {"out", std::string("/o\0ut", 5)},
      {"hf_config", "cfg"},
      {"map", {"m.json"}},
      {"include", {std::string("a\0", 2)}},
      {"to", "torch"},
      {"to", ""},
      {"tp", 0},
      {"tp", 1'000'000'001},
      {"tp", 18446744073709551615U},
      {"shards", (1 << 20) + 1},
      {"max_shard_size", 0},
      {"replica", -1},
      {"dtype", "int8"},
      {"mtp", "from=/x"},
      {"spec", "both"},
      {"optimizer", "maybe"},
      {"check_replicas", "some"},
      {"tp_replicas", "merge"},
      {"naming", "mine"},
      {"component", {{{"name", "language"}}}},
      {"component", {7}},
  };
  for (const auto& [key, value] : wrong) {
    Json changed = whole;
    changed["request"][key] = value;
    const Error error = why_refused(changed);
    EXPECT_EQ(error.code, Code::kJsonCorrupt) << key;
    EXPECT_THAT(error.message, HasSubstr("p.plan: request")) << key;
  }
  Json zero = whole;
  zero["piece_bytes"] = 0;
  EXPECT_EQ(why_refused(zero).code, Code::kJsonCorrupt);
  Json short_digest = whole;
  short_digest["plan"] = "12ab";
  EXPECT_EQ(why_refused(short_digest).code, Code::kJsonCorrupt);
}

TEST(SavedPlanFile, RefusesAnotherVersionBeforeItLooksAtTheRest) {
  Json json = Json::parse(plan_file_text(full_plan()));
  json["version"] = "99.0\x1b[31m";
  json["request"] = {{"new", 1}};
  const Error error = why_refused(json);
  EXPECT_EQ(error.code, Code::kCannotResume);
  EXPECT_THAT(error.message, HasSubstr("version 99.0"));
  EXPECT_EQ(error.message.find('\x1b'), std::string::npos);
}

TEST(SavedPlanFile, RefusesWhatIsNoPlan) {
  for (const std::string text : {"", "{", "[]", "null", "7", "{}", "{\"schema\": 1}",
                                 "{\"schema\": \"shardwright/plan/1\"}"}) {
    const auto plan = parse_plan_file(text, "p.plan");
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().code, Code::kJsonCorrupt) << text;
  }
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(parse_plan_file(deep, "p.plan"));
}

// Whatever a byte is changed to: a plan or an error, and never another way out.
TEST(SavedPlanFile, OutlivesFlippedBytes) {
  const std::string whole = plan_file_text(full_plan());
  std::mt19937 random(5);
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = whole;
    const std::size_t at = random() % text.size();
    text[at] = static_cast<char>(random());
    if (round % 3 == 0) text.resize(at);
    const auto plan = parse_plan_file(text, "p.plan");
    if (plan) {
      ++accepted;
    } else {
      EXPECT_TRUE(plan.error().code == Code::kJsonCorrupt ||
                  plan.error().code == Code::kCannotResume || plan.error().code == Code::kLimit)
          << plan.error().text();
    }
  }
  EXPECT_GT(accepted, 0) << "some changes are only another name";
  EXPECT_LT(accepted, 2000);
}

TEST(SavePlan, SaysWhatIsConvertedByAbsolutePaths) {
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = "out";
  request.format = "hf";
  const auto conversion = prepare_conversion(request).value();
  const SavedPlan plan = save_plan(conversion).value();
  EXPECT_TRUE(plan.request.output.starts_with('/')) << plan.request.output;
  EXPECT_TRUE(plan.request.output.ends_with("/out"));
  EXPECT_EQ(plan.request.hf_config_dir, "");
  EXPECT_TRUE(check_saved_plan(conversion, plan));
  request.output = "ou\xff";
  EXPECT_EQ(save_plan(prepare_conversion(request).value()).error().code, Code::kUsage);
}

// A piece of a byte would be a list that fits into no memory.
TEST(SavePlan, PiecesAreNotTooMany) {
  const TemporaryFolder place;
  put_model(place / "in", "", {{"w", DType::kU8, {1 << 21}}});
  ConvertRequest request;
  request.input = place / "in";
  request.output = place / "out";
  request.format = "safetensors";
  const auto conversion = prepare_conversion(request).value();
  SavedPlan plan = save_plan(conversion).value();
  plan.file = "p.plan";
  plan.piece_bytes = 1;
  EXPECT_THAT(check_saved_plan(conversion, plan).error().message, HasSubstr("'piece_bytes' is 1"));
}

}  // namespace
}  // namespace shardwright
