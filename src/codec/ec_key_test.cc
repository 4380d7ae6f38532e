// SPDX-License-Identifier: Apache-2.0
#include "codec/ec_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/endian.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

// `password`: null for none.
std::string private_pem(EVP_PKEY* key, const char* password = nullptr) {
  BIO* bio = BIO_new(BIO_s_mem());
  const EVP_CIPHER* cipher = password == nullptr ? nullptr : EVP_aes_256_cbc();
  EXPECT_EQ(PEM_write_bio_PKCS8PrivateKey(bio, key, cipher, password, password == nullptr ? 0 : 1,
                                          nullptr, nullptr),
            1);
  EVP_PKEY_free(key);
  return text_of(bio);
}

std::string new_private(const char* curve) { return private_pem(EVP_EC_gen(curve)); }

TEST(EcKey, WhatItSignsIsVerifiedByItsPublicHalf) {
  for (const char* curve : {"P-256", "P-384", "P-521"}) {
    const auto key = EcKey::read_private(new_private(curve), "key");
    ASSERT_TRUE(key) << curve << key.error().text();
    const std::string pem = key->public_pem();
    EXPECT_THAT(pem, StartsWith("-----BEGIN PUBLIC KEY-----\n"));
    const auto half = EcKey::read_public(pem, "half");
    ASSERT_TRUE(half) << half.error().text();
    EXPECT_EQ(half->public_pem(), pem);
    const std::string_view said = "what is signed";
    const std::string signature = *key->sign(as_bytes(said));
    EXPECT_TRUE(half->verifies(as_bytes(said), signature)) << curve;
    EXPECT_FALSE(half->verifies(as_bytes(said.substr(1)), signature));
    EXPECT_FALSE(half->verifies(as_bytes(said), ""));
    EXPECT_FALSE(half->verifies(as_bytes(said), "not DER"));
    for (std::size_t at = 0; at < signature.size(); ++at) {
      std::string other = signature;
      other[at] = static_cast<char>(other[at] ^ 1);
      EXPECT_FALSE(half->verifies(as_bytes(said), other)) << at;
    }
    const auto stranger = EcKey::read_private(new_private(curve), "stranger");
    EXPECT_FALSE(stranger->verifies(as_bytes(said), signature));
  }
}

std::string refused(const Result<EcKey>& key) {
  if (key) return "it was read";
  EXPECT_EQ(key.error().code, Code::kSignature);
  return key.error().message;
}

TEST(EcKey, WhatIsNoSuchKeyIsRefused) {
  EXPECT_THAT(refused(EcKey::read_private("", "k.pem")),
              StartsWith("k.pem: this is no private key in PEM"));
  EXPECT_THAT(refused(EcKey::read_public("-----BEGIN PUBLIC KEY-----\n", "k.pem")),
              StartsWith("k.pem: this is no public key in PEM"));
  const std::string pem = new_private("P-256");
  EXPECT_THAT(refused(EcKey::read_public(pem, "k.pem")), HasSubstr("no public key in PEM"));
  const std::string half = EcKey::read_private(pem, "k.pem")->public_pem();
  EXPECT_THAT(refused(EcKey::read_private(half, "k.pem")), HasSubstr("no private key in PEM"));
  EXPECT_THAT(refused(EcKey::read_private(std::string(70'000, '\n') + pem, "k.pem")),
              HasSubstr("no private key in PEM"));
  EXPECT_THAT(refused(EcKey::read_private(new_private("secp256k1"), "k.pem")),
              HasSubstr("found a key of secp256k1"));
  EXPECT_THAT(refused(EcKey::read_private(private_pem(EVP_RSA_gen(1024)), "k.pem")),
              HasSubstr("found a key of another kind"));
}

// And nobody is asked for it.
TEST(EcKey, AKeyWithAPasswordIsRefused) {
  EXPECT_THAT(refused(EcKey::read_private(private_pem(EVP_EC_gen("P-256"), "p"), "k.pem")),
              HasSubstr("this key has a password"));
}

}  // namespace
}  // namespace shardwright
