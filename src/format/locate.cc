// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "base/fail.h"
#include "format/iteration_folder.h"
#include "format/lone_file.h"
#include "format/refused_format.h"
#include "format/sibling.h"
#include "remote/open_path.h"
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

std::string_view last_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::optional<std::int64_t> iteration_of(std::string_view path) {
  constexpr std::string_view kStep = "global_step_";
  for (const std::string_view prefix :
       {std::string_view("iter_"), std::string_view("step_"), kStep}) {
    if (const auto number = number_after(last_name(path), prefix)) return number;
  }
  // verl's folders of a step have one for each role, and that may have one for each kind.
  for (int steps = 0; steps < 2 && path.find('/') != std::string_view::npos; ++steps) {
    path = path.substr(0, path.find_last_of('/'));
    if (const auto number = number_after(last_name(path), kStep)) return number;
  }
  return std::nullopt;
}

std::string without_slashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

}  // namespace

Result<Location> locate_checkpoint(std::string_view path, const FormatChoice& choice) {
  SW_TRY(check_format_name(choice));
  const std::string root = without_slashes(path);
  const bool is_lone = is_lone_file(root);
  if (!is_lone && is_file(root)) {
    const Sibling* sibling = recognise_sibling_file(last_name(root));
    if (sibling != nullptr) return refuse_sibling(root, *sibling);
    return fail(Code::kUnknownFormat,
                "{}: of single files only a model's .safetensors, .bin, .pt or .pth file is a "
                "checkpoint; give the folder, or look at the file with 'shardwright inspect'",
                root);
  }
  const auto directory = SW_TRY(is_lone ? open_lone_file(root) : open_directory(root));
  Detection detection =
      SW_TRY(detect(*directory, choice.format, is_lone ? last_name(root) : std::string_view()));
  Candidate found = SW_TRY(only_candidate(*directory, root, std::move(detection), choice));
  Location location;
  location.format = found.format->name();
  location.traits = found.format->traits();
  location.path = found.folder.empty() ? root : root + "/" + found.folder;
  location.iteration = iteration_of(location.path);
  location.reasons = std::move(found.reasons);
  location.notes = std::move(found.notes);
  std::ranges::move(found.facts, std::back_inserter(location.reasons));
  return location;
}

}  // namespace shardwright
