// SPDX-License-Identifier: Apache-2.0
#include "format/states_apart.h"

#include "base/text.h"
#include "base/translated.h"
#include "dcp/dcp_metadata.h"
#include "dcp/rank_metadata.h"
#include "format/folder.h"
#include "format/nothing_stored.h"

namespace shardwright {
namespace {

bool has_states_alone(const Directory& directory, const Candidate& candidate) {
  if (!candidate.format->traits().has_chunk_list) return false;
  const auto file = directory.open(path_in(candidate.folder, kDcpMetadata));
  if (!file) return false;
  const auto metadata = read_dcp_metadata(**file);
  return metadata && holds_states_alone(metadata->catalog);
}

}  // namespace

std::vector<Candidate> without_states_apart(const Directory& directory,
                                            std::vector<Candidate> candidates) {
  if (candidates.size() < 2) return candidates;
  std::vector<Candidate> rest;
  std::vector<std::string> left;
  for (const Candidate& candidate : candidates) {
    if (has_states_alone(directory, candidate)) {
      left.push_back(candidate.folder);
    } else {
      rest.push_back(candidate);
    }
  }
  if (rest.empty() || left.empty()) return candidates;
  for (Candidate& candidate : rest) {
    candidate.notes.push_back(
        translated("{} holds optimizer states alone, which are left", name_list(left)));
  }
  return rest;
}

}  // namespace shardwright
