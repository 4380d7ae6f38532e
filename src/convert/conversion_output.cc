// SPDX-License-Identifier: Apache-2.0
#include "convert/conversion_output.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "codec/sha256.h"
#include "compare/digest_file.h"
#include "compare/digest_writer.h"
#include "compare/integrity_file.h"
#include "compare/listed_digests.h"
#include "compare/signature_file.h"
#include "compare/source_guards.h"
#include "convert/memory_budget.h"
#include "convert/replaced_files.h"
#include "convert/set_aside_journals.h"
#include "exec/threads.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

// Borrows the names of the files that are written.
auto may_replace(const std::vector<std::string>& written) {
  return [&written](const std::string& target) -> Result<Replace> {
    const ReplacedOutput replaced = SW_TRY(find_replaced_files(target, written));
    return replaced.keeps_others ? Replace::kEntries : Replace::kWhole;
  };
}

// What a signature calls the files in `folder`.
std::string signed_name(const std::string& output, const std::string& folder) {
  if (!folder.empty()) return folder.substr(0, folder.size() - 1);
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(std::filesystem::path(output) / "", error);
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// What is signed last is of the others too.
Result<std::vector<GuardFile>> guard_files(const PreparedConversion& conversion,
                                           const RunOptions& options, const Directory& directory) {
  std::vector<GuardFile> guards;
  const ConvertRequest& request = conversion.request;
  if (!hashes_output(request)) return guards;
  const std::string folder = digested_folder(conversion.plan.target.files);
  std::vector<ListedDigest> digests = SW_TRY(hash_output(conversion, options, directory));
  if (request.sha256) {
    const GuardFile& integrity = guards.emplace_back(integrity_file_of(folder, digests));
    Sha256 hash;
    hash.update(as_bytes(integrity.text));
    digests.push_back({integrity.path, hash.finish()});
  }
  if (!request.sign.empty()) {
    const EcKey key = SW_TRY(read_signing_key(request.sign));
    guards.push_back(
        SW_TRY(signature_file_of(folder, digests, signed_name(request.output, folder), key)));
  }
  return guards;
}

// An earlier run may have made some that did not come to publish, with other flags than this one.
void remove_guards(std::span<const std::string> written, const std::string& partial_path) {
  const std::string folder = digested_folder(written);
  for (const std::string_view name : {kDigestFile, kIntegrityFile, kSignatureFile}) {
    const std::string path = folder + std::string(name);
    if (std::ranges::find(written, path) != written.end()) continue;
    (void)::unlink((partial_path + "/" + path).c_str());
  }
}

Workers workers_of(const PreparedConversion& conversion, const RunOptions& options) {
  Workers workers;
  workers.threads = thread_count(conversion.request.threads);
  workers.sharing = options.sharing;
  workers.cancelled = options.cancelled;
  return workers;
}

// Where something cleaned up meanwhile, the output would appear with holes.
Status check_written(const Plan& plan, const Directory& directory) {
  for (std::size_t i = 0; i < plan.target.files.size(); ++i) {
    const FileVersion version = SW_TRY(directory.version(plan.target.files[i]));
    if (version.size_bytes == plan.file_sizes[i]) continue;
    return fail(Code::kIo,
                "{}: found {} bytes where {} were written; run again where nothing changes the "
                "output meanwhile",
                plan.target.files[i], version.size_bytes, plan.file_sizes[i]);
  }
  return {};
}

}  // namespace

void begin_phase(const RunOptions& options, RunPhase phase, std::uint64_t bytes) {
  if (options.on_phase) options.on_phase(phase, bytes);
}

Workers begin_reading_back(const PreparedConversion& conversion, const RunOptions& options,
                           const PieceList& pieces, const FinishedPieces& finished) {
  std::uint64_t bytes = 0;
  for (std::uint32_t piece = 0; piece < pieces.size(); ++piece) {
    if (piece < finished.size() && finished[piece]) bytes += pieces.bytes(piece);
  }
  begin_phase(options, RunPhase::kRead, bytes);
  Workers workers = workers_of(conversion, options);
  if (options.on_progress) {
    workers.on_progress = [&options, bytes](std::uint64_t read) {
      options.on_progress({read, bytes});
    };
  }
  return workers;
}

Result<std::vector<std::string>> compare_source(const PreparedConversion& conversion,
                                                const RunOptions& options) {
  const ConvertRequest& request = conversion.request;
  Defects first;
  const std::uint64_t compared = conversion.replicas.bytes + conversion.master_weight_bytes;
  if (compared > 0) begin_phase(options, RunPhase::kCompare, compared);
  Workers workers = workers_of(conversion, options);
  if (options.on_progress && compared > 0) {
    workers.on_progress = [&](std::uint64_t bytes) { options.on_progress({bytes, compared}); };
  }
  const Catalog* const derived =
      conversion.checks_master_weights ? &conversion.plan.source : nullptr;
  const SourceGuards guards{request.check_replicas, derived, workers};
  GuardedSource guarded =
      SW_TRY(check_source(conversion.source, conversion.plan.source, guards, first));
  std::vector<std::string> notes = std::move(guarded.repeated_files);
  for (const AveragedSource& averaged : conversion.averaged) {
    auto more = SW_TRY(check_source_beside(averaged.checkpoint, averaged.wanted, guards, first));
    std::ranges::move(more, std::back_inserter(notes));
  }
  return notes;
}

PublishOptions publish_options(const PreparedConversion& conversion,
                               std::vector<std::string>& leftovers) {
  const ConvertRequest& request = conversion.request;
  PublishOptions publish;
  publish.target = request.output;
  publish.sources = conversion.more_sources;
  publish.sources.push_back(request.input);
  publish.sources.push_back(conversion.source.location.path);
  publish.kept = request.map_files;
  for (const std::string& folder : {request.hf_config_dir, request.models_dir, request.sign}) {
    if (!folder.empty()) publish.kept.push_back(folder);
  }
  publish.bytes_needed = cost_of(conversion.plan).bytes_written;
  if (request.overwrite) publish.may_replace = may_replace(conversion.plan.target.files);
  // What lies on a server lies neither in OUT nor around it.
  std::erase_if(publish.sources, is_remote_path);
  std::erase_if(publish.kept, is_remote_path);
  publish.report_leftover = [&leftovers](const std::string& path) { leftovers.push_back(path); };
  return publish;
}

Result<ExecuteOptions> execute_options(const PreparedConversion& conversion,
                                       const RunOptions& options) {
  const MemoryBudget budget =
      SW_TRY(budget_of(conversion.request, conversion.source, conversion.plan));
  ExecuteOptions execution;
  execution.threads = budget.threads;
  execution.buffer_bytes = budget.buffer_bytes;
  // A request takes a while before its first byte comes.
  const ConvertRequest& request = conversion.request;
  const bool is_remote = is_remote_path(request.input) || is_remote_path(request.output);
  if (is_remote) execution.tile_bytes = std::uint64_t{4} << 20;
  execution.cancelled = options.cancelled;
  return execution;
}

std::unique_ptr<PayloadDigests> digests_for(const PreparedConversion& conversion) {
  if (!conversion.request.digests) return nullptr;
  return std::make_unique<PayloadDigests>(conversion.plan.target);
}

bool hashes_output(const ConvertRequest& request) {
  return request.sha256 || !request.sign.empty();
}

std::vector<std::string> guard_paths(const PreparedConversion& conversion) {
  const ConvertRequest& request = conversion.request;
  const std::string folder = digested_folder(conversion.plan.target.files);
  std::vector<std::string> paths;
  if (request.digests) paths.push_back(digest_file_path(conversion.plan));
  if (request.sha256) paths.push_back(folder + std::string(kIntegrityFile));
  if (!request.sign.empty()) paths.push_back(folder + std::string(kSignatureFile));
  return paths;
}

Result<std::vector<ListedDigest>> hash_output(const PreparedConversion& conversion,
                                              const RunOptions& options,
                                              const Directory& directory) {
  const Plan& plan = conversion.plan;
  const std::string folder = digested_folder(plan.target.files);
  std::vector<std::string> files;
  std::vector<std::uint64_t> bytes;  // as all know them: the digests' file is made meanwhile
  for (std::size_t i = 0; i < plan.target.files.size(); ++i) {
    if (!plan.target.files[i].starts_with(folder)) continue;
    files.push_back(plan.target.files[i]);
    bytes.push_back(plan.file_sizes[i]);
  }
  if (conversion.request.digests) {
    files.push_back(digest_file_path(plan));
    bytes.push_back(0);
  }
  return digests_of(directory, files, bytes, workers_of(conversion, options));
}

Status check_not_cancelled(const RunOptions& options) {
  if (options.cancelled == nullptr || !*options.cancelled) return {};
  return fail(Code::kCancelled, "stopped before the checkpoint was published");
}

Status publish_output(const PreparedConversion& conversion, const RunOptions& options,
                      Publication& publication, const PayloadDigests* digests,
                      const std::function<Status()>& before_it_appears) {
  SW_TRY(check_not_cancelled(options));  // the last one who follows it may have stopped it
  begin_phase(options, RunPhase::kPublish, 0);
  SW_TRY(conversion.source.files->check_unchanged());
  remove_guards(conversion.plan.target.files, publication.partial_path());
  if (digests != nullptr) {
    SW_TRY(write_digest_file(publication.directory(), publication.partial_path(), conversion.plan,
                             *digests, thread_count(conversion.request.threads)));
  }
  const std::vector<GuardFile> guards =
      SW_TRY(guard_files(conversion, options, publication.directory()));
  for (const GuardFile& guard : guards) {
    SW_TRY(write_guard_file(publication.directory(), guard));
  }
  SW_TRY(check_written(conversion.plan, publication.directory()));
  SetAsideJournals journals(publication);
  const auto take = [&]() -> Status {
    if (before_it_appears) SW_TRY(before_it_appears());
    return journals.take();
  };
  return publication.commit({take, [&] { journals.put_back(); }, [&] { journals.drop(); }});
}

}  // namespace shardwright
