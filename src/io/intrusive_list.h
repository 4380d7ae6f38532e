// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardwright {

template <typename T>
class IntrusiveList;

/// Its places in an IntrusiveList, the base of what is in one.
template <typename T>
class InIntrusiveList {
  friend class IntrusiveList<T>;
  T* before_ = nullptr;
  T* behind_ = nullptr;
};

/// Objects that hold their own places in the list: it takes no memory, and needs neither a
/// constructor nor a destructor, so that threads may outlive what has one. Not locked.
template <typename T>
class IntrusiveList {
 public:
  [[nodiscard]] T* first() const noexcept { return first_; }
  /// nullptr behind the last one.
  [[nodiscard]] static T* behind(const T& one) noexcept { return links(one).behind_; }

  void add(T& one) noexcept {
    links(one).behind_ = first_;
    if (first_ != nullptr) links(*first_).before_ = &one;
    first_ = &one;
  }

  /// What is in no list is left as it is.
  void remove(T& one) noexcept {
    auto& [before, behind] = links(one);
    if (before == nullptr && first_ != &one) return;
    (before != nullptr ? links(*before).behind_ : first_) = behind;
    if (behind != nullptr) links(*behind).before_ = before;
    before = behind = nullptr;
  }

 private:
  [[nodiscard]] static InIntrusiveList<T>& links(T& one) noexcept { return one; }
  [[nodiscard]] static const InIntrusiveList<T>& links(const T& one) noexcept { return one; }

  T* first_ = nullptr;
};

}  // namespace shardwright
