// SPDX-License-Identifier: Apache-2.0
#include "convert/carried_pickles.h"

#include <unordered_set>

#include "base/fail.h"
#include "format/pickle_files.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

Status judge(const Result<pickle::Audit>& audit, const std::string& name, std::string_view remedy) {
  // What is no pickle at all is for its reader to say.
  if (!audit || audit->runs.empty()) return {};
  Error error = pickle::refuse_code(*audit, name);
  error.message += translated(
      "; it is not written into another checkpoint, where somebody might trust it: {}", remedy);
  return std::unexpected(std::move(error));
}

Status judge_stored(const std::string& name, const StoredObject& object, SourceFiles& files,
                    std::string_view remedy) {
  if (object.range.length == 0) return {};
  const std::shared_ptr<const ReadableFile> file = SW_TRY(files.get(object.file));
  return judge(audit_file(*file, object.range), name, remedy);
}

Status judge_bytes(const std::string& name, const std::string& bytes) {
  const auto file = make_memory_file(name, bytes);
  return judge(audit_file(*file, {0, bytes.size()}), name,
               "convert with --to hf or --to safetensors, which carry no state");
}

}  // namespace

Status refuse_hostile_pickles(const TargetParts& parts, SourceFiles& files) {
  for (const StoredObject& object : parts.copied_objects) {
    SW_TRY(judge_stored(translated("entry {}", object.name), object, files,
                        translated("leave it out with --exclude '{}'", object.name)));
  }
  for (const auto& [path, object] : parts.artifacts) {
    SW_TRY(judge_stored(path, object, files, "remove the file from the source"));
  }
  std::unordered_set<const std::string*> judged;  // many are the same for every layer
  for (const auto& [name, bytes] : parts.new_objects) {
    if (!judged.insert(bytes.get()).second) continue;
    SW_TRY(judge_bytes(translated("entry {}", name), *bytes));
  }
  if (parts.common_state.empty()) return {};
  return judge_bytes("the common state", parts.common_state);
}

}  // namespace shardwright
