// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_pickles.h"

#include "dcp/rank_metadata.h"
#include "layout/finding_rules.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

// A pickle takes a millisecond or so; verify looks at all of them.
constexpr std::size_t kMostFiles = 64;

}  // namespace

void add_pickle_findings(const std::vector<PickleReport>& reports, Diagnosis& diagnosis) {
  std::vector<Finding>& findings = diagnosis.findings;
  for (const PickleReport& report : reports) {
    const pickle::Audit& audit = report.audit;
    if (!audit.runs.empty()) {
      findings.push_back(
          make_finding("L43", {{"file", report.where}, {"names", pickle::listed(audit.runs)}}));
    }
    if (!audit.unknown.empty()) {
      findings.push_back(
          make_finding("L44", {{"file", report.where}, {"names", pickle::listed(audit.unknown)}}));
    }
    for (const Error& error : report.errors()) {
      if (error.code == Code::kPickleRunsCode) continue;
      findings.push_back(make_finding("L35", {{"file", report.where}, {"error", error.text()}}));
    }
  }
}

void add_folder_pickles(const Directory& directory, const std::string& folder,
                        Diagnosis& diagnosis) {
  const FolderAudit audit = audit_folder(directory, folder, kMostFiles);
  add_pickle_findings(audit.reports, diagnosis);
  if (audit.left_out == 0) return;
  diagnosis.evidence.push_back(
      phrase("pickles_audited", {{"files", audit.files}, {"more", audit.left_out}}));
}

void add_checkpoint_pickles(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  std::vector<PickleReport> reports = audit_pickles(checkpoint);
  if (checkpoint.location.traits.has_chunk_list) {
    DcpMetadataOptions options;
    options.all_parts = true;
    // That it cannot be read is told by who opens it.
    const auto metadata = read_any_metadata(*checkpoint.directory, options);
    if (metadata) reports.push_back({".metadata", metadata->audit});
  }
  add_pickle_findings(reports, diagnosis);
}

}  // namespace shardwright
