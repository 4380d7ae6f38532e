// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <variant>

#include "base/fail.h"
#include "base/text.h"
#include "base/translated.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/dialect.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/locale_language.h"
#include "cli/watched_requests.h"
#include "comm/rank_session.h"
#include "convert/rank_jobs.h"
#include "io/begun_output.h"
#include "io/in_place.h"
#include "language/chinese.h"

namespace shardwright::cli {
namespace {

Result<int> run(const ShowText& show, Console& console) {
  console.print(show.text);
  return kExitFine;
}

Result<int> run_command(const Command& command, Console& console) {
  return std::visit([&](const auto& chosen) { return run(chosen, console); }, command);
}

std::string began_text(const std::vector<std::string>& arguments) {
  std::string text = "shardwright " SHARDWRIGHT_VERSION ":";
  for (const std::string& argument : arguments) text += " " + shell_quoted(argument);
  return text;
}

constexpr std::string_view kRanksHelp =
    R"(usage: mpirun -n RANKS shardwright-mpi [--rank-timeout SECONDS] [--io-timeout SECONDS]
                                       COMMAND ...

The ordinary program's commands convert, average, merge-adapter, verify, diff and hash, with
the same arguments, messages, exit status and output. All ranks work: they must see the same
files, and OUT must lie on a file system that they share.

  --rank-timeout SECONDS  a rank that gives no sign of life for so long is lost, and all
                          end (60)
  --io-timeout SECONDS    a call of the file system that does not return for so long hangs,
                          and all end (600)

)";

// What several ranks do. REQUIRES: console.ranks().
Result<int> run_with_ranks(const Command& command, Console& console) {
  RankSession& ranks = *console.ranks();
  if (const auto* convert = std::get_if<ConvertCommand>(&command)) {
    if (!convert->plan.empty()) {
      return fail(Code::kUsage, "--part is for processes without MPI; run it with shardwright");
    }
    return cli::run(*convert, console);
  }
  if (const auto* show = std::get_if<ShowText>(&command)) {
    if (!show->is_version) console.print(kRanksHelp);
  } else if (!std::holds_alternative<VerifyCommand>(command) &&
             !std::holds_alternative<DiffCommand>(command) &&
             !std::holds_alternative<HashCommand>(command)) {
    if (std::holds_alternative<PlanCommand>(command)) {
      return fail(Code::kUsage,
                  "plan and --dry-run are for one process; run them with shardwright instead of "
                  "shardwright-mpi");
    }
    return fail(Code::kUsage,
                "shardwright-mpi does convert, average, merge-adapter, verify, diff and hash; run "
                "other commands with shardwright");
  }
  SharedReading reading(ranks);
  const std::unique_ptr<JobSharing> jobs = jobs_of_ranks(ranks, &reading);
  console.share(jobs.get());
  int exit_status = kExitFine;
  const Status status = ranks.run([&]() -> Status {
    return reading.run([&]() -> Status {
      exit_status = SW_TRY(run_command(command, console));
      return {};
    });
  });
  console.share(nullptr);
  if (!status) return std::unexpected(status.error());
  return exit_status;
}

Result<int> run_words(const std::vector<std::string>& arguments, Console& console) {
  const Request request = SW_TRY(parse_arguments(arguments));
  // One rank keeps the log.
  if (console.ranks() == nullptr || console.ranks()->is_first()) {
    SW_TRY(console.apply(request.console, began_text(arguments)));
  }
  if (console.ranks() != nullptr) return run_with_ranks(request.command, console);
  std::optional<WatchedRequests> requests;
  if (names_a_server(arguments)) requests.emplace(console);
  return run_command(request.command, console);
}

int report(const Error& error, const std::vector<std::string>& arguments, Console& console) {
  if (asks_for_json(arguments)) {
    const CommandHelp* help = find_command(arguments.front());
    console.print(error_json(help == nullptr ? "error" : help->name, error));
  }
  console.error(error);
  if (console.language() == Language::kChinese) {
    const bool is_usual = language_from_environment() == Language::kChinese;
    console.note(fmt::format("中文说明：shardwright explain {}{}", code_name(error.code),
                             is_usual ? "" : " --lang zh"));
  }
  const bool stopped = error.code == Code::kCancelled && console.stop_signal() != 0;
  return stopped ? kExitSignal + console.stop_signal() : kExitFailure;
}

// The library's errors are values; what is thrown comes from below it, such as no memory.
Result<int> run_without_exceptions(const std::vector<std::string>& arguments, Console& console) {
  forget_outputs();
  try {
    return run_words(arguments, console);
  } catch (const std::bad_alloc&) {
    if (is_output_in_place()) {
      return fail(Code::kOutOfMemory,
                  "out of memory when the output was in its place already: only the report on "
                  "standard output is missing; 'verify' looks at what was written");
    }
    return fail(Code::kOutOfMemory,
                "out of memory; lower --threads or --max-memory, or raise the limit (ulimit -v)");
  } catch (const std::exception& exception) {
    return fail(Code::kInternal, "shardwright: {}", exception.what());
  }
}

// What programs read is the same in every language.
bool is_read_by_programs(const std::vector<std::string>& arguments) {
  if (asks_for_json(arguments)) return true;
  const auto end = std::ranges::find(arguments, "--");
  std::string_view before;
  for (auto word = arguments.begin(); word != end; before = *word++) {
    if ((before == "--progress" && *word == "json") || *word == "--progress=json") return true;
  }
  return false;
}

Translator translator_for(const std::vector<std::string>& arguments, Language language) {
  const bool is_english = language == Language::kEnglish || is_read_by_programs(arguments);
  return is_english ? nullptr : chinese_sentence;
}

// There is not even the memory for an ordinary message.
void tell_out_of_memory() {
  constexpr std::string_view kText = "error[SW0113]: out of memory\n";
  constexpr std::string_view kLater =
      "error[SW0113]: out of memory when the output was in its place already: only the report on "
      "standard output is missing\n";
  const std::string_view text = is_output_in_place() ? kLater : kText;
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
}

// Destructors of libraries allocate too (nlohmann's of deep values), and what they throw ends the
// program at once: with our message and exit status, not with SIGABRT.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    BegunOutput::abandon_all();
    tell_out_of_memory();
    ::_exit(kExitFailure);
  } catch (...) {  // NOLINT(bugprone-empty-catch): anything else is a bug, and aborts
  }
  std::abort();
}

}  // namespace

int run_command_line(const std::vector<std::string>& words, Console& console) {
  const std::vector<std::string> arguments = to_canonical_flags(words);
  console.speak(asked_language(arguments));
  const Speaking speaking(translator_for(arguments, console.language()));
  const auto status = run_without_exceptions(arguments, console);
  return console.exit_status(status ? *status : report(status.error(), arguments, console));
}

int run_rank(const std::vector<std::string>& words, Console& console, RankSession& session) {
  console.join(session);
  const std::vector<std::string> arguments = to_canonical_flags(words);
  console.speak(asked_language(arguments));
  const Speaking speaking(translator_for(arguments, console.language()));
  const auto status = session.settle(run_without_exceptions(arguments, console));
  return console.exit_status(status ? *status : report(status.error(), arguments, console));
}

void expect_no_memory() noexcept { std::set_terminate(end_without_memory); }

int run_program(int count, const char* const* words) noexcept {
  expect_no_memory();
  try {
    Console console = Console::standard();
    const int skipped = count > 0 ? 1 : 0;
    return run_command_line(std::vector<std::string>(words + skipped, words + count), console);
  } catch (const std::exception&) {
    tell_out_of_memory();
    return kExitFailure;
  }
}

}  // namespace shardwright::cli
