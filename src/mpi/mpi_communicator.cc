// SPDX-License-Identifier: Apache-2.0
#include "mpi/mpi_communicator.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr int kTag = 1;
// Of a call that may wait for a rank that hangs, or for the launcher: then the signal ends this
// process, and the launcher the job.
constexpr unsigned kSecondsToEnd = 10;
// Between mpirun's SIGTERM and its SIGKILL lies a second.
constexpr auto kUntilKilled = std::chrono::seconds(5);
constexpr auto kLastSends = std::chrono::seconds(2);

Status checked(int result, std::string_view call) {
  if (result == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  return fail(Code::kIo, "{}: {}", call,
              std::string_view(text.data(), static_cast<std::size_t>(length)));
}

bool is_watched_by_mpirun() { return std::getenv("OMPI_MCA_orte_hnp_uri") != nullptr; }

}  // namespace

struct MpiCommunicator::Sending {
  std::string bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

struct MpiCommunicator::Receiving {
  ReceivedMessage message;
  MPI_Request request = MPI_REQUEST_NULL;
};

MpiCommunicator::MpiCommunicator() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::begin(int* count, char*** words) {
  int provided = MPI_THREAD_SINGLE;
  SW_TRY(checked(MPI_Init_thread(count, words, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread"));
  if (provided < MPI_THREAD_FUNNELED) {
    return fail(Code::kIo, "this MPI does not allow threads (MPI_THREAD_FUNNELED)");
  }
  // What fails is told, not fatal.
  SW_TRY(checked(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                 "MPI_Comm_set_errhandler"));
  return std::unique_ptr<MpiCommunicator>(new MpiCommunicator());
}

MpiCommunicator::~MpiCommunicator() {
  const auto deadline = std::chrono::steady_clock::now() + kLastSends;
  for (auto sent = has_sent_all(); sent && !*sent && std::chrono::steady_clock::now() < deadline;
       sent = has_sent_all()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // As in await_kill: the job may be ended while this rank waits here for the others.
  if (is_watched_by_mpirun()) std::signal(SIGTERM, SIG_IGN);
  ::alarm(kSecondsToEnd);
  MPI_Finalize();
  ::alarm(0);
}

Status MpiCommunicator::send(int to, std::string bytes) {
  if (bytes.size() > INT_MAX) {
    return fail(Code::kLimit, "a message to rank {}: found {} bytes, at most {} can be sent", to,
                bytes.size(), INT_MAX);
  }
  Sending& sending = sending_.emplace_back();
  sending.bytes = std::move(bytes);
  return checked(MPI_Isend(sending.bytes.data(), static_cast<int>(sending.bytes.size()), MPI_BYTE,
                           to, kTag, MPI_COMM_WORLD, &sending.request),
                 "MPI_Isend");
}

Result<bool> MpiCommunicator::has_sent_all() {
  for (auto sending = sending_.begin(); sending != sending_.end();) {
    int is_done = 0;
    SW_TRY(checked(MPI_Test(&sending->request, &is_done, MPI_STATUS_IGNORE), "MPI_Test"));
    sending = is_done != 0 ? sending_.erase(sending) : std::next(sending);
  }
  return sending_.empty();
}

// Also of a large message only the beginning may have come: its rest is not waited for.
Status MpiCommunicator::begin_receiving() {
  while (true) {
    int has_come = 0;
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    SW_TRY(checked(MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &has_come, &found, &status),
                   "MPI_Improbe"));
    if (has_come == 0) return {};
    int size = 0;
    SW_TRY(checked(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count"));
    Receiving& receiving = receiving_.emplace_back();
    receiving.message = {status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
    SW_TRY(checked(
        MPI_Imrecv(receiving.message.bytes.data(), size, MPI_BYTE, &found, &receiving.request),
        "MPI_Imrecv"));
  }
}

Result<std::optional<ReceivedMessage>> MpiCommunicator::receive() {
  SW_TRY(has_sent_all());
  SW_TRY(begin_receiving());
  std::vector<int> unfinished;  // ranks of which an earlier message is still coming
  for (auto receiving = receiving_.begin(); receiving != receiving_.end(); ++receiving) {
    if (std::ranges::find(unfinished, receiving->message.from) != unfinished.end()) continue;
    int is_done = 0;
    SW_TRY(checked(MPI_Test(&receiving->request, &is_done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (is_done == 0) {
      unfinished.push_back(receiving->message.from);
      continue;
    }
    ReceivedMessage message = std::move(receiving->message);
    receiving_.erase(receiving);
    return message;
  }
  return std::nullopt;
}

// Open MPI's mpirun ends a job of which a rank ends unasked as it ends an aborted one. Where it is
// told by MPI_Abort instead, it may then wait for itself for ever, when all ranks have ended: about
// one aborted job in a hundred with the PMIx 4.2 of Debian 12, in PMIx_server_finalize.
void MpiCommunicator::abort(int exit_status) {
  if (is_watched_by_mpirun()) ::_exit(exit_status);
  ::alarm(kSecondsToEnd);
  MPI_Abort(MPI_COMM_WORLD, exit_status);
}

// The same end of mpirun, on a busy machine of up to ten jobs in a hundred, comes of ranks that it
// loses after its SIGTERM and before its SIGKILL.
void MpiCommunicator::await_kill() {
  if (is_watched_by_mpirun()) std::this_thread::sleep_for(kUntilKilled);
}

}  // namespace shardwright
