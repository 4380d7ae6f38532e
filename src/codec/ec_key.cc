// SPDX-License-Identifier: Apache-2.0
#include "codec/ec_key.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <new>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostPem = std::size_t{64} << 10;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

Bio bio_over(std::string_view text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  if (bio == nullptr) throw std::bad_alloc();
  return bio;
}

DigestContext new_context() {
  DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  return context;
}

// Without it OpenSSL would ask on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*unused*/) { return -1; }

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

struct EcKey::Key {
  explicit Key(EVP_PKEY* read) : key(read) {}
  ~Key() { EVP_PKEY_free(key); }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  EVP_PKEY* key;
  const EVP_MD* digest = nullptr;
};

Result<EcKey> EcKey::of_curve(std::unique_ptr<Key> key, std::string_view name) {
  std::array<char, 64> curve{};
  std::size_t length = 0;
  const bool has_curve =
      EVP_PKEY_get_group_name(key->key, curve.data(), curve.size(), &length) == 1;
  const std::string_view found(curve.data(), has_curve ? length : 0);
  if (found == "prime256v1") key->digest = EVP_sha256();
  if (found == "secp384r1") key->digest = EVP_sha384();
  if (found == "secp521r1") key->digest = EVP_sha512();
  if (key->digest != nullptr) return EcKey(std::move(key));
  return fail(Code::kSignature, "{}: found a key of {}, expected one of P-256, P-384 or P-521",
              name, has_curve ? found : "another kind");
}

Result<EcKey> EcKey::read_private(std::string_view pem, std::string_view name) {
  if (pem.size() <= kMostPem) {
    EVP_PKEY* const key =
        PEM_read_bio_PrivateKey(bio_over(pem).get(), nullptr, no_password, nullptr);
    if (key != nullptr) return of_curve(std::make_unique<Key>(key), name);
    ERR_clear_error();
  }
  if (pem.find("ENCRYPTED") != std::string_view::npos) {
    return fail(Code::kSignature,
                "{}: this key has a password; 'openssl pkey -in KEY -out PLAIN' takes it off",
                name);
  }
  return fail(Code::kSignature, "{}: this is no private key in PEM", name);
}

Result<EcKey> EcKey::read_public(std::string_view pem, std::string_view name) {
  if (pem.size() <= kMostPem) {
    EVP_PKEY* const key = PEM_read_bio_PUBKEY(bio_over(pem).get(), nullptr, no_password, nullptr);
    if (key != nullptr) return of_curve(std::make_unique<Key>(key), name);
    ERR_clear_error();
  }
  return fail(Code::kSignature,
              "{}: this is no public key in PEM; 'openssl pkey -in KEY -pubout' makes it of a "
              "private one",
              name);
}

Result<std::string> EcKey::sign(std::span<const std::byte> bytes) const {
  const DigestContext context = new_context();
  std::size_t size = 0;
  const bool is_ready =
      EVP_DigestSignInit(context.get(), nullptr, key_->digest, nullptr, key_->key) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &size, raw(bytes), bytes.size()) == 1;
  std::string signature(size, '\0');
  if (!is_ready || EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                                  &size, raw(bytes), bytes.size()) != 1) {
    ERR_clear_error();
    return fail(Code::kSignature, "OpenSSL cannot sign with this key");
  }
  signature.resize(size);
  return signature;
}

bool EcKey::verifies(std::span<const std::byte> bytes, std::string_view signature) const {
  const DigestContext context = new_context();
  const bool is_right =
      EVP_DigestVerifyInit(context.get(), nullptr, key_->digest, nullptr, key_->key) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), raw(bytes), bytes.size()) == 1;
  if (!is_right) ERR_clear_error();
  return is_right;
}

std::string EcKey::public_pem() const {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  char* text = nullptr;
  if (bio == nullptr || PEM_write_bio_PUBKEY(bio.get(), key_->key) != 1) throw std::bad_alloc();
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace shardwright
