// SPDX-License-Identifier: Apache-2.0
#include "format/weight_files.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "format/lone_file.h"
#include "format/unfinished_download.h"
#include "format/weight_names.h"

namespace shardwright {
namespace {

// More files than any save has: of a name that counts further some of the missing are listed.
constexpr std::size_t kMostMissing = 100'000;

// `model-00002-of-00003.safetensors`: what is before the first number, between them, and behind.
struct CountedName {
  std::string stem;
  std::string number;
  std::string count;
  std::string ending;
};

// Takes the digits off the end.
std::string take_last_digits(std::string_view& text) {
  const std::size_t begin = text.find_last_not_of("0123456789") + 1;
  std::string digits(text.substr(begin));
  text = text.substr(0, begin);
  return digits;
}

std::optional<CountedName> parse_numbered(std::string_view file) {
  constexpr std::string_view kOf = "-of-";
  const std::size_t dot = std::min(file.rfind('.'), file.size());
  std::string_view rest = file.substr(0, dot);
  CountedName name;
  name.ending = file.substr(dot);
  name.count = take_last_digits(rest);
  if (!rest.ends_with(kOf)) return std::nullopt;
  rest.remove_suffix(kOf.size());
  name.number = take_last_digits(rest);
  name.stem = rest;
  if (name.number.empty() || name.count.empty()) return std::nullopt;
  return name;
}

std::optional<std::int64_t> number_in(std::string_view digits) { return take_number(digits); }

// Each rank of torch's HuggingFaceStorageWriter writes those of the numbers that it has a part of,
// as `shard-00004-model-00001-of-00002.safetensors`.
std::string of_all_ranks(const std::string& stem) {
  constexpr std::string_view kShard = "shard-";
  std::string_view rest = stem;
  if (!rest.starts_with(kShard)) return stem;
  rest.remove_prefix(kShard.size());
  return take_number(rest) && rest.starts_with('-') ? fmt::format("{}*{}", kShard, rest) : stem;
}

// Files of one stem, ending and count.
struct NumberedFiles {
  std::string first;  // its name
  CountedName parts;
  std::set<std::int64_t> numbers;
};

std::vector<std::string> missing_of(const NumberedFiles& files, std::int64_t count) {
  const std::int64_t begin = files.numbers.contains(0) ? 0 : 1;
  const CountedName& parts = files.parts;
  std::vector<std::string> missing;
  for (std::int64_t i = 0; i < count && missing.size() < kMostMissing; ++i) {
    if (files.numbers.contains(begin + i)) continue;
    missing.push_back(fmt::format("{}{:0{}}-of-{}{}", parts.stem, begin + i, parts.number.size(),
                                  parts.count, parts.ending));
  }
  return missing;
}

Status check_all_there(const Directory& directory, const NumberedFiles& files) {
  const std::int64_t count = number_in(files.parts.count).value_or(0);
  const std::vector<std::string> missing = missing_of(files, count);
  if (missing.empty()) return {};
  Error error = fail(Code::kNotFound,
                     "{}: found {} of the {} files that its name tells of; copy the missing ones "
                     "too: {}",
                     files.first, files.numbers.size(), count, name_list(missing))
                    .error();
  return std::unexpected(with_download_hint(std::move(error), directory, missing.front()));
}

std::unexpected<Error> refuse_two_saves(std::string_view one, std::string_view other) {
  return fail(Code::kTwoCheckpoints,
              "found {} and {}, which are of two saves; move the files of the other away", one,
              other);
}

// accelerate's `save_state` numbers the models behind the first: `model_1.safetensors`,
// `pytorch_model_1.bin`, `pytorch_model_fsdp_1.bin`.
std::string first_model_of(std::string_view file) {
  const std::size_t dot = std::min(file.rfind('.'), file.size());
  std::string_view stem = file.substr(0, dot);
  if (take_last_digits(stem).empty() || !stem.ends_with('_')) return {};
  stem.remove_suffix(1);
  const bool is_accelerates = stem.ends_with("model") || stem.ends_with("model_fsdp");
  return is_accelerates ? std::string(stem) + std::string(file.substr(dot)) : std::string();
}

Status check_one_model(std::span<const std::string> files) {
  for (const std::string& file : files) {
    const std::string first = first_model_of(file);
    if (first.empty() || std::ranges::find(files, first) == files.end()) continue;
    return fail(Code::kTwoCheckpoints,
                "found {} and {}, which are two models of one save; give the path of the one that "
                "you mean",
                first, file);
  }
  return {};
}

bool is_variant(std::string_view file, std::string_view whole) {
  if (file.starts_with("consolidated")) return true;
  const std::string_view stem = whole.substr(0, whole.rfind('.') + 1);
  return file != whole && file.starts_with(stem);
}

}  // namespace

Status check_numbered_files(const Directory& directory, std::span<const std::string> files) {
  SW_TRY(check_one_model(files));
  std::map<std::pair<std::string, std::string>, NumberedFiles> saves;  // by stem and ending
  for (const std::string& file : files) {
    std::optional<CountedName> parts = parse_numbered(file);
    const auto number = parts ? number_in(parts->number) : std::nullopt;
    if (!number || !number_in(parts->count)) continue;
    parts->stem = of_all_ranks(parts->stem);
    NumberedFiles& save = saves[{parts->stem, parts->ending}];
    if (save.first.empty()) {
      save.first = file;
      save.parts = *parts;
    }
    if (number_in(save.parts.count) != number_in(parts->count)) {
      return refuse_two_saves(save.first, file);
    }
    save.numbers.insert(*number);
  }
  for (const auto& [key, save] : saves) {
    std::string whole = key.first;
    if (!whole.empty()) whole.pop_back();
    whole += key.second;
    if (std::ranges::find(files, whole) != files.end()) return refuse_two_saves(save.first, whole);
    SW_TRY(check_all_there(directory, save));
  }
  return {};
}

std::string whole_model_of(std::string_view index_file) {
  constexpr std::string_view kEnding = ".index.json";
  return std::string(index_file.substr(0, index_file.size() - kEnding.size()));
}

Result<bool> is_stale_index(const Directory& directory, std::string_view index_file,
                            const HfIndex& index) {
  const std::string whole = whole_model_of(index_file);
  if (!directory.exists(whole)) return false;
  for (const auto& [key, file] : index.files) {
    if (file == whole) return false;
    if (!directory.exists(file)) continue;
    return fail(Code::kTwoCheckpoints,
                "found {} and {}, which {} names: models of two saves; move the files of the "
                "other away",
                whole, file, index_file);
  }
  return true;
}

std::string stale_index_note(std::string_view index_file) {
  return translated(
      "{} names files that are not there; the model is read from the file beside it, as "
      "transformers does",
      index_file);
}

std::string take_variants(std::vector<std::string>& files) {
  std::vector<std::string> variants;
  for (const std::string_view index_file : kHfIndexFiles) {
    const std::string whole = whole_model_of(index_file);
    if (std::ranges::find(files, whole) == files.end()) continue;
    std::erase_if(files, [&](const std::string& file) {
      if (!is_variant(file, whole)) return false;
      variants.push_back(file);
      return true;
    });
  }
  if (variants.empty()) return {};
  return translated("{} files beside the whole model are other forms of it and are left out: {}",
                    variants.size(), name_list(variants));
}

std::string lone_part_note(const Checkpoint& checkpoint) {
  const std::string& path = checkpoint.location.path;
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::optional<CountedName> parts = parse_numbered(name);
  const std::int64_t count = parts ? number_in(parts->count).value_or(1) : 1;
  if (count <= 1 || !is_lone_file(path)) return {};
  return translated(
      "{} is one of {} files by its name; only this one was given, the others are left out", name,
      count);
}

Status check_unindexed_files(std::span<const std::string> files, Checkpoint& checkpoint,
                             Defects& defects) {
  std::string note = lone_part_note(checkpoint);
  if (note.empty()) return defects.report(check_numbered_files(*checkpoint.directory, files));
  checkpoint.notes.push_back(std::move(note));
  return {};
}

std::string unnamed_files_note(std::string_view index, std::span<const std::string> files,
                               std::span<const std::string> read) {
  std::vector<std::string> unnamed;
  for (const std::string& file : files) {
    if (std::ranges::find(read, file) == read.end()) unnamed.push_back(file);
  }
  if (unnamed.empty()) return {};
  return translated("{}: {} files are not named by it and are left out: {}", index, unnamed.size(),
                    name_list(unnamed));
}

}  // namespace shardwright
