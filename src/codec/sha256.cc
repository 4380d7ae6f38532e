// SPDX-License-Identifier: Apache-2.0
#include "codec/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "base/fail.h"

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

Result<std::string> sha256_of(const ReadableFile& file) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(file.size(), kBlockBytes)));
  Sha256 hash;
  for (std::uint64_t done = 0; done < file.size();) {
    const std::uint64_t step = std::min<std::uint64_t>(block.size(), file.size() - done);
    const auto bytes = std::span(block).first(static_cast<std::size_t>(step));
    SW_TRY(file.read_at(done, bytes));
    hash.update(bytes);
    done += step;
  }
  return hash.finish();
}

}  // namespace shardwright
