// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace shardwright {

/// The page's own files and the drawing library, built into the program by cmake/embed_page.cmake.
struct PageParts {
  std::string_view style;
  std::string_view library;  ///< d3, as it is distributed, behind its licence
  std::string_view script;
};
[[nodiscard]] PageParts page_parts();

/// One HTML file that shows the document and needs nothing else. Whatever the document's texts are,
/// none of them ends its element, and its policy lets only the page's own two scripts run.
[[nodiscard]] std::string html_page(const nlohmann::ordered_json& document,
                                    std::string_view language);

}  // namespace shardwright
