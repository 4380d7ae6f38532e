// SPDX-License-Identifier: Apache-2.0
#include "io/pending_call.h"

#include <list>
#include <mutex>

namespace shardwright {
namespace {

using CallClock = std::chrono::steady_clock;

// What one thread waits for.
struct CallSlot {
  std::mutex mutex;  // of what follows
  const char* what = nullptr;
  const std::string* name = nullptr;
  CallClock::time_point begin;
};

struct CallSlots {
  std::mutex mutex;
  std::list<CallSlot*> slots;
};

// Never destroyed: threads may outlive what is.
CallSlots& all_slots() {
  static auto* const slots = new CallSlots;
  return *slots;
}

// A thread's, for as long as it lives.
class OwnSlot {
 public:
  OwnSlot() {
    CallSlots& all = all_slots();
    const std::scoped_lock lock(all.mutex);
    all.slots.push_back(&slot_);
  }
  ~OwnSlot() {
    CallSlots& all = all_slots();
    const std::scoped_lock lock(all.mutex);
    all.slots.remove(&slot_);
  }
  OwnSlot(const OwnSlot&) = delete;
  OwnSlot& operator=(const OwnSlot&) = delete;

  CallSlot& slot() { return slot_; }

 private:
  CallSlot slot_;
};

CallSlot& own_slot() {
  thread_local OwnSlot own;
  return own.slot();
}

}  // namespace

PendingCall::PendingCall(const char* what, const std::string& name) {
  CallSlot& slot = own_slot();
  const std::scoped_lock lock(slot.mutex);
  slot.what = what;
  slot.name = &name;
  slot.begin = CallClock::now();
}

PendingCall::~PendingCall() {
  CallSlot& slot = own_slot();
  const std::scoped_lock lock(slot.mutex);
  slot.what = nullptr;
}

std::optional<LongCall> longest_call() {
  std::optional<LongCall> longest;
  CallSlots& all = all_slots();
  const std::scoped_lock lock(all.mutex);
  const CallClock::time_point now = CallClock::now();
  for (CallSlot* slot : all.slots) {
    const std::scoped_lock slot_lock(slot->mutex);
    if (slot->what == nullptr || (longest && now - slot->begin <= longest->time)) continue;
    longest = LongCall{slot->what, *slot->name, now - slot->begin};
  }
  return longest;
}

}  // namespace shardwright
