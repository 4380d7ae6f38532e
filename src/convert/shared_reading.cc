// SPDX-License-Identifier: Apache-2.0
#include "convert/shared_reading.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr auto kReadingPause = std::chrono::milliseconds(2);

}  // namespace

SharedReading::SharedReading(RankSession& session)
    : session_(session), known_(std::make_shared<KnownBytes>()) {
  if (session_.is_first()) return;
  session_.on_message(Channel::kReading,
                      [this](int, std::string_view bytes) { return take_in(bytes); });
}

SharedReading::~SharedReading() {
  if (!session_.is_first()) session_.on_message(Channel::kReading, {});
}

Status SharedReading::run(const std::function<Status()>& body) {
  SW_TRY(begin());
  Status status = body();
  if (status) end();
  paths_.reset();
  return status;
}

Status SharedReading::begin() {
  if (session_.is_first()) {
    if (session_.size() > 1) paths_.emplace(known_, KnownPaths::Way::kTell);
    return {};
  }
  std::optional<std::string> received;
  while (!received) {
    if (session_.stopped()) {
      return fail(Code::kCancelled, "stopped before anything was to be done");
    }
    {
      const std::scoped_lock lock(mutex_);
      received.swap(received_);
    }
    if (!received) std::this_thread::sleep_for(kReadingPause);
  }
  SW_TRY(known_->add_message(*received));
  paths_.emplace(known_, KnownPaths::Way::kTake);
  return {};
}

void SharedReading::end() {
  if (!paths_) return;
  if (session_.is_first()) send_on(known_->message());
  paths_.reset();
}

Status SharedReading::take_in(std::string_view bytes) {
  send_on(bytes);
  const std::scoped_lock lock(mutex_);
  received_ = std::string(bytes);
  return {};
}

// Each rank has two others to tell, so that none needs many copies, nor much time.
void SharedReading::send_on(std::string_view bytes) {
  for (int to = 2 * session_.rank() + 1; to <= 2 * session_.rank() + 2; ++to) {
    if (to < session_.size()) session_.send(to, Channel::kReading, bytes);
  }
}

}  // namespace shardwright
