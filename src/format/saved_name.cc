// SPDX-License-Identifier: Apache-2.0
#include "format/saved_name.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

// A name with each of its numbers, whatever zeros are in front, put apart.
struct NumberedWords {
  std::string words;
  std::vector<std::string> numbers;
};

NumberedWords numbered_words(std::string_view name) {
  NumberedWords result;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    if (end == i) {
      result.words += name[i++];
      continue;
    }
    while (i + 1 < end && name[i] == '0') ++i;
    result.words += '#';
    result.numbers.emplace_back(name.substr(i, end - i));
    i = end;
  }
  return result;
}

}  // namespace

Status check_saved_name(const ReadableFile& file, std::string_view saved_as, std::size_t others) {
  std::string_view name = file.name();
  name.remove_prefix(name.rfind('/') + 1);
  const std::string_view stem = name.substr(0, name.rfind('.'));
  const NumberedWords own = numbered_words(stem);
  const NumberedWords saved = numbered_words(saved_as);
  if (own.words != saved.words) return {};
  const auto left_out = static_cast<std::ptrdiff_t>(std::min(others, own.numbers.size()));
  if (std::ranges::equal(own.numbers | std::views::drop(left_out),
                         saved.numbers | std::views::drop(left_out))) {
    return {};
  }
  return fail(Code::kRankMisplaced,
              "{}: was saved as {}{}, the file of another rank; give each file the name that it "
              "was saved under",
              file.name(), printable(saved_as), name.substr(stem.size()));
}

Result<TorchFile> open_rank_file(const ReadableFile& file, std::size_t others) {
  TorchFile torch = SW_TRY(TorchFile::open(file));
  SW_TRY(check_saved_name(file, torch.saved_as(), others));
  return torch;
}

}  // namespace shardwright
