// SPDX-License-Identifier: Apache-2.0
#include "convert/averaged_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/model_facts.h"
#include "model/config.h"
#include "model/config_rules.h"
#include "model/differing_settings.h"

namespace shardwright {
namespace {

std::string_view leaf_of_key(std::string_view key) { return key.substr(key.rfind('.') + 1); }

bool is_passed_over(std::string_view key) {
  return is_of_the_file(key) || is_of_the_file(leaf_of_key(key));
}

// What one of the checkpoints says of its model.
struct Said {
  std::optional<HfConfig> config;
  Arguments arguments;  ///< of the run that made it
};

Result<Said> said_by(const Checkpoint& checkpoint) {
  Said said;
  said.arguments = SW_TRY(run_arguments(checkpoint));
  const std::string& text = checkpoint.hf_config;
  if (!text.empty()) said.config = SW_TRY(read_hf_config(text));
  return said;
}

class ModelComparison {
 public:
  ModelComparison(Drafting& first, const std::string& path) : first_(first), path_(path) {}

  Status run(const Checkpoint& checkpoint) {
    const Said own = SW_TRY(said_by(first_.source()));
    const Said theirs = SW_TRY(said_by(checkpoint));
    SW_TRY(find_family_of(own.config ? own : theirs));
    if (own.config && theirs.config) {
      SW_TRY(check_family(*own.config, *theirs.config));
      if (mapping_ == nullptr) {
        SW_TRY(compare(own.config->values, theirs.config->values, {}));
      } else {
        const SettingNames read = settings_read(*mapping_, &SizeRule::hf, &ConfigRule::hf);
        SW_TRY(compare(own.config->values, theirs.config->values, read));
        SW_TRY(compare_arguments(own, theirs));
      }
    } else {
      SettingNames read;
      for (const Mapping& mapping : first_.mappings) {
        read.merge(settings_read(mapping, &SizeRule::args, &ConfigRule::args));
      }
      const auto mine = arguments_of(own);
      const auto other = arguments_of(theirs);
      if (mine && other) SW_TRY(compare(*mine, *other, read));
    }
    tell();
    return {};
  }

 private:
  // A family that is not known, or whose rules can't take this config, is told elsewhere.
  Status find_family_of(const Said& said) {
    SW_TRY(load_mappings(first_));
    const std::string& flag = first_.request().family;
    const auto found = !flag.empty() ? find_family(first_.mappings, flag)
                       : said.config ? find_family(first_.mappings, *said.config)
                                     : Result<const Mapping*>(nullptr);
    mapping_ = found ? *found : nullptr;
    return {};
  }

  // Families whose tensors look the same compute otherwise with them, by rules of their own that no
  // key of config.json says.
  Status check_family(const HfConfig& own, const HfConfig& theirs) {
    if (own.model_type == theirs.model_type || !first_.request().family.empty()) return {};
    const auto mine = find_family(first_.mappings, own);
    const auto other = find_family(first_.mappings, theirs);
    if (mine && other && *mine == *other) return {};
    return fail(Code::kConfigMissing,
                "{}: found {} = {}, expected {}, which {} has; only checkpoints of one model "
                "are averaged (--hf-config gives a config.json that is true of all)",
                path_, "model_type", theirs.model_type, own.model_type, first_.request().input);
  }

  [[nodiscard]] std::optional<Arguments> arguments_of(const Said& said) const {
    if (!said.config) return said.arguments;
    if (mapping_ == nullptr) return std::nullopt;
    auto made = args_from_hf_config(*mapping_, *said.config);
    if (!made) return std::nullopt;
    return Arguments(made->values.begin(), made->values.end());
  }

  // What the family makes of keys that only one of them has: of an argument that it makes for one
  // only, the other has None.
  Status compare_arguments(const Said& own, const Said& theirs) {
    std::optional<Arguments> mine = arguments_of(own);
    std::optional<Arguments> other = arguments_of(theirs);
    if (!mine || !other) return {};
    for (const auto& [name, value] : *mine) other->emplace(name, std::monostate{});
    for (const auto& [name, value] : *other) mine->emplace(name, std::monostate{});
    return compare(*mine, *other, settings_read(*mapping_, &SizeRule::args, &ConfigRule::args));
  }

  // Keys that both have: what a missing one means is its family's to say.
  Status compare(const Arguments& own, const Arguments& theirs, const SettingNames& read) {
    for (const auto& [key, value] : own) {
      const auto found = theirs.find(key);
      const bool is_in_both = found != theirs.end() && !is_passed_over(key);
      if (!is_in_both || same_value(value, found->second)) continue;
      if (!is_of_training(key) && read.contains(key)) {
        return fail(Code::kConfigMissing,
                    "{}: found {} = {}, expected {}, which {} has; only checkpoints of one model "
                    "are averaged (--hf-config gives a config.json that is true of all)",
                    path_, printable(key), to_string(found->second), to_string(value),
                    first_.request().input);
      }
      differing_.insert(printable(key));
    }
    return {};
  }

  void tell() {
    if (differing_.empty()) return;
    const std::vector<std::string> names(differing_.begin(), differing_.end());
    first_.tell(translated("{}: what it says of itself differs in {}; that of {} is kept", path_,
                           name_list(names), first_.request().input));
  }

  Drafting& first_;
  const std::string& path_;
  const Mapping* mapping_ = nullptr;
  std::set<std::string> differing_;
};

}  // namespace

Status check_one_model(Drafting& first, const std::string& path, const Checkpoint& other) {
  if (!first.request().hf_config_dir.empty()) return {};
  return ModelComparison(first, path).run(other);
}

}  // namespace shardwright
