// SPDX-License-Identifier: Apache-2.0
#include "shardwright/checkpoint.h"

namespace shardwright {

bool Defects::is_one(const Error& error) {
  switch (error.code) {
    case Code::kPermission:
    case Code::kIo:
    case Code::kTooManyFiles:
    case Code::kSourceChanged:
    case Code::kCancelled:
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

Status Defects::report(Status status) {
  if (status || !collects() || !is_one(status.error())) return status;
  const Error& error = status.error();
  if (known_.emplace(error.code, error.message).second) found_.push_back(error);
  return {};
}

}  // namespace shardwright
