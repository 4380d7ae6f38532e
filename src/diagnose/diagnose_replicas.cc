// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_replicas.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/repeated_files.h"
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

void add_texts(std::string_view code, const std::vector<std::string>& texts, TextKey text,
               Severity severity, Diagnosis& diagnosis) {
  for (std::size_t i = 0; i < std::min(texts.size(), kMostReplicasTold); ++i) {
    diagnosis.findings.push_back(
        {std::string(code), severity, phrase(text, {{"error", texts[i]}})});
  }
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

// The catalog with every payload in its place; nothing where that cannot be had, which is told.
std::optional<Catalog> located_catalog(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  Catalog catalog = checkpoint.catalog;
  Defects unread(Defects::Policy::kCollect);
  const auto located = locate_items(catalog, *checkpoint.files, unread);
  add_errors(unread, "replicas.unread", diagnosis);
  if (!unread.found().empty()) return std::nullopt;
  if (!located) {
    add_uncompared(located.error(), diagnosis);
    return std::nullopt;
  }
  return catalog;
}

void compare_files(const Checkpoint& checkpoint, const Catalog& catalog, Diagnosis& diagnosis) {
  Defects repeated(Defects::Policy::kCollect);
  const auto suspected = check_files(checkpoint, catalog, ReplicaCheck::kAll, repeated);
  add_errors(repeated, "files.repeat", diagnosis);
  if (!suspected) return add_uncompared(suspected.error(), diagnosis);
  add_texts(code_name(Code::kRankMisplaced), *suspected, "files.repeat", Severity::kWarning,
            diagnosis);
}

void compare_all(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  const std::optional<Catalog> catalog = located_catalog(checkpoint, diagnosis);
  if (!catalog) return;
  Defects differing(Defects::Policy::kCollect);
  const auto report = check_replicas(*catalog, ReplicaCheck::kAll, *checkpoint.files, differing);
  add_errors(differing, "replicas.differ", diagnosis);
  if (!report) return add_uncompared(report.error(), diagnosis);
  diagnosis.evidence.push_back(
      phrase("replicas.compared", {{"count", report->compared}, {"bytes", report->bytes}}));
  compare_files(checkpoint, *catalog, diagnosis);
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

void add_repeated_files(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  const std::optional<Catalog> catalog = located_catalog(checkpoint, diagnosis);
  if (catalog) compare_files(checkpoint, *catalog, diagnosis);
}

}  // namespace shardwright
