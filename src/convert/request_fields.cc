// SPDX-License-Identifier: Apache-2.0
#include "convert/request_fields.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "convert/upcycle_spec.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

// What the command line takes too.
constexpr std::int64_t kMostOfAnything = 1'000'000'000;
constexpr std::int64_t kMostOfRanks = std::int64_t{1} << 20;

struct Bounds {
  std::int64_t least = 1;
  std::int64_t most = kMostOfAnything;
};
constexpr Bounds kRankBounds{1, kMostOfRanks};

template <class T>
struct Word {
  std::string_view word;
  T value;
};

constexpr std::array kMtpWords = {Word{"default", MtpPolicy::kDefault},
                                  Word{"keep", MtpPolicy::kKeep}, Word{"drop", MtpPolicy::kDrop}};
constexpr std::array kOptimizerWords = {Word{"default", OptimizerPolicy::kDefault},
                                        Word{"keep", OptimizerPolicy::kKeep},
                                        Word{"drop", OptimizerPolicy::kDrop}};
constexpr std::array kSpecWords = {Word{"keep", ModuleSpec::kKeep},
                                   Word{"te", ModuleSpec::kTransformerEngine},
                                   Word{"local", ModuleSpec::kLocal}};
constexpr std::array kCheckWords = {Word{"all", ReplicaCheck::kAll},
                                    Word{"sample", ReplicaCheck::kSample},
                                    Word{"none", ReplicaCheck::kNone}};
constexpr std::array kCopyWords = {Word{"collapse", TpReplicas::kCollapse},
                                   Word{"expand", TpReplicas::kExpand}};
constexpr std::array kFormWords = {
    Word{"plain", WeightForm::kPlain}, Word{"fp8-block", WeightForm::kFp8Block},
    Word{"fp8-block-ue8m0", WeightForm::kFp8BlockUe8m0}, Word{"mxfp4", WeightForm::kMxfp4}};
constexpr std::array kAdapterWords = {Word{"default", AdapterNames::kDefault},
                                      Word{"bridge", AdapterNames::kBridge},
                                      Word{"ms-swift", AdapterNames::kSwift}};
constexpr std::array kNamingWords = {Word{"megatron", false}, Word{"tp_pp_ep", true}};

// The fields in one list for both directions, so that none is written that is not read.
template <class Fields, class Component>
void visit_component(Fields& fields, Component& component) {
  fields.text("name", component.name);
  fields.number("tp", component.tensor, kRankBounds);
  fields.number("pp", component.pipeline, kRankBounds);
  fields.number("dp", component.data, kRankBounds);
  fields.number("cp", component.context, kRankBounds);
  fields.number("ep", component.expert, kRankBounds);
  fields.number("etp", component.expert_tensor, kRankBounds);
  fields.number("rank_offset", component.rank_offset, {0, kMostOfRanks});
}

template <class Fields, class Upcycling>
void visit_upcycling(Fields& fields, Upcycling& upcycling) {
  fields.number("experts", upcycling.experts, {1, kMostExperts});
  fields.number("granularity", upcycling.granularity, {1, kMostExperts});
  fields.number("topk", upcycling.top_k, {1, kMostExperts});
  fields.flag("pre_softmax", upcycling.softmax_before_top);
  fields.number("seed", upcycling.seed, {0, kMostOfAnything});
}

template <class Fields, class Request>
void visit_sizes(Fields& fields, Request& request) {
  fields.number("tp", request.parallel.tensor, {});
  fields.number("pp", request.parallel.pipeline, {});
  fields.number("vpp", request.parallel.virtual_pipeline, {});
  fields.number("ep", request.parallel.expert, {});
  fields.number("etp", request.parallel.expert_tensor, {});
  fields.number("encoder_tp", request.parallel.encoder_tensor, {0, kMostOfAnything});
  fields.components("component", request.components);
  fields.number("world_size", request.world_size, {});
  fields.number("shards", request.shards, kRankBounds);
  fields.number("dp", request.data_ranks, kRankBounds);
  fields.number("make_vocab_size_divisible_by", request.make_vocab_size_divisible_by, {});
  fields.number("extend_vocab", request.extend_vocab, {});
  fields.upcycling("upcycle", request.upcycle);
  fields.size("max_shard_size", request.max_shard_bytes);
}

template <class Fields, class Request>
void visit_request(Fields& fields, Request& request) {
  fields.path("in", request.input);
  fields.path("out", request.output);
  fields.target("to", request.format);
  fields.text("as", request.as);
  visit_sizes(fields, request);
  fields.word("mtp", request.mtp, kMtpWords);
  fields.optional_path("mtp_from", request.mtp_from);
  fields.optional_path("adapter", request.adapter);
  fields.paths("averaged", request.averaged);
  fields.numbers("weights", request.weights);
  fields.optional_path("hf_config", request.hf_config_dir);
  fields.text("family", request.family);
  fields.paths("map", request.map_files);
  fields.optional_path("models", request.models_dir);
  fields.texts("include", request.include);
  fields.texts("exclude", request.exclude);
  fields.dtype("dtype", request.dtype);
  fields.word("quantise", request.quantise, kFormWords);
  fields.word("adapter_names", request.adapter_names, kAdapterWords);
  fields.word("spec", request.spec, kSpecWords);
  fields.word("optimizer", request.optimizer, kOptimizerWords);
  fields.word("check_replicas", request.check_replicas, kCheckWords);
  fields.word("tp_replicas", request.tp_replicas, kCopyWords);
  fields.word("naming", request.names_all_coordinates, kNamingWords);
  fields.flag("accept_loss", request.accept_loss);
  fields.number("source_ep", request.source_expert, kRankBounds);
  fields.number("source_etp", request.source_expert_tensor, kRankBounds);
  fields.number("source_tp", request.source_tensor, kRankBounds);
  fields.number("replica", request.replica, {0, kMostOfRanks});
  fields.flag("digests", request.digests);
  fields.flag("sha256", request.sha256);
  fields.optional_path("sign", request.sign);
  fields.flag("overwrite", request.overwrite);
}

class FieldWriter {
 public:
  void text(const char* key, const std::string& value) { json_[key] = value; }
  void path(const char* key, const std::string& value) { text(key, value); }
  void optional_path(const char* key, const std::string& value) { text(key, value); }
  void target(const char* key, const std::string& value) { text(key, value); }
  void texts(const char* key, const std::vector<std::string>& values) { json_[key] = values; }
  void paths(const char* key, const std::vector<std::string>& values) { texts(key, values); }
  void numbers(const char* key, const std::vector<double>& values) { json_[key] = values; }
  void flag(const char* key, bool value) { json_[key] = value; }
  void size(const char* key, std::uint64_t value) { json_[key] = value; }
  void number(const char* key, std::int64_t value, Bounds /*bounds*/) { json_[key] = value; }
  void number(const char* key, const std::optional<std::int64_t>& value, Bounds /*bounds*/) {
    json_[key] = value ? Json(*value) : Json(nullptr);
  }
  void dtype(const char* key, const std::optional<DType>& value) {
    json_[key] = value ? Json(std::string(torch_name(*value))) : Json(nullptr);
  }
  template <class T, std::size_t N>
  void word(const char* key, T value, const std::array<Word<T>, N>& words) {
    for (const Word<T>& each : words) {
      if (each.value == value) json_[key] = std::string(each.word);
    }
  }
  void components(const char* key, const std::vector<ComponentSpec>& components) {
    json_[key] = Json::array();
    for (const ComponentSpec& component : components) {
      FieldWriter fields;
      visit_component(fields, component);
      json_[key].push_back(fields.take());
    }
  }
  void upcycling(const char* key, const std::optional<Upcycling>& value) {
    FieldWriter fields;
    if (value) visit_upcycling(fields, *value);
    json_[key] = value ? fields.take() : Json(nullptr);
  }
  [[nodiscard]] Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

// Keeps what is wrong first; what follows is not looked at then.
class FieldReader {
 public:
  FieldReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  void text(const char* key, std::string& value) {
    const Json* found = take(key);
    if (found == nullptr) return;
    if (!found->is_string()) return refuse(key, "a text");
    value = found->get<std::string>();
    if (value.find('\0') != std::string::npos) refuse(key, "a text without zero bytes");
  }
  void optional_path(const char* key, std::string& value) {
    text(key, value);
    if (!value.empty() && !is_whole(value)) refuse(key, "an absolute path");
  }
  void path(const char* key, std::string& value) {
    optional_path(key, value);
    if (value.empty()) refuse(key, "an absolute path");
  }
  static bool is_whole(const std::string& path) {
    return path.starts_with('/') || is_remote_path(path);
  }
  void target(const char* key, std::string& value) {
    text(key, value);
    for (const std::string_view name : target_names()) {
      if (value == name) return;
    }
    refuse(key, "a format that is written");
  }
  void texts(const char* key, std::vector<std::string>& values) {
    const Json* found = take(key);
    if (found == nullptr) return;
    if (!found->is_array()) return refuse(key, "a list of texts");
    for (const Json& each : *found) {
      if (!each.is_string()) return refuse(key, "a list of texts");
      values.push_back(each.get<std::string>());
      if (values.back().find('\0') != std::string::npos) refuse(key, "texts without zero bytes");
    }
  }
  void paths(const char* key, std::vector<std::string>& values) {
    texts(key, values);
    for (const std::string& value : values) {
      if (!is_whole(value)) refuse(key, "absolute paths");
    }
  }
  void numbers(const char* key, std::vector<double>& values) {
    const Json* found = take(key);
    if (found == nullptr) return;
    if (!found->is_array()) return refuse(key, "a list of numbers");
    for (const Json& each : *found) {
      if (!each.is_number()) return refuse(key, "a list of numbers");
      values.push_back(each.get<double>());
    }
  }
  void flag(const char* key, bool& value) {
    const Json* found = take(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return refuse(key, "true or false");
    value = found->get<bool>();
  }
  void size(const char* key, std::uint64_t& value) {
    const Json* found = take(key);
    if (found == nullptr) return;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0) {
      return refuse(key, "a number of bytes, at least 1");
    }
    value = found->get<std::uint64_t>();
  }
  void number(const char* key, std::int64_t& value, Bounds bounds) {
    if (const Json* found = take(key)) read_number(key, *found, value, bounds);
  }
  void number(const char* key, std::optional<std::int64_t>& value, Bounds bounds) {
    const Json* found = take(key);
    if (found == nullptr || found->is_null()) return;
    read_number(key, *found, value.emplace(), bounds);
  }
  void dtype(const char* key, std::optional<DType>& value) {
    const Json* found = take(key);
    if (found == nullptr || found->is_null()) return;
    if (found->is_string()) value = dtype_from_torch(found->get<std::string>());
    if (!value || !is_castable_float(*value)) refuse(key, "null or a floating point dtype");
  }
  template <class T, std::size_t N>
  void word(const char* key, T& value, const std::array<Word<T>, N>& words) {
    const Json* found = take(key);
    if (found == nullptr) return;
    std::string expected;
    for (const Word<T>& each : words) {
      if (found->is_string() && found->get<std::string>() == each.word) {
        value = each.value;
        return;
      }
      expected += (expected.empty() ? "" : translated(" or ")) + std::string(each.word);
    }
    refuse(key, expected);
  }
  void components(const char* key, std::vector<ComponentSpec>& components) {
    const Json* found = take(key);
    if (found == nullptr) return;
    if (!found->is_array()) return refuse(key, "a list of components");
    for (const Json& each : *found) {
      FieldReader fields(each, fmt::format("{} of {}", key, where_));
      visit_component(fields, components.emplace_back());
      if (status_) status_ = fields.finish();
    }
  }

  void upcycling(const char* key, std::optional<Upcycling>& value) {
    const Json* found = take(key);
    if (found == nullptr || found->is_null()) return;
    FieldReader fields(*found, fmt::format("{} of {}", key, where_));
    visit_upcycling(fields, value.emplace());
    if (status_) status_ = fields.finish();
  }

  // What was wrong, or a key that nobody asked for.
  [[nodiscard]] Status finish() const {
    SW_TRY(Status(status_));
    if (!json_.is_object()) return fail(Code::kJsonCorrupt, "{}: expected an object", where_);
    for (const auto& item : json_.items()) {
      if (known_.contains(item.key())) continue;
      return fail(Code::kJsonCorrupt, "{}: found the key '{}', which a saved plan doesn't have",
                  where_, printable(item.key()));
    }
    return {};
  }

 private:
  const Json* take(const char* key) {
    known_.insert(key);
    if (!status_ || !json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    status_ = fail(Code::kJsonCorrupt, "{}: the key '{}' is missing", where_, key);
    return nullptr;
  }
  void read_number(const char* key, const Json& found, std::int64_t& value, Bounds bounds) {
    const bool fits = found.is_number_unsigned() &&
                      found.get<std::uint64_t>() <= static_cast<std::uint64_t>(bounds.most);
    if (fits) value = found.get<std::int64_t>();
    if (!fits || value < bounds.least) {
      refuse(key, translated("a whole number from {} to {}", bounds.least, bounds.most));
    }
  }
  void refuse(const char* key, std::string_view expected) {
    if (!status_) return;
    status_ = fail(Code::kJsonCorrupt, "{}: '{}' must be {}", where_, key, expected);
  }

  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

}  // namespace

nlohmann::ordered_json json_of_request(const ConvertRequest& request) {
  FieldWriter fields;
  visit_request(fields, request);
  return fields.take();
}

Result<ConvertRequest> request_of_json(const nlohmann::ordered_json& json, std::string_view name) {
  ConvertRequest request;
  FieldReader fields(json, fmt::format("{}: request", name));
  visit_request(fields, request);
  SW_TRY(fields.finish());
  return request;
}

}  // namespace shardwright
