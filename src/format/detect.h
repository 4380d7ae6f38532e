// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/formats.h"
#include "format/sibling.h"
#include "format/tracker.h"

namespace shardwright {

/// A checkpoint that lies at or below a path.
struct Candidate {
  const SourceFormat* format = nullptr;
  std::string folder;                ///< with the data, relative to the path; "" for itself
  std::vector<std::string> steps;    ///< the names of the folders on the way, outermost first
  std::vector<std::string> reasons;  ///< why each of these steps
  std::vector<std::string> facts;    ///< what there shows the format
  std::vector<std::string> notes;    ///< what a conversion of it leaves, as sentences
  bool needs_name = false;           ///< its folder holds others that would be meant before it
};

/// What lies at or below a path.
struct Detection {
  /// Those that are meant, equally well where there are several: then only the user knows which.
  /// Best first, in the order in which Megatron looks.
  std::vector<Candidate> candidates;
  /// Where no candidate was found: the folder in which the way ends, and the ways to it.
  std::string end;
  std::vector<std::string> steps;
  /// The tracker on the way, a broken one before others, and the folder that it lies in.
  std::optional<Tracker> tracker;
  std::string run;
  std::vector<SiblingMatch> siblings;  ///< without a candidate: what other software's it looks like
  /// Without any of these: checkpoints further down, in folders whose names say nothing, or else
  /// files that may be models. Whoever wants one of them has to name it.
  std::vector<Candidate> below;
  bool has_all_below = false;  ///< whether these are all, but for what lies too deep
};

/// Finds the checkpoint that a path means: follows trackers, iterations and well-known folders down
/// to it. With `format`, finds that one where there are others. Names, small files and listings
/// only, and `.metadata` where several are found: no file of tensors is opened. `lone_file`: the
/// name of the file that `directory` was made of. Errors: those of reading. That nothing is there,
/// or too much, is none.
[[nodiscard]] Result<Detection> detect(const Directory& directory, std::string_view format = {},
                                       std::string_view lone_file = {});

}  // namespace shardwright
