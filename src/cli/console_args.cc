// SPDX-License-Identifier: Apache-2.0
#include "cli/console_args.h"

#include <CLI/CLI.hpp>

#include "cli/locale_language.h"
#include "cli/options.h"

namespace shardwright::cli {

void add_console(CLI::App& app, ConsoleOptions& options) {
  add_choice<ProgressStyle>(app, "--progress", options.progress,
                            {{"auto", ProgressStyle::kAuto},
                             {"plain", ProgressStyle::kPlain},
                             {"json", ProgressStyle::kJson},
                             {"none", ProgressStyle::kNone}},
                            "how progress is told (default auto: plain where no terminal is)")
      ->group(kConsoleGroup);
  app.add_flag("-q,--quiet", options.quiet, "no progress and no notes")->group(kConsoleGroup);
  add_text(app, "--log-file", options.log_file, "FILE", "add messages and progress to FILE")
      ->group(kConsoleGroup);
  options.language = language_from_environment();
  add_choice<Language>(app, "--lang", options.language,
                       {{"en", Language::kEnglish}, {"zh", Language::kChinese}},
                       "language (default: zh where LANG is zh_CN or its like)")
      ->group(kConsoleGroup);
}

}  // namespace shardwright::cli
