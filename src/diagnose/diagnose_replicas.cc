// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_replicas.h"

#include <algorithm>

#include "compare/replicas.h"
#include "dcp/replica_name.h"
#include "dcp/torch_items.h"
#include "layout/finding_rules.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostReplicasTold = 8;

// Tensors that are stored under names of one kind, and the first such name.
struct Named {
  std::size_t count = 0;
  std::string name;
  std::string tensor;

  void add(const std::string& stored) {
    if (++count > 1) return;
    name = stored;
    tensor = parse_replica_name(stored)->tensor;
  }
};

void add_convention(std::string_view code, const Named& named, Diagnosis& diagnosis) {
  if (named.count == 0) return;
  diagnosis.findings.push_back(
      make_finding(code, {{"count", named.count}, {"name", named.name}, {"tensor", named.tensor}}));
}

void add_conventions(const Catalog& catalog, Diagnosis& diagnosis) {
  Named by_rank;
  Named shadows;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto ranked = std::ranges::find_if(
        tensor.copies, [](const StoredCopy& copy) { return copy.replica && !copy.is_shadow; });
    if (ranked != tensor.copies.end()) by_rank.add(ranked->name);
    const auto shadow = std::ranges::find_if(tensor.copies, &StoredCopy::is_shadow);
    if (shadow != tensor.copies.end()) shadows.add(shadow->name);
  }
  add_convention("L45", by_rank, diagnosis);
  add_convention("L46", shadows, diagnosis);
}

void add_errors(const Defects& defects, TextKey text, Diagnosis& diagnosis) {
  const std::vector<Error>& found = defects.found();
  for (std::size_t i = 0; i < std::min(found.size(), kMostReplicasTold); ++i) {
    diagnosis.findings.push_back(
        {code_name(found[i].code), Severity::kError, phrase(text, {{"error", found[i].message}})});
  }
}

void add_uncompared(const Error& error, Diagnosis& diagnosis) {
  diagnosis.evidence.push_back(phrase("replicas.uncompared", {{"error", error.message}}));
}

void compare_all(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  Catalog catalog = checkpoint.catalog;
  Defects unread(Defects::Policy::kCollect);
  Defects differing(Defects::Policy::kCollect);
  const auto located = locate_items(catalog, *checkpoint.files, unread);
  add_errors(unread, "replicas.unread", diagnosis);
  if (!unread.found().empty()) return;
  if (!located) return add_uncompared(located.error(), diagnosis);
  const auto report = check_replicas(catalog, ReplicaCheck::kAll, *checkpoint.files, differing);
  add_errors(differing, "replicas.differ", diagnosis);
  if (!report) return add_uncompared(report.error(), diagnosis);
  diagnosis.evidence.push_back(
      phrase("replicas.compared", {{"count", report->compared}, {"bytes", report->bytes}}));
}

}  // namespace

void add_replicas(const Checkpoint& checkpoint, bool compares, Diagnosis& diagnosis) {
  add_conventions(checkpoint.catalog, diagnosis);
  Defects unclear(Defects::Policy::kCollect);
  const Status checked = check_named_replicas(checkpoint, checkpoint.catalog, unclear);
  add_errors(unclear, "replicas.names", diagnosis);
  if (!checked) add_uncompared(checked.error(), diagnosis);
  if (compares) compare_all(checkpoint, diagnosis);
}

}  // namespace shardwright
