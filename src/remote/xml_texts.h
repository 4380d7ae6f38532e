// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// An element of a server's answer.
struct XmlText {
  std::string place;  ///< the names of the elements around it and its own: `Error/Code`
  std::string text;   ///< "" where it has others in it
};

/// The elements of an answer in the order in which they end: what is in one comes before it. Names
/// are without those of namespaces. Error: kRemote, also for what is too deep or too long; `what`
/// stands in it for the answer.
[[nodiscard]] Result<std::vector<XmlText>> xml_texts(std::string_view xml, std::string_view what);

}  // namespace shardwright
