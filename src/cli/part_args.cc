// SPDX-License-Identifier: Apache-2.0
#include "cli/part_args.h"

#include "base/fail.h"
#include "base/text.h"
#include "cli/options.h"

namespace shardwright::cli {
namespace {

// What both commands take.
template <class Request>
void add_common(CLI::App& app, Request& request, const char* where) {
  add_format(app, request.as, where);
  add_family(app, request.family, request.map_files, request.models_dir);
  add_shard_size(app, request.max_shard_bytes);
  add_threads(app, request.threads);
  add_overwrite(app, request.overwrite);
}

Result<std::vector<PartFolder>> to_folders(const std::vector<std::string>& texts) {
  std::vector<PartFolder> folders;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return fail(Code::kUsage, "found '{}', expected NAME=DIR such as images=VIT",
                  printable(text));
    }
    folders.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return folders;
}

}  // namespace

void add_merge(CLI::App& app, MergeCommand& command) {
  MergeRequest& request = command.request;
  add_path(app, "OUT", request.output, "the path of the new model");
  add_read_list(app, "--component", request.parts, to_folders, "NAME=DIR",
                "a part and the folder of its checkpoint; repeatable");
  add_text(app, "--config", request.config, "PATH",
           "the whole model's config.json, or the folder with it and other files to take along");
  add_list(app, "--without", request.without, "NAME",
           "a part that the merged model may lack; repeatable");
  add_common(app, request, "a part's DIR");
  add_flag(app, "--dry-run", command.dry_run, "only say whether the parts belong together");
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

void add_split(CLI::App& app, SplitCommand& command) {
  SplitRequest& request = command.request;
  add_path(app, "IN", request.input, "the path of a model");
  add_path(app, "OUT", request.output, "the path of the folder for its parts");
  add_common(app, request, "IN");
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

}  // namespace shardwright::cli
