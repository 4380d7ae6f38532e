// SPDX-License-Identifier: Apache-2.0
#include "format/nemo/nemo_context.h"

#include <array>
#include <filesystem>

#include "base/fail.h"
#include "base/text.h"
#include "format/added_document.h"
#include "format/carried_files.h"
#include "format/folder.h"
#include "format/nemo/nemo_config.h"
#include "io/source_files.h"
#include "io/watched_directory.h"
#include "remote/open_path.h"
#include "state/document_names.h"
#include "state/provider_arguments.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

constexpr std::string_view kNemoModelFile = "model.yaml";
// Where a tokenizer's files are: its own folder, or beside model.yaml.
constexpr std::array<std::string_view, 3> kTokenizerFolders = {"nemo_tokenizer", "artifacts", ""};

// The folder that NeMo saved, which holds that of the weights.
std::string saved_folder(const Checkpoint& checkpoint) {
  std::error_code error;
  const std::string& path = checkpoint.location.path;
  const std::string data =
      is_remote_path(path) ? path : std::filesystem::absolute(path, error).string();
  if (error) return path;
  return folder_above(data).value_or(data);
}

// NeMo takes the mark away when a save is complete; it doesn't resume from one that has it.
void tell_unfinished(const std::string& saved, Checkpoint& checkpoint) {
  const std::string mark = saved + "-unfinished";
  if (!is_file(mark)) return;
  checkpoint.notes.push_back(translated(
      "{} says that NeMo did not finish this save; it would not resume from it", printable(mark)));
}

Result<std::shared_ptr<const Directory>> open_context(const std::string& saved) {
  const std::string context = saved + "/context";
  if (!is_folder(context)) return std::shared_ptr<const Directory>();
  return std::make_shared<const WatchedDirectory>(SW_TRY(open_directory(context)));
}

// What the run did to the model before it trained: adapters, by their class and its settings.
void add_transform(const std::string& yaml, Checkpoint& checkpoint) {
  constexpr std::string_view kSection = kNemoTransform.substr(0, kNemoTransform.size() - 1);
  const auto section = read_model_section(yaml, std::string(kSection), kNemoContextFile);
  if (!section) return;  // none, or what is wrong was told
  for (const auto& [name, value] : *section) {
    checkpoint.arguments.insert_or_assign(std::string(kNemoTransform) + name, value);
  }
}

Status add_arguments(const Directory& context, Checkpoint& checkpoint, Defects& defects) {
  if (!context.exists(kNemoModelFile)) return {};
  const std::string yaml = SW_TRY(read_whole(context, kNemoModelFile, kMostTextBytes));
  if (checkpoint.arguments.empty()) {
    auto config = read_model_section(yaml, "config", kNemoContextFile);
    if (config) {
      checkpoint.arguments = *std::move(config);
      add_arguments_of_provider(checkpoint.arguments);
    } else {
      SW_TRY(defects.report(std::unexpected(config.error())));
    }
    take_vocabulary(checkpoint.catalog, checkpoint.arguments);
  }
  add_transform(yaml, checkpoint);
  return {};
}

// The first folder that has any.
Status add_tokenizer(const std::shared_ptr<const Directory>& context, Checkpoint& checkpoint,
                     Defects& defects) {
  for (const std::string_view folder : kTokenizerFolders) {
    if (!folder.empty() && !context->exists(folder)) continue;
    const std::size_t before = checkpoint.artifacts.size();
    SW_TRY(add_descriptions(context, folder, kHfConfigFile, checkpoint, defects));
    if (checkpoint.artifacts.size() == before) continue;
    checkpoint.notes.push_back(
        translated("the tokenizer goes along: {} files of {}", checkpoint.artifacts.size() - before,
                   folder.empty() ? "context" : fmt::format("context/{}", folder)));
    return {};
  }
  checkpoint.notes.emplace_back(
      "no tokenizer's files are in context: a tokenizer that NeMo only "
      "names is to be put beside the model by hand");
  return {};
}

}  // namespace

Status read_nemo_context(Checkpoint& checkpoint, Defects& defects) {
  const std::string saved = saved_folder(checkpoint);
  tell_unfinished(saved, checkpoint);
  const std::shared_ptr<const Directory> context = SW_TRY(open_context(saved));
  if (context == nullptr) {
    checkpoint.notes.emplace_back(
        "no folder 'context' is beside it, which has the model's configuration and tokenizer; "
        "what the model is follows from its tensors or --hf-config");
    return {};
  }
  SW_TRY(add_arguments(*context, checkpoint, defects));
  return add_tokenizer(context, checkpoint, defects);
}

}  // namespace shardwright
