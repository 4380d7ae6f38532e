// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// Calls `prepare(i)` for each i below `count` on other threads, a few numbers ahead, and
/// `take(i)` on this one, in order, once i is prepared: what waits for a disk or a server is done
/// side by side, what comes of it is the same as one by one. Ends with the first error of `take`;
/// the rest is not prepared then. Error: kOutOfMemory too, in place of `take(i)` where `prepare(i)`
/// had no memory.
[[nodiscard]] Status prepare_ahead(std::size_t count,
                                   const std::function<void(std::size_t)>& prepare,
                                   const std::function<Status(std::size_t)>& take);

/// The same for what `read(i)` returns, which is `take(i, value)`'s then.
template <class Read, class Take>
[[nodiscard]] Status read_ahead(std::size_t count, const Read& read, const Take& take) {
  std::vector<std::optional<std::invoke_result_t<const Read&, std::size_t>>> values(count);
  return prepare_ahead(
      count, [&](std::size_t i) { values[i].emplace(read(i)); },
      [&](std::size_t i) -> Status {
        auto value = *std::move(values[i]);
        values[i].reset();
        return take(i, std::move(value));
      });
}

}  // namespace shardwright
