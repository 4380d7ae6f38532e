// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace shardwright {

/// The ranks of an MPI job. One lives from the process's beginning to its end.
class MpiCommunicator final : public Communicator {
 public:
  /// MPI_Init_thread, which waits for all ranks. Error: kIo.
  [[nodiscard]] static Result<std::unique_ptr<MpiCommunicator>> begin(int* count, char*** words);
  /// MPI_Finalize, which waits for all ranks, but not for longer than some seconds.
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] Status send(int to, std::string bytes) override;
  [[nodiscard]] Result<std::optional<ReceivedMessage>> receive() override;
  [[nodiscard]] Result<bool> has_sent_all() override;
  void abort(int exit_status) override;
  /// For a rank that SIGTERM has told to end with its job: under mpirun it waits for the SIGKILL,
  /// but not for longer than some seconds.
  void await_kill();

 private:
  struct Sending;
  struct Receiving;

  MpiCommunicator();
  [[nodiscard]] Status begin_receiving();

  int rank_ = 0;
  int size_ = 1;
  std::list<Sending> sending_;      // their bytes stay where they are
  std::list<Receiving> receiving_;  // in order of arrival
};

}  // namespace shardwright
