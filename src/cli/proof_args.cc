// SPDX-License-Identifier: Apache-2.0
#include "cli/proof_args.h"

#include "base/fail.h"
#include "cli/options.h"

namespace shardwright::cli {
namespace {

CLI::Option* add_model(CLI::App& app, ProofOptions& options) {
  FamilyChoice& choice = options.choice;
  add_text(app, "--hf-config", choice.hf_config_dir, "DIR", "folder with config.json");
  add_family(app, choice.family, choice.map_files, choice.models_dir);
  CLI::Option* rows = add_number(app, "--vocab-size", options.vocab_size,
                                 "vocabulary rows that mean something; the rest is padding");
  add_flag(app, "--own-names", options.own_names, "tensors as they are stored, without a mapping");
  add_source(app, options.source);
  return rows;
}

void add_proof(CLI::App& app, ProofOptions& options) {
  add_model(app, options);
  add_replica(app, options.source);
  add_threads(app, options.threads);
}

CLI::Option* add_other_format(CLI::App& app, ProofOptions& options, const std::string& where) {
  return add_text(app, "--other-as", options.other_as, "FORMAT", "the same of " + where);
}

}  // namespace

void add_verify(CLI::App& app, VerifyCommand& command) {
  ProofOptions& proof = command.options.proof;
  add_path(app, "PATH", command.path, "the path of a checkpoint");
  CLI::Option* against = add_text(app, "--against", command.options.against, "PATH",
                                  "a manifest of hash, or another checkpoint");
  add_format(app, proof.as, "PATH");
  require_with(add_other_format(app, proof, "--against"), against);
  add_text(app, "--public-key", command.options.public_key, "KEY.pem",
           "the key that must have signed PATH (model.sig)");
  add_text(app, "--certificate-chain", command.options.certificate_chain, "CA.pem",
           "certificates, one of which must vouch for who has signed PATH");
  require_with(add_model(app, proof), against);  // and no --replica: all copies are compared
  add_threads(app, proof.threads);
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

void add_diff(CLI::App& app, DiffCommand& command) {
  add_path(app, "A", command.left, "the paths of two checkpoints");
  add_path(app, "B", command.right, "the path of a second checkpoint");
  add_tolerance(app, "--tolerance", command.tolerance,
                "floating point numbers this near are equal (default: only equal bits are)");
  add_flag(app, "--stat", command.stat, "a line for each layer, not for each tensor");
  add_format(app, command.options.as, "A");
  add_other_format(app, command.options, "B");
  add_proof(app, command.options);
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

void add_report(CLI::App& app, ReportCommand& command) {
  ReportRequest& request = command.request;
  add_path(app, "PATH", request.path, "the path of a checkpoint");
  add_optional_path(app, "PATH2", request.other, "a checkpoint to compare it with");
  add_text(app, "-o,--output", command.output, "FILE", "the page (default report.html)");
  add_flag(app, "--overwrite", command.overwrite, "replace a page that is there");
  add_flag(app, "--open", command.open, "show it in a browser");
  add_flag(app, "--statistics", request.statistics,
           "least, greatest, mean and spread of each tensor; reads every byte");
  add_flag(app, "--verify", request.verify, "what verify proves; reads every byte");
  add_tolerance(app, "--tolerance", request.tolerance,
                "floating point numbers this near are equal (default: only equal bits are)");
  add_format(app, request.proof.as, "PATH");
  add_other_format(app, request.proof, "PATH2");
  add_proof(app, request.proof);
  add_flag(app, "--json", command.json, "what was written as JSON on standard output");
}

Result<Command> to_report(const CLI::App& app, ReportCommand& command) {
  for (const char* flag : {"--tolerance", "--other-as"}) {
    if (command.request.other.empty() && is_given(app, flag)) {
      return fail(Code::kUsage, "{} is for two checkpoints; give PATH2 too, or leave it out", flag);
    }
  }
  return std::move(command);
}

void add_hash(CLI::App& app, HashCommand& command) {
  add_path(app, "PATH", command.path, "the path of a checkpoint");
  add_text(app, "--manifest", command.manifest, "FILE", "write the digests there");
  add_format(app, command.options.as, "PATH");
  add_proof(app, command.options);
  add_flag(app, "--json", command.json, "the manifest on standard output");
}

void add_show(CLI::App& app, ShowCommand& command) {
  add_path(app, "PATH", command.path, "the path of a checkpoint");
  add_path(app, "TENSOR", command.tensor, "the name of a tensor; see inspect PATH");
  add_format(app, command.options.as, "PATH");
  add_replica(app, command.options.source);
  add_threads(app, command.options.threads);
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

}  // namespace shardwright::cli
