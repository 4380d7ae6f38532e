// SPDX-License-Identifier: Apache-2.0
#include "codec/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <new>

namespace shardwright {

struct Sha256::Context {
  Context() : digest(EVP_MD_CTX_new()) {}
  ~Context() { EVP_MD_CTX_free(digest); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  EVP_MD_CTX* digest;
};

// With a context these calls fail for want of memory alone.
Sha256::Sha256() : context_(std::make_unique<Context>()) {
  const bool is_ready = context_->digest != nullptr &&
                        EVP_DigestInit_ex(context_->digest, EVP_sha256(), nullptr) == 1;
  if (!is_ready) throw std::bad_alloc();
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_->digest, bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

std::array<std::byte, 32> Sha256::finish_bytes() {
  std::array<std::byte, 32> digest{};
  if (EVP_DigestFinal_ex(context_->digest, reinterpret_cast<unsigned char*>(digest.data()),
                         nullptr) != 1) {
    throw std::bad_alloc();
  }
  return digest;
}

std::string Sha256::finish() {
  std::string text;
  for (const std::byte one : finish_bytes())
    text += fmt::format("{:02x}", std::to_integer<unsigned>(one));
  return text;
}

}  // namespace shardwright
