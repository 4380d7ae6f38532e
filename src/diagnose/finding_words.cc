// SPDX-License-Identifier: Apache-2.0
#include "diagnose/finding_words.h"

namespace shardwright {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      return "info";
  }
  return "";
}

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kCertain:
      return "certain";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kAmbiguous:
      return "ambiguous";
  }
  return "";
}

}  // namespace shardwright
