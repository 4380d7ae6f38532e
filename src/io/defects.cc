// SPDX-License-Identifier: Apache-2.0
#include "shardwright/checkpoint.h"

namespace shardwright {
namespace {

bool is_the_files_fault(Code code) {
  switch (code) {
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

}  // namespace

Status Defects::report(Status status) {
  if (status || !collects() || !is_the_files_fault(status.error().code)) return status;
  const Error& error = status.error();
  if (known_.emplace(error.code, error.message).second) found_.push_back(error);
  return {};
}

}  // namespace shardwright
