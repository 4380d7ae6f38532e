// SPDX-License-Identifier: Apache-2.0
#include "remote/aws_settings.h"

#include <algorithm>
#include <cctype>

#include "base/fail.h"
#include "base/text.h"
#include "io/named_file.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostProfileBytes = std::uint64_t{1} << 20;
constexpr std::string_view kBlanks = " \t\r";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// "" where there is no such file.
Result<std::string> profile_text(const Variables& variables, const char* variable,
                                 std::string_view name) {
  std::string path;
  if (const auto given = variables(variable); given && !given->empty()) {
    path = *given;
  } else if (const auto home = variables("HOME"); home && !home->empty()) {
    path = fmt::format("{}/.aws/{}", *home, name);
  } else {
    return std::string();
  }
  auto text = read_named_file(path, kMostProfileBytes);
  if (!text && text.error().code == Code::kNotFound) return std::string();
  return text;
}

void take(const std::map<std::string, std::string>& profile, const char* key, std::string& value) {
  if (!value.empty()) return;
  if (const auto found = profile.find(key); found != profile.end()) value = found->second;
}

}  // namespace

std::optional<std::map<std::string, std::string>> profile_in(std::string_view text,
                                                             std::string_view section) {
  std::optional<std::map<std::string, std::string>> profile;
  bool is_inside = false;
  std::string above;  // the key that indented lines belong to
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view line = without_blanks(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      is_inside = without_blanks(line.substr(1, line.find(']') - 1)) == section;
      if (is_inside && !profile) profile.emplace();
      continue;
    }
    const std::size_t sign = line.find_first_of("=:");
    if (!is_inside || sign == std::string_view::npos) continue;
    std::string key(without_blanks(line.substr(0, sign)));
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
    // An indented line belongs to the one above (`s3 =`).
    const bool is_indented = kBlanks.find(whole.front()) != std::string_view::npos;
    if (is_indented) {
      key = fmt::format("{}.{}", above, key);
    } else {
      above = key;
    }
    (*profile)[std::move(key)] = without_blanks(line.substr(sign + 1));
  }
  return profile;
}

Result<AwsSettings> find_aws_settings(const Variables& variables) {
  const auto value = [&](const char* name) { return variables(name).value_or(std::string()); };
  AwsSettings settings;
  const bool has_key =
      !value("AWS_ACCESS_KEY_ID").empty() && !value("AWS_SECRET_ACCESS_KEY").empty();
  if (has_key) {
    settings.key_id = value("AWS_ACCESS_KEY_ID");
    settings.secret = value("AWS_SECRET_ACCESS_KEY");
    settings.session_token = value("AWS_SESSION_TOKEN");
  }
  settings.region = value("AWS_REGION");
  if (settings.region.empty()) settings.region = value("AWS_DEFAULT_REGION");
  settings.endpoint = value("AWS_ENDPOINT_URL_S3");
  if (settings.endpoint.empty()) settings.endpoint = value("AWS_ENDPOINT_URL");

  const std::string asked = value("AWS_PROFILE");
  const std::string name = asked.empty() ? "default" : asked;
  const std::string credentials =
      SW_TRY(profile_text(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials"));
  const std::string config = SW_TRY(profile_text(variables, "AWS_CONFIG_FILE", "config"));
  const auto secrets = profile_in(credentials, name);
  const auto choices = profile_in(config, name == "default" ? name : "profile " + name);
  if (!asked.empty() && !secrets && !choices) {
    return fail(Code::kUsage, "$AWS_PROFILE: found no profile '{}' in ~/.aws/credentials or config",
                printable(asked));
  }
  for (const auto& profile : {secrets, choices}) {
    if (!profile) continue;
    if (!has_key && settings.key_id.empty() && profile->contains("aws_secret_access_key")) {
      take(*profile, "aws_access_key_id", settings.key_id);
      take(*profile, "aws_secret_access_key", settings.secret);
      take(*profile, "aws_session_token", settings.session_token);
      take(*profile, "aws_security_token", settings.session_token);  // as it was called first
    }
    take(*profile, "region", settings.region);
    // Of this service before of all.
    if (const auto services = profile->find("services"); services != profile->end()) {
      const auto listed = profile_in(config, "services " + services->second);
      if (listed) take(*listed, "s3.endpoint_url", settings.endpoint);
    }
    take(*profile, "endpoint_url", settings.endpoint);
  }
  return settings;
}

}  // namespace shardwright
