// SPDX-License-Identifier: Apache-2.0
#include "cli/proof_args.h"

#include "cli/options.h"

namespace shardwright::cli {
namespace {

void add_proof(CLI::App& app, ProofOptions& options) {
  FamilyChoice& choice = options.choice;
  add_text(app, "--hf-config", choice.hf_config_dir, "DIR", "folder with config.json");
  add_family(app, choice.family, choice.map_files, choice.models_dir);
  add_number(app, "--vocab-size", options.vocab_size,
             "vocabulary rows that mean something; the rest is padding");
  add_flag(app, "--own-names", options.own_names, "tensors as they are stored, without a mapping");
  add_source(app, options.source);
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
  add_proof(app, proof);
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
