// SPDX-License-Identifier: Apache-2.0
#include "verify/adapter_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "base/translated.h"
#include "convert/adapter_run.h"
#include "format/peft/adapter.h"

namespace shardwright {
namespace {

struct SaidOfAdapter {
  LoraConfig config;
  bool is_peft = false;  // else patterns are not said
};

Result<std::optional<SaidOfAdapter>> read_said(const Checkpoint& checkpoint) {
  if (checkpoint.directory->exists(kPeftConfigFile)) {
    return SaidOfAdapter{SW_TRY(read_peft_config(*checkpoint.directory)), true};
  }
  const AdapterRun run = SW_TRY(read_adapter_run(checkpoint));
  std::optional<SaidOfAdapter> said;
  if (!run.alpha) return said;
  said.emplace();
  said->config.alpha = as_real(*run.alpha);
  said->config.uses_rslora = run.uses_rslora;
  said->config.uses_dora = run.uses_dora;
  return said;
}

// What can't be read is no difference.
std::optional<SaidOfAdapter> said_or_note(const Checkpoint& checkpoint, Notes& notes) {
  auto said = read_said(checkpoint);
  if (said) return *std::move(said);
  notes.push_back(translated("{}: its settings as an adapter are not compared: {}",
                             checkpoint.location.path, said.error().message));
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
  const auto one = said_or_note(left, notes);
  const auto other = said_or_note(right, notes);
  if (!one || !other) return {};
  const LoraConfig& a = one->config;
  const LoraConfig& b = other->config;
  Differing differing;
  differing.add("lora_alpha", a.alpha, b.alpha);
  differing.add("use_rslora", a.uses_rslora, b.uses_rslora);
  differing.add("use_dora", a.uses_dora, b.uses_dora);
  if (one->is_peft && other->is_peft) {
    differing.add("alpha_pattern", a.alpha_pattern, b.alpha_pattern);
    differing.add("rank_pattern", a.rank_pattern, b.rank_pattern);
    differing.add("fan_in_fan_out", a.is_fan_in_fan_out, b.is_fan_in_fan_out);
  }
  return std::move(differing).take();
}

}  // namespace shardwright
