// SPDX-License-Identifier: Apache-2.0
#include "codec/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <new>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostDer = std::size_t{64} << 10;
constexpr std::size_t kMostPemOfAuthorities = std::size_t{4} << 20;

struct Freer {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const { X509_STORE_CTX_free(context); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

template <class T>
using Owned = std::unique_ptr<T, Freer>;

template <class T>
Owned<T> owned(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return Owned<T>(made);
}

std::string text_in(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string subject_of(X509* certificate) {
  const Owned<BIO> bio = owned(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB));
  return text_in(bio.get());
}

// The first address in it that is a text.
std::string address_of(X509* certificate) {
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const auto* const value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind));
    if (kind != GEN_EMAIL && kind != GEN_URI && kind != GEN_DNS) continue;
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
            static_cast<std::size_t>(ASN1_STRING_length(value))};
  }
  return {};
}

std::string owner_of(X509* certificate) {
  std::string owner = subject_of(certificate);
  if (owner.empty()) owner = address_of(certificate);
  return owner.empty() ? "somebody without a name" : printable(owner);
}

Result<EcKey> key_of(X509* certificate, std::string_view name) {
  const Owned<BIO> bio = owned(BIO_new(BIO_s_mem()));
  EVP_PKEY* const key = X509_get0_pubkey(certificate);
  if (key != nullptr && PEM_write_bio_PUBKEY(bio.get(), key) == 1) {
    return EcKey::read_public(text_in(bio.get()), name);
  }
  ERR_clear_error();
  return fail(Code::kSignature, "{}: found no key in it, expected one of P-256, P-384 or P-521",
              name);
}

Owned<X509> certificate_from(std::string_view der) {
  if (der.size() > kMostDer) return nullptr;
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* const end = at + der.size();
  Owned<X509> certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (certificate == nullptr) ERR_clear_error();
  return at == end ? std::move(certificate) : nullptr;
}

bool may_sign(X509* certificate) {
  const std::uint32_t has = X509_get_extension_flags(certificate);
  const bool is_for_signatures =
      (has & EXFLAG_KUSAGE) != 0 && (X509_get_key_usage(certificate) & KU_DIGITAL_SIGNATURE) != 0;
  const bool is_for_code = (has & EXFLAG_XKUSAGE) != 0 &&
                           (X509_get_extended_key_usage(certificate) & XKU_CODE_SIGN) != 0;
  return is_for_signatures || is_for_code;
}

// Those of a PEM text. Error: kSignature.
Result<Owned<X509_STORE>> store_of(std::string_view pem, std::string_view name) {
  Owned<X509_STORE> store = owned(X509_STORE_new());
  const Owned<BIO> bio = owned(BIO_new_mem_buf(
      pem.data(), pem.size() > kMostPemOfAuthorities ? 0 : static_cast<int>(pem.size())));
  int count = 0;
  while (const Owned<X509> one{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), one.get()) != 1) throw std::bad_alloc();
    ++count;
  }
  const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (count > 0 && is_at_end) return store;
  return fail(Code::kSignature, "{}: found {}, expected certificates in PEM", name,
              count == 0 ? "no certificate" : "something that is no certificate");
}

}  // namespace

struct Certificates::Chain {
  Chain() = default;
  ~Chain() {
    X509_free(first);
    sk_X509_pop_free(others, X509_free);
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  X509* first = nullptr;
  STACK_OF(X509) * others = nullptr;
};

Result<Certificates> Certificates::read(std::span<const std::string> der, std::string_view name) {
  if (der.empty() || der.size() > kMost) {
    return fail(Code::kSignature, "{}: found {} certificates, expected 1 to {}", name, der.size(),
                kMost);
  }
  auto chain = std::make_shared<Chain>();
  chain->others = sk_X509_new_null();
  if (chain->others == nullptr) throw std::bad_alloc();
  for (const std::string& one : der) {
    Owned<X509> certificate = certificate_from(one);
    if (certificate == nullptr) {
      return fail(Code::kSignature, "{}: found something that is no certificate", name);
    }
    X509* const taken = certificate.release();
    if (chain->first == nullptr) {
      chain->first = taken;
    } else if (sk_X509_push(chain->others, taken) <= 0) {
      X509_free(taken);
      throw std::bad_alloc();
    }
  }
  EcKey key = SW_TRY(key_of(chain->first, name));
  std::string owner = owner_of(chain->first);
  return Certificates(std::move(chain), std::move(key), std::move(owner));
}

Status check_authorities(std::string_view pem, std::string_view name) {
  SW_TRY(store_of(pem, name));
  return {};
}

Status Certificates::check_trusted(std::string_view pem, std::string_view name) const {
  const Owned<X509_STORE> store = SW_TRY(store_of(pem, name));
  const Owned<X509_STORE_CTX> context = owned(X509_STORE_CTX_new());
  std::tm begins{};
  if (ASN1_TIME_to_tm(X509_get0_notBefore(chain_->first), &begins) != 1) {
    ERR_clear_error();
    return fail(Code::kSignature, "the certificate of {} does not say since when it is valid",
                owner_);
  }
  if (X509_STORE_CTX_init(context.get(), store.get(), chain_->first, chain_->others) != 1) {
    throw std::bad_alloc();
  }
  X509_STORE_CTX_set_time(context.get(), 0, timegm(&begins));
  if (X509_verify_cert(context.get()) != 1) {
    const int reason = X509_STORE_CTX_get_error(context.get());
    ERR_clear_error();
    return fail(Code::kSignature, "{} does not vouch for {}: {}", name, owner_,
                X509_verify_cert_error_string(reason));
  }
  if (may_sign(chain_->first)) return {};
  return fail(Code::kSignature, "the certificate of {} is not for signatures", owner_);
}

}  // namespace shardwright
