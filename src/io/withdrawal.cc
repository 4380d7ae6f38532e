// SPDX-License-Identifier: Apache-2.0
#include "io/withdrawal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "io/partial_outputs.h"
#include "io/pending_call.h"

namespace shardwright {

Withdrawal::Withdrawal(std::string partial, std::string target, std::shared_ptr<PublishCalls> calls)
    : partial_(std::move(partial)), target_(std::move(target)), calls_(std::move(calls)) {
  const PendingCall pending("a call to open this folder", partial_);
  seen_ = UniqueFd(::open(partial_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat details{};
  if (seen_.valid() && ::fstat(seen_.get(), &details) == 0) {
    identity_ = Identity(details.st_dev, details.st_ino);
  }
}

std::optional<Withdrawal::Identity> Withdrawal::identity_of(const std::string& path) {
  struct stat details{};
  if (::lstat(path.c_str(), &details) != 0) return std::nullopt;
  return Identity(details.st_dev, details.st_ino);
}

bool Withdrawal::is_at(const std::string& path) const {
  return identity_ && identity_of(path) == identity_;
}

std::optional<std::string> Withdrawal::withdraw() {
  if (!identity_) return partial_;
  // In a turn, as the other process takes back what it may not publish: one after the other.
  const BeginningTurn turn(std::filesystem::path(target_).parent_path().string());
  const std::string aside = free_name();
  for (const std::string& place : {partial_, target_}) {
    if (is_at(place) && move_aside(place, aside)) return aside;
  }
  return find();
}

// False: it is not where it was. Another folder may be there since the look.
bool Withdrawal::move_aside(const std::string& from, const std::string& aside) {
  if (calls_->rename(from, aside) != 0) return false;
  if (is_at(aside)) return true;
  (void)calls_->rename(aside, from);
  return false;
}

std::string Withdrawal::free_name() const {
  for (int number = 0;; ++number) {
    std::string name = partial_path(target_, number);
    if (!identity_of(name)) return name;
  }
}

std::optional<std::string> Withdrawal::find() const {
  const auto beside = list_partial_outputs(std::filesystem::path(target_).parent_path().string());
  if (!beside) return partial_;
  for (const PartialOutput& output : *beside) {
    if (is_at(output.path)) return output.path;
  }
  return std::nullopt;
}

}  // namespace shardwright
