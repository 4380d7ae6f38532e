// SPDX-License-Identifier: Apache-2.0
#include "format/lora_train_meta.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

using MetaJson = nlohmann::ordered_json;

constexpr std::uint64_t kMostMetaBytes = std::uint64_t{1} << 20;
constexpr std::int64_t kMostMetaRank = std::int64_t{1} << 16;
constexpr double kMostWhole = 1e15;  // below it a double is the number that was written

std::unexpected<Error> unfit(std::string_view key, const MetaJson& found,
                             std::string_view expected) {
  return fail(Code::kJsonCorrupt, "{}: {}: found {}, expected {}", kLoraTrainMetaFile, key,
              printable(found.dump(-1, ' ', true).substr(0, 100)), expected);
}

Result<MetaJson> member(const MetaJson& document, std::string_view key) {
  const auto found = document.find(key);
  if (found != document.end() && !found->is_null()) return *found;
  return fail(Code::kConfigMissing, "{}: {} is missing; put the run's own number there",
              kLoraTrainMetaFile, key);
}

Result<ArgValue> alpha_of(const MetaJson& value) {
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!std::isfinite(static_cast<float>(number))) return unfit("lora_alpha", value, "a number");
  if (number == 0.0) {
    return fail(Code::kUnsupportedFormat,
                "{}: lora_alpha is 0, so the adapter would change nothing; put the run's own "
                "number there",
                kLoraTrainMetaFile);
  }
  const bool is_whole = value.is_number_integer() && std::abs(number) <= kMostWhole;
  return is_whole ? ArgValue(value.get<std::int64_t>()) : ArgValue(number);
}

}  // namespace

Result<std::optional<LoraTrainMeta>> read_lora_train_meta(const Directory& folder) {
  const std::string path(kLoraTrainMetaFile);
  if (!folder.exists(path)) return std::optional<LoraTrainMeta>();
  const std::string text = SW_TRY(read_whole(folder, path, kMostMetaBytes));
  const MetaJson document = SW_TRY(parse_ordered_json(text, kLoraTrainMetaFile));
  if (!document.is_object()) {
    return fail(Code::kJsonCorrupt, "{}: found {}, expected an object", kLoraTrainMetaFile,
                document.type_name());
  }
  LoraTrainMeta meta;
  const MetaJson rank = SW_TRY(member(document, "r"));
  if (!rank.is_number_integer() || rank < 1 || rank > kMostMetaRank) {
    return unfit("r", rank, translated("a whole number from 1 to {}", kMostMetaRank));
  }
  meta.rank = rank.get<std::int64_t>();
  const MetaJson alpha = SW_TRY(member(document, "lora_alpha"));
  meta.alpha = SW_TRY(alpha_of(alpha));
  const auto task = document.find("task_type");
  if (task != document.end() && !task->is_null()) {
    if (!task->is_string()) return unfit("task_type", *task, "text");
    meta.task_type = task->get<std::string>();
  }
  return meta;
}

}  // namespace shardwright
