// SPDX-License-Identifier: Apache-2.0
#include "verify/adapter_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <variant>

#include "base/translated.h"
#include "convert/adapter_run.h"
#include "format/peft/adapter.h"

namespace shardwright {
namespace {

struct AdapterSettings {
  double alpha = 0.0;
  bool uses_rslora = false;
  bool uses_dora = false;
  LoraConfig config;  // of PEFT; patterns are its own
  bool is_peft = false;
};

Result<std::optional<AdapterSettings>> read_settings_of(const Checkpoint& checkpoint) {
  std::optional<AdapterSettings> settings;
  if (checkpoint.directory->exists(kPeftConfigFile)) {
    const LoraConfig config = SW_TRY(read_peft_config(*checkpoint.directory));
    settings = {config.alpha, config.uses_rslora, config.uses_dora, config, true};
    return settings;
  }
  const AdapterRun run = SW_TRY(read_adapter_run(checkpoint));
  if (!run.alpha) return settings;
  const auto* whole = std::get_if<std::int64_t>(&*run.alpha);
  settings.emplace();
  settings->alpha = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(*run.alpha);
  settings->uses_rslora = run.uses_rslora;
  settings->uses_dora = run.uses_dora;
  return settings;
}

// What can't be read is no difference.
std::optional<AdapterSettings> settings_or_note(const Checkpoint& checkpoint, Notes& notes) {
  auto settings = read_settings_of(checkpoint);
  if (settings) return *std::move(settings);
  notes.push_back(translated("{}: its settings as an adapter are not compared: {}",
                             checkpoint.location.path, settings.error().message));
  return std::nullopt;
}

class Differing {
 public:
  template <class T>
  void add(std::string_view name, const T& left, const T& right) {
    if (left == right) return;
    found_.push_back(translated("adapter: {} is {}, and on the right {}", name,
                                fmt::format("{}", left), fmt::format("{}", right)));
  }

  [[nodiscard]] std::vector<std::string> take() && { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> differing_adapter_settings(const Checkpoint& left, const Checkpoint& right,
                                                    Notes& notes) {
  const auto one = settings_or_note(left, notes);
  const auto other = settings_or_note(right, notes);
  Differing differing;
  if (one && other) {
    differing.add("lora_alpha", one->alpha, other->alpha);
    differing.add("use_rslora", one->uses_rslora, other->uses_rslora);
    differing.add("use_dora", one->uses_dora, other->uses_dora);
  }
  if (one && other && one->is_peft && other->is_peft) {
    differing.add("alpha_pattern", one->config.alpha_pattern, other->config.alpha_pattern);
    differing.add("rank_pattern", one->config.rank_pattern, other->config.rank_pattern);
    differing.add("fan_in_fan_out", one->config.is_fan_in_fan_out, other->config.is_fan_in_fan_out);
  }
  return std::move(differing).take();
}

}  // namespace shardwright
