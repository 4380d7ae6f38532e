// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardwright {

class PendingCall;

/// Removes a file, or a folder and what is in it, however deep; follows no links. It needs no
/// memory, so what was begun can be taken back also where memory has run out. What can't be removed
/// stays, the rest goes. `pending`, where there is one, is renewed for each file and folder.
/// Returns 0 (also if nothing is there) or the first errno.
[[nodiscard]] int remove_tree(const char* path, PendingCall* pending = nullptr) noexcept;

}  // namespace shardwright
