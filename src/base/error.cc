// SPDX-License-Identifier: Apache-2.0
#include "shardwright/error.h"

#include <fmt/core.h>

namespace shardwright {

namespace {

// Whether a message is about the object already: it begins with it, with something inside it, or
// with a longer path to it. What knows a file's whole path and what knows only its name in a folder
// both say where they are.
bool is_about(std::string_view message, std::string_view object) {
  if (object.empty()) return true;
  if (message.starts_with(object)) {
    const std::string_view rest = message.substr(object.size());
    return rest.empty() || std::string_view("/:@ ").contains(rest.front());
  }
  const std::string_view place = message.substr(0, message.find_first_of(":@"));
  return place.ends_with(object) && place[place.size() - object.size() - 1] == '/';
}

}  // namespace

Error Error::within(std::string_view object) && {
  if (!is_about(message, object)) message = fmt::format("{}: {}", object, message);
  return std::move(*this);
}

std::string Error::text() const { return fmt::format("error[{}]: {}", code_name(code), message); }

std::string code_name(Code code) { return fmt::format("SW{:04}", static_cast<int>(code)); }

}  // namespace shardwright
