// SPDX-License-Identifier: Apache-2.0
#include "format/file_of_tensor.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "base/translated.h"

namespace shardwright {
namespace {

// Null where it lies in several.
const std::string* file_of(const StoredTensor& tensor, const Catalog& catalog) {
  const std::string* file = nullptr;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const std::uint32_t number = tensor.chunks.file(i);
    if (number >= catalog.files.size()) return nullptr;
    if (file != nullptr && *file != catalog.files[number]) return nullptr;
    file = &catalog.files[number];
  }
  return file;
}

}  // namespace

Error with_file(Error error, const Catalog& catalog) {
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) by_name.emplace(tensor.desc.name, &tensor);
  constexpr std::string_view kBetween = " ,;:()\n";
  const std::string_view message = error.message;
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t end = std::min(message.find_first_of(kBetween, begin), message.size());
    const auto named = by_name.find(message.substr(begin, end - begin));
    begin = end + 1;
    if (named == by_name.end()) continue;
    const std::string* file = file_of(*named->second, catalog);
    if (file == nullptr || message.contains(*file)) return error;
    error.message =
        translated("{}; {} lies in {}", error.message, printable(named->first), printable(*file));
    return error;
  }
  return error;
}

}  // namespace shardwright
