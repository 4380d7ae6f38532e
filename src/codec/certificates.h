// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "codec/ec_key.h"
#include "shardwright/error.h"

namespace shardwright {

/// Certificates (X.509) that lead from the owner of a key to an authority, as somebody sends them.
/// Immutable; safe for concurrent use.
class Certificates {
 public:
  static constexpr std::size_t kMost = 16;

  /// Of DER, at most kMost: the first is the owner's, the others are of those who vouch for it.
  /// `name` is for messages. Error: kSignature for anything else, or an owner's key that EcKey does
  /// not take.
  [[nodiscard]] static Result<Certificates> read(std::span<const std::string> der,
                                                 std::string_view name);

  /// The owner's key. Anybody can make a certificate for a key of his own.
  [[nodiscard]] const EcKey& key() const { return key_; }
  /// Whom the first one names: its subject, or the address (mail, URI) that stands for one.
  [[nodiscard]] const std::string& owner() const { return owner_; }

  /// Whether certificates that the user trusts (a PEM text, `name` in messages) vouch for the owner
  /// and allow signing. Nothing tells when something was signed: what was valid when the owner's
  /// certificate began counts, so none is too old. Error: kSignature, with the reason.
  [[nodiscard]] Status check_trusted(std::string_view pem, std::string_view name) const;

 private:
  struct Chain;
  Certificates(std::shared_ptr<const Chain> chain, EcKey key, std::string owner)
      : chain_(std::move(chain)), key_(std::move(key)), owner_(std::move(owner)) {}

  std::shared_ptr<const Chain> chain_;
  EcKey key_;
  std::string owner_;
};

/// Whether a PEM text has certificates and nothing else. Error: kSignature.
[[nodiscard]] Status check_authorities(std::string_view pem, std::string_view name);

}  // namespace shardwright
