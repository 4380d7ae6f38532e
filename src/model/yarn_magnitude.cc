// SPDX-License-Identifier: Apache-2.0
#include "model/yarn_magnitude.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "model/config_values.h"

namespace shardwright {
namespace {

double magnitude(double factor, double mscale) { return 0.1 * mscale * std::log(factor) + 1.0; }

double rounded(double value, int digits) {
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}

// A family with latent attention scales its logits by mscale_all_dim besides, on both sides.
bool has_latent_attention(const Mapping& mapping) {
  return std::ranges::any_of(mapping.config, [](const ConfigRule& rule) {
    const bool is_it = !rule.args.empty() && rule.args[0] == "multi_latent_attention";
    return is_it && rule.value && same_value(*rule.value, ArgValue{true});
  });
}

struct Yarn {
  std::string prefix;  // of the settings' names
  double factor = 0.0;
  std::optional<double> mscale;
  std::optional<double> all_dim;
  std::optional<double> attention_factor;

  [[nodiscard]] bool has_both() const {
    return mscale.value_or(0.0) != 0.0 && all_dim.value_or(0.0) != 0.0;
  }

  // Of mscale alone, beside this mscale_all_dim; rounded, so that the way there and back ends.
  [[nodiscard]] double mscale_of(double whole, double beside) const {
    constexpr int kDigits = 12;
    const double wanted = whole * magnitude(factor, beside);
    return rounded((wanted - 1.0) / (0.1 * std::log(factor)), kDigits);
  }
};

// Nothing without YaRN, and where no mscale changes anything.
std::optional<Yarn> yarn_of(const Mapping& mapping, const Arguments& hf) {
  const std::string& section = mapping.config_section;
  Yarn yarn;
  yarn.prefix = section.empty() ? "rope." : section + ".rope.";
  const auto number = [&](std::string_view key) -> std::optional<double> {
    const ArgValue* found = find_set(hf, yarn.prefix + std::string(key));
    const std::optional<double> value = found == nullptr ? std::nullopt : as_number(*found);
    return value && std::isfinite(*value) ? value : std::nullopt;
  };
  const ArgValue* type = find_set(hf, yarn.prefix + "type");
  if (type == nullptr || !same_value(*type, ArgValue{std::string("yarn")})) return std::nullopt;
  yarn.factor = number("factor").value_or(0.0);
  yarn.mscale = number("mscale");
  yarn.all_dim = number("mscale_all_dim");
  yarn.attention_factor = number("attention_factor");
  return yarn.factor > 1.0 ? std::optional(yarn) : std::nullopt;
}

}  // namespace

Arguments with_megatron_magnitude(const Mapping& mapping, Arguments hf) {
  const std::optional<Yarn> yarn = yarn_of(mapping, hf);
  if (!yarn) return hf;
  const bool says_nothing = !yarn->mscale && !yarn->all_dim && !yarn->attention_factor;
  if (says_nothing || (yarn->has_both() && !yarn->attention_factor)) return hf;
  const double beside = has_latent_attention(mapping) ? yarn->all_dim.value_or(0.0) : 0.0;
  double whole = magnitude(yarn->factor, 1.0);
  if (yarn->attention_factor) whole = *yarn->attention_factor;
  hf.insert_or_assign(yarn->prefix + "mscale", yarn->mscale_of(whole, beside));
  hf.insert_or_assign(yarn->prefix + "mscale_all_dim", beside);
  hf.erase(yarn->prefix + "attention_factor");
  return hf;
}

void add_attention_factor(const Mapping& mapping, Arguments& hf) {
  const std::optional<Yarn> yarn = yarn_of(mapping, hf);
  if (!yarn || yarn->attention_factor || yarn->has_both()) return;
  if (!yarn->mscale || !yarn->all_dim) return;  // Megatron-Core heeds neither alone
  const double whole =
      magnitude(yarn->factor, *yarn->mscale) / magnitude(yarn->factor, *yarn->all_dim);
  const double beside = has_latent_attention(mapping) ? *yarn->all_dim : 0.0;
  const double mscale = yarn->mscale_of(whole, beside);
  if (mscale == yarn->mscale_of(magnitude(yarn->factor, 1.0), beside)) return;
  // The shortest one that leads to the same mscale.
  constexpr int kAllDigits = 17;
  int digits = 1;
  while (digits < kAllDigits && yarn->mscale_of(rounded(whole, digits), beside) != mscale) ++digits;
  hf.insert_or_assign(yarn->prefix + "attention_factor", rounded(whole, digits));
}

}  // namespace shardwright
