// SPDX-License-Identifier: Apache-2.0
#include "shardwright/checkpoint.h"

namespace shardwright {

bool Defects::is_one(const Error& error) {
  if (is_outage(error)) return false;
  switch (error.code) {
    case Code::kPermission:
    case Code::kIo:
    case Code::kSourceChanged:
    case Code::kUnknownFormat:
    case Code::kUnsupportedFormat:
    case Code::kItemTransformed:
    case Code::kDtypeUnsupported:
    case Code::kUsage:
    case Code::kInternal:
      return false;
    default:
      return true;
  }
}

bool Defects::is_outage(const Error& error) {
  switch (error.code) {
    case Code::kDiskFull:
    case Code::kTooManyFiles:
    case Code::kCancelled:
    case Code::kOutOfMemory:
    case Code::kRankLost:
    case Code::kRanksDiffer:
    case Code::kRemote:
    case Code::kDiskSpace:
      return true;
    default:
      return false;
  }
}

Status Defects::report(Status status) {
  if (status || !collects() || !is_one(status.error())) return status;
  const Error& error = status.error();
  if (known_.emplace(error.code, error.message).second) found_.push_back(error);
  return {};
}

}  // namespace shardwright
