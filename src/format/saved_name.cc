// SPDX-License-Identifier: Apache-2.0
#include "format/saved_name.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>
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

// A file's name without its folder.
std::string_view own_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Status check_saved_name(const ReadableFile& file, std::string_view saved_as, std::size_t others) {
  const std::string_view name = own_name(file.name());
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

Status SavedOrder::add(std::string_view file, std::string_view saved_as) {
  const std::string_view name = own_name(file);
  const std::string_view stem = name.substr(0, name.rfind('.'));
  NumberedWords saved = numbered_words(saved_as);
  if (saved.numbers.empty() || saved.words != numbered_words(stem).words) return {};
  std::string& number = saved.numbers.front();
  const auto place = [](const std::string& digits) { return std::pair(digits.size(), digits); };
  const auto [last, is_first] = last_.try_emplace(std::move(saved.words));
  if (!is_first && place(number) < place(last->second.number)) {
    return fail(Code::kRankMisplaced,
                "{}: was saved as {}{}, in front of {}, which was saved as {}{}: they are in each "
                "other's place; give each file the name that it was saved under",
                file, printable(saved_as), name.substr(stem.size()), last->second.file,
                printable(last->second.saved_as), name.substr(stem.size()));
  }
  last->second = {std::move(number), std::string(file), std::string(saved_as)};
  return {};
}

Result<TorchFile> open_rank_file(const ReadableFile& file, std::size_t others) {
  TorchFile torch = SW_TRY(TorchFile::open(file));
  SW_TRY(check_saved_name(file, torch.saved_as(), others));
  return torch;
}

}  // namespace shardwright
