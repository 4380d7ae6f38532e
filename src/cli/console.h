// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/convert.h"
#include "shardwright/error.h"

namespace shardwright::cli {

inline constexpr int kExitFine = 0;
inline constexpr int kExitFindings = 1;  ///< findings or differences
inline constexpr int kExitFailure = 2;   ///< usage, or something failed

/// Data on standard output, messages on standard error, or both into strings. Colours and progress
/// only where a person looks at a terminal. Not thread-safe.
class Console {
 public:
  struct Streams {
    int output = 1;
    int messages = 2;
    bool output_is_terminal = false;
    bool messages_are_terminal = false;
    bool colour = false;  ///< allowed on the streams that are terminals
    int columns = 80;     ///< of the messages' terminal
  };

  /// Where the output goes in a process that is not the command line's.
  struct Capture {
    std::string output;
    std::string messages;
    /// Follows and stops long work, instead of the terminal's line and Ctrl-C.
    RunOptions run;
  };

  explicit Console(Streams streams) : streams_(streams) {}
  /// Borrows `capture`.
  explicit Console(Capture& capture) : capture_(&capture) {}
  /// The process's own streams; obeys NO_COLOR and TERM=dumb. Broken pipes and files that
  /// grow beyond a limit become write errors.
  [[nodiscard]] static Console standard();

  /// Writes data. A failure is remembered, not told: see exit_status.
  void print(std::string_view text);
  /// Writes one line to standard error: what may act on a terminal is escaped.
  void message(std::string_view line);
  /// Writes `error[SW0123]: ...` to standard error.
  void error(const Error& error);
  /// Replaces the terminal's current line on standard error; nothing without a terminal.
  void status_line(std::string_view line);

  [[nodiscard]] bool shows_progress() const { return streams_.messages_are_terminal; }
  /// Who follows long work here; nullptr where that is the process's terminal and signals.
  [[nodiscard]] const RunOptions* follower() const {
    return capture_ == nullptr ? nullptr : &capture_->run;
  }
  [[nodiscard]] int columns() const { return streams_.columns; }
  /// `text` in bold where standard output may have colours.
  [[nodiscard]] std::string bold(std::string_view text) const;

  /// What the process ends with: `status`, but 2 with a message when data could not be written. A
  /// reader that closed the pipe had enough: that is no failure.
  [[nodiscard]] int exit_status(int status);

 private:
  void write_message(std::string_view text);

  Streams streams_;
  Capture* capture_ = nullptr;
  int output_errno_ = 0;
  bool has_status_line_ = false;
};

}  // namespace shardwright::cli
