// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shardwright/error.h"

namespace shardwright {

/// A key of the curves P-256, P-384 and P-521, which signs (ECDSA) with the SHA of its size.
/// Immutable; safe for concurrent use.
class EcKey {
 public:
  /// Of a PEM text, which `name` calls in messages. A password is not asked for. Error: kSignature
  /// for anything else than such a key.
  [[nodiscard]] static Result<EcKey> read_private(std::string_view pem, std::string_view name);
  /// The same of a public key.
  [[nodiscard]] static Result<EcKey> read_public(std::string_view pem, std::string_view name);

  /// The signature of some bytes, DER. REQUIRES: a private key. Error: kSignature.
  [[nodiscard]] Result<std::string> sign(std::span<const std::byte> bytes) const;
  /// Whether a signature is of these bytes and by this key.
  [[nodiscard]] bool verifies(std::span<const std::byte> bytes, std::string_view signature) const;
  /// Its public half, PEM.
  [[nodiscard]] std::string public_pem() const;

 private:
  struct Key;
  explicit EcKey(std::shared_ptr<const Key> key) : key_(std::move(key)) {}
  static Result<EcKey> of_curve(std::unique_ptr<Key> key, std::string_view name);

  std::shared_ptr<const Key> key_;
};

}  // namespace shardwright
