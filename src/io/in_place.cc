// SPDX-License-Identifier: Apache-2.0
#include "io/in_place.h"

#include <atomic>

namespace shardwright {
namespace {

constinit std::atomic<bool> is_in_place = false;

}  // namespace

bool is_output_in_place() noexcept { return is_in_place; }

void note_output_in_place() noexcept { is_in_place = true; }

void forget_outputs() noexcept { is_in_place = false; }

}  // namespace shardwright
