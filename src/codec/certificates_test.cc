// SPDX-License-Identifier: Apache-2.0
#include "codec/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <vector>

#include "base/endian.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr long kDay = 24 * 3600;

std::string all_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string bytes(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return bytes;
}

// Somebody with a key and a certificate.
struct Person {
  Person() = default;
  Person(Person&& other) noexcept
      : key(std::exchange(other.key, nullptr)),
        certificate(std::exchange(other.certificate, nullptr)) {}
  Person& operator=(Person&&) = delete;
  ~Person() {
    EVP_PKEY_free(key);
    X509_free(certificate);
  }

  [[nodiscard]] std::string der() const {
    BIO* const bio = BIO_new(BIO_s_mem());
    EXPECT_EQ(i2d_X509_bio(bio, certificate), 1);
    return all_of(bio);
  }
  [[nodiscard]] std::string pem() const {
    BIO* const bio = BIO_new(BIO_s_mem());
    EXPECT_EQ(PEM_write_bio_X509(bio, certificate), 1);
    return all_of(bio);
  }
  [[nodiscard]] EcKey private_key() const {
    BIO* const bio = BIO_new(BIO_s_mem());
    EXPECT_EQ(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    return *EcKey::read_private(all_of(bio), "key");
  }

  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

using Extension = std::pair<int, const char*>;
const std::vector<Extension> kAuthority = {{NID_basic_constraints, "critical,CA:TRUE"}};
const std::vector<Extension> kSigner = {{NID_key_usage, "critical,digitalSignature"}};

// `issuer`: null for a certificate that it signs itself. `from`, `days`: since when and how long it
// is valid, in days from now.
Person person(const char* name, const Person* issuer, const std::vector<Extension>& extensions,
              EVP_PKEY* key = EVP_EC_gen("P-256"), long from = -1, long days = 30) {
  Person made;
  made.key = key;
  made.certificate = X509_new();
  X509* const x = made.certificate;
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
  X509_gmtime_adj(X509_getm_notBefore(x), from * kDay);
  X509_gmtime_adj(X509_getm_notAfter(x), (from + days) * kDay);
  X509_set_pubkey(x, key);
  if (*name != '\0') {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  }
  const Person& by = issuer == nullptr ? made : *issuer;
  X509_set_issuer_name(x, X509_get_subject_name(by.certificate));
  for (const auto& [kind, value] : extensions) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    EXPECT_NE(extension, nullptr) << value;
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
  }
  EXPECT_GT(X509_sign(x, by.key, EVP_sha256()), 0);
  return made;
}

std::string refused(const Status& status) {
  if (status) return "it was accepted";
  EXPECT_EQ(status.error().code, Code::kSignature);
  return status.error().message;
}

// What is wrong with a chain; empty: it is read, and `trusted` vouches for it.
std::string verdict(const std::vector<std::string>& chain, const std::string& trusted) {
  const auto read = Certificates::read(chain, "model.sig");
  if (!read) return refused(std::unexpected(read.error()));
  const Status status = read->check_trusted(trusted, "ca.pem");
  return status ? "" : refused(status);
}

TEST(Certificates, AnAuthorityVouchesDirectlyAndThroughOthers) {
  const Person root = person("root", nullptr, kAuthority);
  const Person office = person("office", &root, kAuthority);
  const Person signer = person("signer", &office, kSigner);
  EXPECT_EQ(verdict({person("alone", &root, kSigner).der()}, root.pem()), "");
  EXPECT_EQ(verdict({signer.der(), office.der()}, root.pem()), "");
  EXPECT_EQ(verdict({signer.der()}, root.pem() + office.pem()), "");
  // Who sends them along is trusted by nobody for that.
  EXPECT_THAT(
      verdict({signer.der(), office.der(), root.der()}, person("root", nullptr, kAuthority).pem()),
      StartsWith("ca.pem does not vouch for CN=signer: "));
  EXPECT_THAT(verdict({signer.der()}, root.pem()), HasSubstr("unable to get local issuer"));
  EXPECT_THAT(verdict({signer.der()}, office.pem()), StartsWith("ca.pem does not vouch"));
}

TEST(Certificates, NobodyVouchesWhoIsNoAuthority) {
  const Person root = person("root", nullptr, kAuthority);
  const Person signer = person("signer", &root, kSigner);
  const Person friend_of = person("friend", &signer, kSigner);
  EXPECT_THAT(verdict({friend_of.der(), signer.der()}, root.pem()), HasSubstr("CN=friend"));
  // Another key under the authority's name.
  const Person liar = person("root", nullptr, kAuthority);
  EXPECT_THAT(verdict({person("signer", &liar, kSigner).der()}, root.pem()),
              HasSubstr("does not vouch"));
}

TEST(Certificates, AreForSignaturesOrCode) {
  const Person root = person("root", nullptr, kAuthority);
  const auto with = [&](const std::vector<Extension>& extensions) {
    return verdict({person("signer", &root, extensions).der()}, root.pem());
  };
  EXPECT_EQ(with({{NID_ext_key_usage, "codeSigning"}}), "");
  EXPECT_EQ(with({{NID_ext_key_usage, "serverAuth"}, {NID_key_usage, "digitalSignature"}}), "");
  EXPECT_THAT(with({}), HasSubstr("CN=signer is not for signatures"));
  EXPECT_THAT(with({{NID_ext_key_usage, "serverAuth"}}), HasSubstr("is not for signatures"));
  EXPECT_THAT(with({{NID_key_usage, "keyEncipherment"}}), HasSubstr("is not for signatures"));
}

// It was valid when the signer's began; that of an authority must have been, too.
TEST(Certificates, GrowNotOld) {
  const Person root = person("root", nullptr, kAuthority, EVP_EC_gen("P-256"), -400, 300);
  const auto of = [&](long from, long days) {
    return verdict({person("signer", &root, kSigner, EVP_EC_gen("P-256"), from, days).der()},
                   root.pem());
  };
  EXPECT_EQ(of(-300, 10), "");
  EXPECT_THAT(of(-50, 90), HasSubstr("expired"));
  EXPECT_THAT(of(-500, 450), HasSubstr("not yet valid"));
}

TEST(Certificates, NameTheirOwner) {
  const auto owner = [](const char* name, const std::vector<Extension>& extensions) {
    return Certificates::read(std::vector{person(name, nullptr, extensions).der()}, "x")->owner();
  };
  EXPECT_EQ(owner("Zoë", {{NID_subject_alt_name, "email:z@example.org"}}), "CN=Zoë");
  EXPECT_EQ(owner("", {{NID_subject_alt_name, "IP:10.0.0.1,email:z@example.org"}}),
            "z@example.org");
  EXPECT_EQ(owner("", {{NID_subject_alt_name, "URI:https://example.org/ci"}}),
            "https://example.org/ci");
  EXPECT_EQ(owner("", {{NID_subject_alt_name, "IP:10.0.0.1"}}), "somebody without a name");
  EXPECT_EQ(owner("", {}), "somebody without a name");
  // What a terminal would obey is none of it.
  EXPECT_EQ(owner("a\x1b[2Jb\xe2\x80\xae", {}).find_first_of("\x1b\xe2"), std::string::npos);
}

TEST(Certificates, HaveTheKeyThatSigns) {
  for (const char* curve : {"P-256", "P-384", "P-521"}) {
    const Person signer = person("signer", nullptr, kSigner, EVP_EC_gen(curve));
    const auto read = Certificates::read(std::vector{signer.der()}, "model.sig");
    ASSERT_TRUE(read) << read.error().text();
    const std::string said = "what is signed";
    EXPECT_TRUE(read->key().verifies(as_bytes(said), *signer.private_key().sign(as_bytes(said))));
  }
}

TEST(Certificates, WhatIsNoneIsRefused) {
  const Person root = person("root", nullptr, kAuthority);
  const std::string der = root.der();
  EXPECT_THAT(verdict({}, root.pem()), HasSubstr("found 0 certificates"));
  EXPECT_THAT(verdict(std::vector(17, der), root.pem()), HasSubstr("found 17 certificates"));
  EXPECT_THAT(verdict({der + "x"}, root.pem()), HasSubstr("that is no certificate"));
  EXPECT_THAT(verdict({der, ""}, root.pem()), HasSubstr("that is no certificate"));
  const std::string long_name = "email:" + std::string(70'000, 'x');
  const Person large = person("large", nullptr, {{NID_subject_alt_name, long_name.c_str()}});
  EXPECT_THAT(verdict({large.der()}, large.pem()), HasSubstr("that is no certificate"));
  for (std::size_t size = 0; size < der.size(); ++size) {
    EXPECT_THAT(verdict({der.substr(0, size)}, root.pem()), HasSubstr("is no certificate")) << size;
  }
  EXPECT_THAT(verdict({person("rsa", nullptr, kSigner, EVP_RSA_gen(1024)).der()}, root.pem()),
              HasSubstr("found a key of another kind"));
}

TEST(Certificates, EachBitOfThemCounts) {
  const Person root = person("root", nullptr, kAuthority);
  const std::string der = person("signer", &root, kSigner).der();
  for (std::size_t at = 0; at < der.size(); ++at) {
    std::string other = der;
    other[at] = static_cast<char>(other[at] ^ 4);
    EXPECT_NE(verdict({other}, root.pem()), "") << at;
  }
}

TEST(Certificates, WhatUsersTrustIsCertificatesOnly) {
  const Person root = person("root", nullptr, kAuthority);
  EXPECT_TRUE(check_authorities(root.pem() + "\nnotes\n" + root.pem(), "ca.pem"));
  EXPECT_THAT(refused(check_authorities("", "ca.pem")), HasSubstr("ca.pem: found no certificate"));
  EXPECT_THAT(refused(check_authorities(root.private_key().public_pem(), "ca.pem")),
              HasSubstr("found no certificate"));
  std::string broken = root.pem();
  broken.replace(broken.find('\n') + 40, 3, "***");
  EXPECT_THAT(refused(check_authorities(root.pem() + broken, "ca.pem")),
              HasSubstr("found something that is no certificate"));
  EXPECT_THAT(refused(check_authorities(std::string(5 << 20, '\n') + root.pem(), "ca.pem")),
              HasSubstr("found no certificate"));
  EXPECT_THAT(verdict({root.der()}, ""), HasSubstr("ca.pem: found no certificate"));
}

}  // namespace
}  // namespace shardwright
