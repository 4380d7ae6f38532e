// SPDX-License-Identifier: Apache-2.0
#include "convert/saved_plan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "convert/request_fields.h"
#include "exec/plan_fingerprint.h"
#include "io/named_file.h"
#include "remote/open_path.h"
#include "remote/remote_output.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "shardwright/saved-plan/1";
constexpr std::uint64_t kMostFileBytes = std::uint64_t{16} << 20;
constexpr std::size_t kFingerprintDigits = 32;
// A list of more would not fit into memory beside what it is of.
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 20;

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = front_code_point(text);
    if (!point.valid) return false;
    text.remove_prefix(point.bytes);
  }
  return true;
}

Result<std::string> absolute_path(const std::string& path) {
  if (path.empty() || is_remote_path(path)) return path;
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).string();
  if (error) return fail_errno(error.value(), path);
  return whole;
}

// All that is text of a request, whatever it means.
Status check_texts(const ConvertRequest& request) {
  std::vector<std::string> texts = {request.input,   request.output,        request.as,
                                    request.adapter, request.mtp_from,      request.family,
                                    request.format,  request.hf_config_dir, request.models_dir,
                                    request.sign};
  for (const auto* list :
       {&request.map_files, &request.averaged, &request.include, &request.exclude}) {
    texts.insert(texts.end(), list->begin(), list->end());
  }
  for (const ComponentSpec& component : request.components) texts.push_back(component.name);
  for (const std::string& text : texts) {
    if (is_plain_text(text)) continue;
    return fail(Code::kUsage, "'{}' is not UTF-8 and can't be saved in a plan; rename it",
                printable(text));
  }
  return {};
}

// The text of a key, or what is wrong with it.
Result<std::string> key_text(const Json& json, const char* key, std::string_view name) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_string()) return found->get<std::string>();
  return fail(Code::kJsonCorrupt, "{}: '{}' must be a text", name, key);
}

Result<std::string> fingerprint_in(const Json& json, const char* key, std::string_view name) {
  const std::string text = SW_TRY(key_text(json, key, name));
  if (text.size() == kFingerprintDigits &&
      text.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return text;
  }
  return fail(Code::kJsonCorrupt, "{}: '{}' must be {} hex digits", name, key, kFingerprintDigits);
}

Status check_keys(const Json& json, std::string_view name) {
  constexpr std::array<std::string_view, 6> kKeys = {"schema", "version",     "source",
                                                     "plan",   "piece_bytes", "request"};
  for (const auto& item : json.items()) {
    if (std::ranges::find(kKeys, item.key()) != kKeys.end()) continue;
    return fail(Code::kJsonCorrupt, "{}: found the key '{}', which a saved plan doesn't have", name,
                printable(item.key()));
  }
  return {};
}

// Parts and their publishing look at the source at other times: it must be known whether it is the
// same then.
Result<std::string> lasting_fingerprint(const PreparedConversion& conversion) {
  SourceSummary source = SW_TRY(
      summary_of_source(conversion.plan, *conversion.source.files, SourceIdentity::kContents));
  if (source.untold.empty()) return std::move(source.fingerprint);
  return fail(Code::kCannotResume,
              "{}: the server tells neither ETag nor date of this file, so nobody can know whether "
              "it is the same for all parts; copy the checkpoint to a disk first, or convert it in "
              "one run",
              printable(source.untold));
}

}  // namespace

Result<ConvertRequest> with_absolute_paths(ConvertRequest request) {
  for (std::string* path : {&request.input, &request.output, &request.adapter, &request.mtp_from,
                            &request.hf_config_dir, &request.models_dir, &request.sign}) {
    *path = SW_TRY(absolute_path(*path));
  }
  for (auto* paths : {&request.map_files, &request.averaged}) {
    for (std::string& path : *paths) path = SW_TRY(absolute_path(path));
  }
  return request;
}

std::string part_text(Part part) { return fmt::format("{}/{}", part.number, part.count); }

std::uint64_t shared_piece_bytes(std::uint64_t total_bytes) {
  constexpr std::uint64_t kPieces = 256;
  constexpr std::uint64_t kLeast = std::uint64_t{4} << 10;
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
  return std::clamp(total_bytes / kPieces, kLeast, kMost);
}

Result<SavedPlan> save_plan(const PreparedConversion& conversion) {
  const Plan& plan = conversion.plan;
  SW_TRY(check_texts(conversion.request));
  if (is_remote_output(conversion.request.output)) {
    return fail(Code::kUsage,
                "{}: parts are written to a folder that all of them see; choose a local path",
                printable(conversion.request.output));
  }
  SavedPlan saved;
  saved.request = SW_TRY(with_absolute_paths(conversion.request));
  SW_TRY(check_texts(saved.request));  // the current directory's name is in it now
  saved.version = SHARDWRIGHT_VERSION;
  saved.plan = fingerprint_of(plan);
  saved.source = SW_TRY(lasting_fingerprint(conversion));
  saved.piece_bytes = shared_piece_bytes(cost_of(plan).bytes_written);
  return saved;
}

std::string plan_file_text(const SavedPlan& plan) {
  Json json = Json::object();
  json["schema"] = kSchema;
  json["version"] = plan.version;
  json["source"] = plan.source;
  json["plan"] = plan.plan;
  json["piece_bytes"] = plan.piece_bytes;
  json["request"] = json_of_request(plan.request);
  return json.dump(1) + "\n";
}

Result<SavedPlan> read_plan_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(Code::kNotAFile,
                "{}: found a folder, expected a saved plan; 'shardwright plan ... --save FILE' "
                "makes one",
                path);
  }
  const std::string text = SW_TRY(read_named_file(path, kMostFileBytes));
  return parse_plan_file(text, path);
}

Result<SavedPlan> parse_plan_file(std::string_view text, std::string_view name) {
  const Json json = SW_TRY(parse_ordered_json(text, name));
  const auto schema = json.is_object() ? json.find("schema") : json.end();
  if (schema == json.end() || *schema != kSchema) {
    return fail(Code::kJsonCorrupt,
                "{}: this is no saved plan; make one with 'shardwright plan ... --save FILE'",
                name);
  }
  SavedPlan plan;
  plan.file = name;
  plan.version = SW_TRY(key_text(json, "version", name));
  // Before the rest, of which another version may know more.
  if (plan.version != SHARDWRIGHT_VERSION) {
    return fail(Code::kCannotResume,
                "{}: version {} of this program saved this plan, this is {}; use that one, or save "
                "the plan again and run all parts again",
                name, printable(plan.version), SHARDWRIGHT_VERSION);
  }
  SW_TRY(check_keys(json, name));
  plan.source = SW_TRY(fingerprint_in(json, "source", name));
  plan.plan = SW_TRY(fingerprint_in(json, "plan", name));
  const auto bytes = json.find("piece_bytes");
  if (bytes == json.end() || !bytes->is_number_unsigned() || bytes->get<std::uint64_t>() == 0) {
    return fail(Code::kJsonCorrupt, "{}: 'piece_bytes' must be a number of bytes, at least 1",
                name);
  }
  plan.piece_bytes = bytes->get<std::uint64_t>();
  const auto request = json.find("request");
  plan.request =
      SW_TRY(request_of_json(request == json.end() ? Json(nullptr) : Json(*request), name));
  return plan;
}

Status check_saved_plan(const PreparedConversion& conversion, const SavedPlan& plan) {
  const auto refuse = [&](std::string_view why) {
    return fail(Code::kCannotResume,
                "{}: this plan can't be carried out: {}; save it again and run all parts again",
                plan.file, why);
  };
  if (SW_TRY(lasting_fingerprint(conversion)) != plan.source) {
    return refuse("files of the source changed since it was saved");
  }
  if (fingerprint_of(conversion.plan) != plan.plan) {
    return refuse("what it asks for is planned otherwise now");
  }
  if (cost_of(conversion.plan).bytes_written / plan.piece_bytes < kMostPieces) return {};
  return fail(Code::kJsonCorrupt,
              "{}: 'piece_bytes' is {}, too little for a checkpoint of {} bytes", plan.file,
              plan.piece_bytes, cost_of(conversion.plan).bytes_written);
}

JournalHead head_of(const SavedPlan& plan) {
  return {plan.version, plan.source, plan.plan, plan.piece_bytes};
}

std::string parts_id_of(const SavedPlan& plan) {
  constexpr std::size_t kDigits = 16;
  Digest digest;
  digest.add(fmt::format("{}\n{}\n{}\n{}\n{}\n", plan.version, plan.source, plan.plan,
                         plan.piece_bytes, plan.request.input));
  return digest.text().substr(0, kDigits);
}

}  // namespace shardwright
