// SPDX-License-Identifier: Apache-2.0
#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace shardwright::cli {
namespace {

// What roff would take for an order of its own.
std::string roff(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_a_line = i == 0 || text[i - 1] == '\n';
    if (begins_a_line && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
    if (text[i] == '\\') {
      escaped += "\\e";
    } else if (text[i] == '-') {
      escaped += "\\-";
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

std::string in_capitals(std::string_view text) {
  std::string capitals(text);
  std::ranges::transform(capitals, capitals.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return capitals;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

void append_command(const CommandOutline& command, std::string& page) {
  const auto out = std::back_inserter(page);
  fmt::format_to(out, ".SH \"{}\"\n{}.\n", in_capitals(command.name), roff(command.summary));
  fmt::format_to(out, ".PP\n\\fBshardwright {}\\fR {}{}[\\fIFLAGS\\fR]\n", command.name,
                 roff(command.usage), command.usage.empty() ? "" : " ");
  fmt::format_to(out, ".PP\n{}\n.PP\n.nf\n{}\n.fi\n", roff(command.details),
                 roff(trimmed(command.examples)));
  for (const FlagOutline& flag : command.flags) {
    fmt::format_to(out, ".TP\n\\fB{}{}{}\\fR", roff(flag.letter), flag.letter.empty() ? "" : ", ",
                   roff(flag.name));
    if (!flag.type.empty()) fmt::format_to(out, " \\fI{}\\fR", roff(flag.type));
    fmt::format_to(out, "\n{}\n", roff(flag.text));
  }
}

}  // namespace

std::string man_page(std::span<const CommandOutline> commands) {
  std::string page = fmt::format(
      R"(.TH SHARDWRIGHT 1 "" "shardwright {0}" "User Commands"
.SH NAME
shardwright \- the checkpoint tool of Megatron\-family training
.SH SYNOPSIS
\fBshardwright\fR \fICOMMAND\fR ... [\fIFLAGS\fR]
.SH DESCRIPTION
Reads, reshards, converts and proves checkpoints of Megatron\-LM, Hugging Face and torch.
.SH COMMANDS
)",
      SHARDWRIGHT_VERSION);
  for (const CommandOutline& command : commands) {
    fmt::format_to(std::back_inserter(page), ".TP\n\\fB{}\\fR\n{}\n", command.name,
                   roff(command.summary));
  }
  for (const CommandOutline& command : commands) append_command(command, page);
  page += R"(.SH "EXIT STATUS"
.TP
0
Done, and nothing is wrong.
.TP
1
Done; there are findings or differences.
.TP
2
A wrong command line, or a failure.
.TP
128+N
Stopped by signal N.
.SH ENVIRONMENT
.TP
LC_ALL, LC_MESSAGES, LANG
The language, unless \fB\-\-lang\fR says it: English, or Chinese where the locale has simplified characters.
.TP
NO_COLOR
No colours on a terminal.
)";
  return page;
}

}  // namespace shardwright::cli
