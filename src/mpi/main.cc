// SPDX-License-Identifier: Apache-2.0
// shardwright-mpi: the command line as several processes, see docs/recipes/cluster.md.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "base/translated.h"
#include "cli/rank_flags.h"
#include "cli/run.h"
#include "cli/stop_signal.h"
#include "comm/rank_session.h"
#include "io/in_place.h"
#include "io/pending_call.h"
#include "mpi/mpi_communicator.h"
#include "remote/open_path.h"

namespace shardwright::cli {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string request_text(const std::vector<std::string>& words) {
  std::string text = SHARDWRIGHT_VERSION;
  for (const std::string& word : words) text += '\0' + word;
  return text;
}

// A call that does not return hangs the thread that made it, which no signal and no flag reaches.
std::optional<Error> find_hung_call(std::chrono::milliseconds limit) {
  const std::optional<LongCall> call = longest_call();
  if (!call || call->time < limit) return std::nullopt;
  std::string message = translated(
      "{}: {} has not returned for {} s; look at its file system, or allow more (--io-timeout)",
      call->name, call->what, limit.count() / 1000);
  if (is_output_in_place()) message += translated("; the new output is complete and in its place");
  return Error{Code::kRankLost, std::move(message), 0};
}

int run_here(std::vector<std::string> words, MpiCommunicator& communicator) {
  Console told = Console::standard();
  Console::Capture unread;
  Console silent(unread);
  Console& console = communicator.rank() == 0 ? told : silent;

  SessionOptions options;
  options.host = host_name();
  options.request = request_text(words);
  options.last_words = [&told](const Error& error) { told.error(error); };
  const Result<RankFlags> flags = take_rank_flags(words);
  if (flags) {
    options.timeout = flags->timeout;
    options.find_hung = [limit = flags->io_timeout] { return find_hung_call(limit); };
  }
  RankSession session(communicator, std::move(options));
  if (!flags) {
    const auto status = session.settle(std::unexpected(flags.error()));
    console.error(status.error());
    return kExitFailure;
  }
  const StoppableRequests requests(session.stopped());
  // A rank that is told to end tells rank 0, whose console obeys signals itself.
  std::optional<StopSignal> stop;
  if (!session.is_first()) {
    stop.emplace();
    session.obey(&stop->flag());
    unread.run.cancelled = &session.stopped();
  }
  const int status = run_rank(words, console, session);
  if (session.must_abort()) {
    if (stop && stop->flag()) communicator.await_kill();
    communicator.abort(status);
  }
  return status;
}

int run_as_rank(int count, char** words) {
  expect_no_memory();
  const auto communicator = MpiCommunicator::begin(&count, &words);
  if (!communicator) {
    Console::standard().error(communicator.error());
    return kExitFailure;
  }
  const int skipped = count > 0 ? 1 : 0;
  try {
    return run_here(std::vector<std::string>(words + skipped, words + count), **communicator);
  } catch (const std::exception&) {
    // Out of memory, even for saying so: the others would wait for this rank.
    (*communicator)->abort(kExitFailure);
    return kExitFailure;
  }
}

}  // namespace
}  // namespace shardwright::cli

int main(int argc, char** argv) { return shardwright::cli::run_as_rank(argc, argv); }
