// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/ec_key.h"
#include "compare/listed_digests.h"
#include "exec/jobs.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What `model_signing sign` (OpenSSF Model Signing) writes: a signed list of the SHA-256 of all
/// files beside it, docs/formats/model-signature.md.
inline constexpr std::string_view kSignatureFile = "model.sig";

/// Who must have signed a checkpoint; both empty: anybody or nobody.
struct Signer {
  std::string public_key;         ///< the path of a key (PEM)
  std::string certificate_chain;  ///< the path of certificates (PEM) that vouch for the signer
};

struct SignatureChecked {
  bool is_there = false;
  bool is_of_key = false;       ///< the caller's key has signed it
  bool is_vouched_for = false;  ///< so has `owner`, for whom the caller's certificates vouch
  /// Whom its own certificate names, where the key in that has signed it. Anybody can write one.
  std::string owner;
  ListedChecked listed;
  std::vector<std::string> unlisted;  ///< files that were not signed, up to a number
  std::string unread;                 ///< why its list was not compared; empty: it was
};

/// Compares the files that it lists, and the signature with the key of `signer` and with that of
/// its own certificate, where there is one. An unknown key may sign anything, so without `signer`
/// the list proves no more than digests do. What is wrong is told to `defects`: what check_listed()
/// tells, kSignature for another key's signature or none, kJsonCorrupt. Errors: kSignature and
/// those of reading for the files of `signer`.
[[nodiscard]] Result<SignatureChecked> check_signature_file(const Checkpoint& checkpoint,
                                                            const Signer& signer,
                                                            const Workers& workers,
                                                            Defects& defects);

/// The private key in a file that the user names. Errors: kSignature, those of reading.
[[nodiscard]] Result<EcKey> read_signing_key(const std::string& path);

/// Such a file of `digests`, all of the files in `folder` (with its `/`) but itself. `model`: what
/// they are called. Errors: those of signing.
[[nodiscard]] Result<GuardFile> signature_file_of(const std::string& folder,
                                                  std::span<const ListedDigest> digests,
                                                  std::string_view model, const EcKey& key);

}  // namespace shardwright
