// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/json_node.h"
#include "shardwright/error.h"

namespace shardwright {

/// What a mapping file says of itself, which no file that it extends can say. Enough to tell
/// whether its rules are needed.
struct MappingHeading {
  std::string family;
  std::vector<std::string> architectures;
  std::vector<std::string> model_types;
  std::vector<std::string> extends;  ///< families
};

/// The text of one mapping file. Borrows.
struct MappingText {
  std::string name;  ///< for messages: `llama.json`
  std::string_view json;
  MappingHeading heading = {};  ///< where it is known already; without a family: in the text
};

/// The whole text. Errors: kMappingInvalid for what is no JSON or costs too much.
[[nodiscard]] Result<Json> parse_mapping_text(const MappingText& text);

/// The heading of such a document. Errors: kMappingInvalid.
[[nodiscard]] Result<MappingHeading> heading_of(const Json& json, std::string_view name);

/// The heading of a text, which is parsed only where nobody has. Errors: as of both above.
[[nodiscard]] Result<MappingHeading> read_heading(const MappingText& text);

}  // namespace shardwright
