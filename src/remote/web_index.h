// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// What lies in a folder of a web server, as far as that is known; sizes are not.
struct WebNames {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

/// The names on a page that a server (nginx, Apache, Python's http.server, Caddy) makes of a folder
/// at `folder_path`; nothing of a page that is no such list. Names of more than one word are none.
[[nodiscard]] WebNames names_on_page(std::string_view html, std::string_view folder_path);

/// Names that files of checkpoints have, to be tried where a server shows no list.
[[nodiscard]] std::span<const std::string_view> known_web_names();

/// The files that an index of safetensors or torch files names. Error: kJsonCorrupt.
[[nodiscard]] Result<std::vector<std::string>> files_in_index(std::string_view text,
                                                              std::string_view name);

}  // namespace shardwright
