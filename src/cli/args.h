// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "canonical/check_map.h"
#include "cli/console_options.h"
#include "cli/show_text.h"
#include "report/report.h"
#include "shardwright/convert_request.h"
#include "shardwright/diagnose.h"
#include "shardwright/merge.h"
#include "shardwright/parts.h"
#include "shardwright/verify.h"

namespace shardwright::cli {

struct InspectCommand {
  std::string path;
  std::vector<std::string> tensors;   ///< globs; empty: all
  std::optional<std::int64_t> depth;  ///< of a pickle's values, or of the tree
  std::optional<std::int64_t> limit;  ///< of lines that show a pickle's values, or tensors
  bool tree = false;                  ///< modules instead of tensors
  std::string as;                     ///< the format, where PATH holds several checkpoints
  bool json = false;
};

/// `plan`, and `convert --dry-run`.
struct PlanCommand {
  ConvertRequest request;
  bool verbose = false;
  bool json = false;
  std::string html = {};  ///< a page to write; empty: none
  std::string save = {};  ///< a file for its parts to write; empty: none
};

struct ConvertCommand {
  ConvertRequest request;  ///< of a part only threads and memory
  bool json = false;
  std::string plan = {};  ///< a saved plan of which a part is done; empty: all of `request`
  Part part = {};
};

/// What the parts of a saved plan wrote becomes the output.
struct PublishCommand {
  std::string plan;
  ConvertRequest request;  ///< only threads and memory
  bool json = false;
};

struct DiagnoseCommand {
  DiagnoseRequest request;
  bool json = false;
};

struct ExplainCommand {
  std::string code;
  bool json = false;
};

struct VerifyCommand {
  std::string path;
  VerifyOptions options;
  bool json = false;
};

struct DiffCommand {
  std::string left;
  std::string right;
  ProofOptions options;
  std::optional<double> tolerance;
  bool stat = false;  ///< a line for each layer, not for each tensor
  bool json = false;
};

struct HashCommand {
  std::string path;
  ProofOptions options;
  std::string manifest;  ///< file to write; empty: none
  bool json = false;
};

struct ShowCommand {
  std::string path;
  std::string tensor;
  ProofOptions options;
  bool json = false;
};

struct LocalityCommand {
  std::string path;
  std::string as;
  ParallelConfig parallel;
  std::int64_t data = 1;
  bool optimizer = false;
  bool json = false;
};

struct ReportCommand {
  ReportRequest request;
  std::string output = "report.html";
  bool overwrite = false;
  bool open = false;
  bool json = false;
};

struct MergeCommand {
  MergeRequest request;
  bool dry_run = false;
  bool json = false;
};

struct SplitCommand {
  SplitRequest request;
  bool json = false;
};

/// `index rebuild`.
struct IndexCommand {
  std::string path;
  bool json = false;
};

/// Unfinished outputs in a folder.
struct CleanCommand {
  std::string path;
  bool remove = false;
  bool json = false;
};

struct DemoCommand {
  std::string keep;        ///< folder for the checkpoints; empty: a temporary one
  std::string checkpoint;  ///< empty: the one that comes with the program
  std::string models;
  bool json = false;
};

/// `map check` and, without a file, `map list`.
struct MapCommand {
  MapCheckRequest check;
  bool json = false;
};

using Command = std::variant<ShowText, InspectCommand, PlanCommand, ConvertCommand, DiagnoseCommand,
                             VerifyCommand, DiffCommand, HashCommand, ShowCommand, LocalityCommand,
                             IndexCommand, CleanCommand, ExplainCommand, MapCommand, DemoCommand,
                             MergeCommand, SplitCommand, ReportCommand, PublishCommand>;

/// A command, and how it is to tell what it does.
struct Request {
  Command command;
  ConsoleOptions console;
};

/// Reads a command line (without the program's name, in canonical flags: see to_canonical_flags)
/// and checks everything that needs no file. Error: kUsage.
[[nodiscard]] Result<Request> parse_arguments(std::span<const std::string> arguments);

/// Whether a command line asks for JSON, even where the rest of it is wrong.
[[nodiscard]] bool asks_for_json(std::span<const std::string> arguments);

/// The language that a command line or else the environment asks for, even where the rest of it is
/// wrong.
[[nodiscard]] Language asked_language(std::span<const std::string> arguments);

}  // namespace shardwright::cli
