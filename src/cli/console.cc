// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/fail.h"
#include "base/text.h"
#include "cli/code_label.h"
#include "cli/json_writer.h"
#include "comm/rank_session.h"
#include "io/in_place.h"
#include "io/retries.h"

namespace shardwright::cli {
namespace {

constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kPlain = "\x1b[0m";
constexpr std::string_view kClearLine = "\r\x1b[K";

// The errno of the first failure, else 0.
int write_all(int fd, std::string_view text) {
  const Transfer written = transfer(text.size(), [&](std::size_t done) {
    return ::write(fd, text.data() + done, text.size() - done);
  });
  return written.ended ? EIO : written.os_errno;
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

int terminal_columns(int fd) {
  constexpr int kUsual = 80;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

}  // namespace

Console Console::standard() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return Console({.output = STDOUT_FILENO,
                  .messages = STDERR_FILENO,
                  .output_is_terminal = ::isatty(STDOUT_FILENO) != 0,
                  .messages_are_terminal = ::isatty(STDERR_FILENO) != 0,
                  .colour = wants_colour(),
                  .columns = terminal_columns(STDERR_FILENO)});
}

void Console::print(std::string_view text) {
  if (output_errno_ != 0) return;
  if (capture_ != nullptr) {
    capture_->output += text;
    return;
  }
  status_line("");
  output_errno_ = write_all(streams_.output, text);
}

// Nobody could be told that a message was not written.
void Console::write_message(std::string_view text) {
  if (capture_ != nullptr) {
    capture_->messages += text;
    return;
  }
  static_cast<void>(write_all(streams_.messages, text));
}

Status Console::apply(const ConsoleOptions& options, std::string_view began) {
  options_ = options;
  // One log for all ranks.
  if (options.log_file.empty() || (ranks_ != nullptr && !ranks_->is_first())) return {};
  log_.emplace(SW_TRY(LogFile::open(options.log_file)));
  log_->add(printable(began));
  return {};
}

ProgressForm Console::progress_form() const {
  if (options_.quiet || capture_ != nullptr) return ProgressForm::kNone;
  switch (options_.progress) {
    case ProgressStyle::kAuto:
      return streams_.messages_are_terminal ? ProgressForm::kLine : ProgressForm::kPlain;
    case ProgressStyle::kPlain:
      return ProgressForm::kPlain;
    case ProgressStyle::kJson:
      return ProgressForm::kJson;
    case ProgressStyle::kNone:
      break;
  }
  return ProgressForm::kNone;
}

void Console::progress(std::string_view line) {
  if (log_) log_->add(line);
  if (progress_form() == ProgressForm::kPlain) write_message(fmt::format("{}\n", line));
}

void Console::record(std::string_view lines) {
  while (log_ && !lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    log_->add(line);
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
}

void Console::progress_event(std::string_view line) { write_message(line); }

void Console::tell(std::string_view event, std::string_view text) {
  status_line("");
  const std::string label = event == "note" ? "note: " : "";
  const std::string line = label + printable(in_language(text));
  if (log_) log_->add(line);
  if (options_.progress != ProgressStyle::kJson || capture_ != nullptr) {
    write_message(line + "\n");
    return;
  }
  JsonWriter json;
  json.open_line().text("event", event).text("text", text).close();
  write_message(json.take());
}

void Console::message(std::string_view line) { tell("message", line); }

void Console::note(std::string_view text) {
  if (!options_.quiet) tell("note", text);
}

void Console::error(const Error& error) {
  status_line("");
  std::string label = code_label("error", error.code, language()) + ":";
  if (log_) log_->add(fmt::format("{} {}", label, printable(error.message)));
  if (options_.progress == ProgressStyle::kJson && capture_ == nullptr) {
    JsonWriter json;
    json.open_line().text("event", "error").text("code", code_name(error.code));
    json.text("text", error.message).close();
    write_message(json.take());
    return;
  }
  if (streams_.messages_are_terminal && streams_.colour)
    label = fmt::format("{}{}{}", kRed, label, kPlain);
  write_message(fmt::format("{} {}\n", label, printable(error.message)));
}

void Console::status_line(std::string_view line) {
  if (progress_form() != ProgressForm::kLine || (line.empty() && !has_status_line_)) return;
  has_status_line_ = !line.empty();
  write_message(fmt::format("{}{}", kClearLine, line));
}

std::string Console::bold(std::string_view text) const {
  if (!streams_.output_is_terminal || !streams_.colour) return std::string(text);
  return fmt::format("{}{}{}", kBold, text, kPlain);
}

int Console::exit_status(int status) {
  status_line("");
  if (output_errno_ != 0 && output_errno_ != EPIPE) {
    Error why = fail_errno(output_errno_, "standard output: cannot be written").error();
    why.code = Code::kIo;  // of no disk that the output is on
    if (is_output_in_place()) {
      why.message += translated("; only this report is missing: the output is in its place");
    }
    error(why);
    status = kExitFailure;
  }
  if (!log_) return status;
  log_->add(fmt::format("exit status {}", status));
  const int failed = log_->os_errno();
  log_.reset();
  if (failed != 0) {
    const Error why = fail_errno(failed, "it could not be written").error();
    message(translated("warning: --log-file: not everything is in it: {}", why.message));
  }
  return status;
}

}  // namespace shardwright::cli
