// SPDX-License-Identifier: Apache-2.0
#include "format/weightless_iteration.h"

#include "base/fail.h"
#include "format/detect.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

// What can't be looked into has nothing that could be given.
std::vector<Candidate> found_in(const std::string& folder) {
  const auto directory = open_directory(folder);
  if (!directory) return {};
  auto detection = detect(**directory);
  return detection ? std::move(detection->candidates) : std::vector<Candidate>();
}

}  // namespace

bool is_weightless_iteration(const Sibling& sibling) { return sibling.format == "ms_swift"; }

PlacesOfWeights places_of_weights(const std::string& iteration) {
  const std::string whole = whole_path(iteration);
  PlacesOfWeights places;
  places.save = folder_above(whole).value_or(whole);
  places.merged = places.save + std::string(kMergedEnd);
  // Further down in `save` are other iterations.
  const std::vector<Candidate> own = found_in(places.save);
  if (!own.empty() && own.front().folder.empty()) {
    places.found = places.save;
  } else if (!found_in(places.merged).empty()) {
    places.found = places.merged;
  }
  return places;
}

std::unexpected<Error> refuse_weightless(const std::string& iteration, std::string_view entry) {
  const PlacesOfWeights places = places_of_weights(iteration);
  if (places.found) {
    return fail(Code::kUnsupportedFormat,
                "{}: {} is all that this iteration has, its weights are in {}; give that folder",
                iteration, entry, *places.found);
  }
  return fail(Code::kNothingStored,
              "{}: {} is all that this iteration has, and neither {} nor {} has weights; see that "
              "the copy is complete",
              iteration, entry, places.save, places.merged);
}

}  // namespace shardwright
