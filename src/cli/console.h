// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/console_options.h"
#include "cli/log_file.h"
#include "shardwright/convert.h"
#include "shardwright/error.h"

namespace shardwright {
class RankSession;
}

namespace shardwright::cli {

class StopSignal;

inline constexpr int kExitFine = 0;
inline constexpr int kExitFindings = 1;  ///< findings or differences
inline constexpr int kExitFailure = 2;   ///< usage, or something failed
inline constexpr int kExitSignal = 128;  ///< plus the number of the signal that stopped it

/// How progress appears here.
enum class ProgressForm : std::uint8_t { kNone, kLine, kPlain, kJson };

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

  /// Does as the command line asks. `began`: the log's first line about this run. Errors: those of
  /// LogFile::open.
  [[nodiscard]] Status apply(const ConsoleOptions& options, std::string_view began);

  /// The language of what is told before apply() says which, and where the command line is wrong.
  void speak(Language language) { options_.language = language; }
  [[nodiscard]] Language language() const { return options_.language; }

  /// Writes data. A failure is remembered, not told: see exit_status.
  void print(std::string_view text);
  /// Writes one line to standard error: what may act on a terminal is escaped.
  void message(std::string_view line);
  /// `note: ...`: what one need not know.
  void note(std::string_view text);
  /// Writes `error[SW0123]: ...` to standard error; see code_label().
  void error(const Error& error);
  /// Replaces the terminal's current line on standard error; nothing without a terminal.
  void status_line(std::string_view line);

  [[nodiscard]] ProgressForm progress_form() const;
  [[nodiscard]] bool has_log() const { return log_.has_value(); }
  /// Lines of what is printed that the log should have too.
  void record(std::string_view lines);
  /// A line about progress: on standard error where they stand one below the other, and in the log.
  void progress(std::string_view line);
  /// A JSON object about progress, on a line of its own. REQUIRES: progress_form() is kJson.
  void progress_event(std::string_view line);

  /// Who follows long work here; nullptr where that is the process's terminal and signals.
  [[nodiscard]] const RunOptions* follower() const {
    return capture_ == nullptr ? nullptr : &capture_->run;
  }
  /// The ranks of a job that run the same command line, of which this process is one; nullptr where
  /// it is alone.
  [[nodiscard]] RankSession* ranks() const { return ranks_; }
  /// Borrows `ranks`.
  void join(RankSession& ranks) { ranks_ = &ranks; }
  /// What is only read is shared out to other processes; null: it is not.
  [[nodiscard]] JobSharing* sharing() const { return sharing_; }
  /// Borrows `sharing`.
  void share(JobSharing* sharing) { sharing_ = sharing; }
  /// The signals that end what goes on now; null: they end the process.
  [[nodiscard]] const StopSignal* watched_signals() const { return watched_; }
  /// Borrows `signals`.
  void watch(const StopSignal* signals) { watched_ = signals; }
  [[nodiscard]] int columns() const { return streams_.columns; }
  /// `text` in bold where standard output may have colours.
  [[nodiscard]] std::string bold(std::string_view text) const;

  /// A signal ended the work: the exit status of what fails says which.
  void stopped_by(int signal) { stop_signal_ = signal; }
  [[nodiscard]] int stop_signal() const { return stop_signal_; }

  /// What the process ends with: `status`, but 2 with a message when data could not be written. A
  /// reader that closed the pipe had enough: that is no failure.
  [[nodiscard]] int exit_status(int status);

 private:
  void write_message(std::string_view text);
  // A message of a kind, to the log and to standard error.
  void tell(std::string_view event, std::string_view text);

  Streams streams_;
  Capture* capture_ = nullptr;
  RankSession* ranks_ = nullptr;
  JobSharing* sharing_ = nullptr;
  const StopSignal* watched_ = nullptr;
  ConsoleOptions options_;
  std::optional<LogFile> log_;
  int stop_signal_ = 0;
  int output_errno_ = 0;
  bool has_status_line_ = false;
};

}  // namespace shardwright::cli
