// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace shardwright {

/// What went wrong. The number is public: it is printed as `SW0123`, documented, and never reused.
/// Hundreds group the layer that finds the problem.
enum class Code : std::uint16_t {
  // 01xx: storage
  kNotFound = 101,
  kPermission = 102,
  kIo = 103,
  kShortRead = 104,
  kDiskFull = 105,
  kPathEscapes = 106,
  kTargetExists = 107,
  kTooManyFiles = 108,
  kCancelled = 109,
  kTargetInsideSource = 110,
  kSourceChanged = 111,
  kNotAFile = 112,
  kOutOfMemory = 113,
  kSaveFailed = 114,
  kCannotResume = 115,
  kRankLost = 116,
  kRanksDiffer = 117,
  kPartsMissing = 118,
  kRemote = 119,
  // 02xx: codecs
  kLimit = 200,
  kZipCorrupt = 210,
  kZipUnsupported = 211,
  kPickleCorrupt = 220,
  kPickleUnsupported = 221,
  kPickleType = 222,
  kTorchArchive = 223,
  kPickleRunsCode = 224,
  kSafetensorsCorrupt = 230,
  kSafetensorsDtype = 231,
  kJsonCorrupt = 240,
  kYamlCorrupt = 241,
  kTarCorrupt = 250,
  // 03xx: formats and catalogs
  kUnknownFormat = 300,
  kUnsupportedFormat = 301,
  kMetadataCorrupt = 302,
  kItemTransformed = 303,
  kIndexMismatch = 304,
  kTrackerBroken = 305,
  kChunkMismatch = 306,
  kHole = 307,
  kOverlap = 308,
  kOutOfBounds = 309,
  kDuplicateName = 310,
  kOptimizerUnsupported = 311,
  kStateUnreadable = 312,
  kLegacyLayout = 313,
  kPayloadDamaged = 314,
  kDigestMismatch = 315,
  kUnreferencedBytes = 316,
  kIterationMismatch = 317,
  kOptimizerMismatch = 318,
  kRankMisplaced = 319,
  kNothingStored = 320,
  kUnloadable = 321,
  kLossySource = 322,
  kTwoCheckpoints = 323,
  kSignature = 324,
  kZeroLayout = 330,
  // 04xx: layouts and model families
  kNoFamily = 400,
  kAmbiguousFamily = 401,
  kMappingInvalid = 402,
  kUnmatchedSource = 403,
  kUnmatchedTarget = 404,
  kShapeMismatch = 405,
  kConfigMissing = 406,
  kNotDivisible = 407,
  kVocabularyNotDivisible = 408,
  kDtypeUnsupported = 409,
  kValueOverflow = 410,
  kReplicasDiffer = 411,
  kComponentLayout = 412,
  kModelIncomplete = 413,
  kArgumentsContradict = 414,
  kReplicaKeys = 415,
  kMegatronVersion = 416,
  // 05xx: plans and publishing
  kDiskSpace = 500,
  kPlanInvalid = 502,
  // 09xx: the caller
  kUsage = 900,
  kInternal = 999,
};

/// A rejected input or failed operation, as a value. The message follows the contract
/// `<object>[@offset][ tensor NAME]: found X, expected Y; <what to do>`.
struct Error {
  Code code = Code::kInternal;
  std::string message;
  int os_errno = 0;

  /// Prepends the object the failing operation worked on: `within("a/b.pt")` gives `a/b.pt: ...`.
  [[nodiscard]] Error within(std::string_view object) &&;
  /// `error[SW0123]: message`, the form that users see.
  [[nodiscard]] std::string text() const;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

/// `SW0123`.
[[nodiscard]] std::string code_name(Code code);

}  // namespace shardwright

/// The value of a Result, or return its error from the enclosing function. The project's only
/// control-flow macro; never nest two in one expression.
#define SW_TRY(expression)                                                        \
  __extension__({                                                                 \
    auto&& sw_try_result = (expression);                                          \
    if (!sw_try_result) return std::unexpected(std::move(sw_try_result).error()); \
    std::move(sw_try_result).value();                                             \
  })
