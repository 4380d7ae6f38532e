// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "io/publish.h"

namespace shardwright {

/// Takes an output from a process that was to publish it and is lost, though it may only have been
/// stopped and go on at any moment: the hidden folder gets another name, so that a rename of it
/// finds nothing, and what was published already is hidden again. Not for an output that replaces
/// something: that may be half removed by then, so there is no way back. Not thread-safe.
class Withdrawal {
 public:
  /// Looks at the hidden folder (an absolute path), to know it again under any name.
  Withdrawal(std::string partial, std::string target,
             std::shared_ptr<PublishCalls> calls = std::make_shared<PublishCalls>());

  /// Gives the folder's name now, `.<name>.partial-<this process>-<n>`, unless another process that
  /// takes it too was first. If it can't be moved, the one that it has. Nothing: it is gone.
  [[nodiscard]] std::optional<std::string> withdraw();

 private:
  using Identity = std::pair<dev_t, ino_t>;
  [[nodiscard]] static std::optional<Identity> identity_of(const std::string& path);
  [[nodiscard]] bool is_at(const std::string& path) const;
  [[nodiscard]] std::string free_name() const;
  [[nodiscard]] bool move_aside(const std::string& from, const std::string& aside);
  [[nodiscard]] std::optional<std::string> find() const;

  std::string partial_;
  std::string target_;
  std::shared_ptr<PublishCalls> calls_;
  UniqueFd seen_;  // as long as it is open no other folder gets the same number
  std::optional<Identity> identity_;
};

}  // namespace shardwright
