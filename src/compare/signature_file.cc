// SPDX-License-Identifier: Apache-2.0
#include "compare/signature_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/base64.h"
#include "codec/certificates.h"
#include "codec/json_text.h"
#include "codec/sha256.h"
#include "io/named_file.h"

namespace shardwright {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostSignatureBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostKeyBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostChainBytes = std::uint64_t{4} << 20;
constexpr std::size_t kMostUnlisted = 1000;
constexpr std::size_t kMostLooked = 1'000'000;
constexpr int kDeepestSigned = 32;
constexpr std::size_t kDigestDigits = 64;

constexpr std::string_view kBundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";
constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicateType = "https://model_signing/signature/v1.0";
// Of model_signing before 1.0: the files are the subjects.
constexpr std::string_view kOldPredicateType = "https://model_signing/Digests/v0.1";
// What is never signed: itself, and what a clone of a repository has besides.
constexpr std::array<std::string_view, 5> kNeverSigned = {kSignatureFile, ".git", ".gitattributes",
                                                          ".github", ".gitignore"};

// What is read of one.
struct SignedList {
  std::string payload;
  std::string signature;
  bool is_dsse = true;                    // and not what model_signing 0.2 made of other bytes
  bool has_identity = false;              // of Sigstore, in a certificate of its own
  std::vector<std::string> certificates;  // DER; the first is the signer's
  std::vector<ListedDigest> files;
  std::vector<std::string> ignored;  // files and folders that the signer left out
  std::string unread;                // why `files` is empty
};

std::unexpected<Error> not_signed(std::string_view what) {
  return fail(
      Code::kJsonCorrupt,
      "{}: {}; expected what model_signing or 'convert --sign' writes; restore it, or remove "
      "it if nobody needs it",
      kSignatureFile, what);
}

// A member of an object; null where there is none.
const json& member(const json& object, std::string_view key) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_in(const json& object, std::string_view key) {
  const json& found = member(object, key);
  return found.is_string() ? found.get<std::string>() : std::string();
}

// What is signed: DSSE's encoding of a payload.
std::string signed_bytes(std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", kPayloadType.size(), kPayloadType, payload.size(),
                     payload);
}

std::optional<std::string> digest_from(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const bool is_digest = text.size() == kDigestDigits &&
                         text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_digest ? std::optional(std::move(text)) : std::nullopt;
}

std::byte byte_of(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  return static_cast<std::byte>(value(digits[0]) * 16 + value(digits[1]));
}

// Of the digests as bytes, in their order.
std::string digest_of_all(std::span<const ListedDigest> files) {
  Sha256 hash;
  for (const ListedDigest& file : files) {
    std::array<std::byte, kDigestDigits / 2> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = byte_of(std::string_view(file.digest).substr(2 * i, 2));
    }
    hash.update(bytes);
  }
  return hash.finish();
}

Status add_file(const std::string& name, const std::string& digest, SignedList& list) {
  auto wanted = digest_from(digest);
  if (name.empty() || !wanted) return not_signed("found a file without a name or a SHA-256");
  list.files.push_back({name, *std::move(wanted)});
  return {};
}

Status read_resources(const json& statement, SignedList& list) {
  const json& predicate = member(statement, "predicate");
  const json& how = member(predicate, "serialization");
  for (const json& path : member(how, "ignore_paths")) {
    if (path.is_string()) list.ignored.push_back(path.get<std::string>());
  }
  if (text_in(how, "method") != "files" || text_in(how, "hash_type") != "sha256") {
    list.unread =
        translated("its digests are of {} by {}, and only SHA-256 of files is compared",
                   printable(text_in(how, "method")), printable(text_in(how, "hash_type")));
    return {};
  }
  for (const json& one : member(predicate, "resources")) {
    if (text_in(one, "algorithm") != "sha256") return not_signed("found digests of two kinds");
    SW_TRY(add_file(text_in(one, "name"), text_in(one, "digest"), list));
  }
  const json& subjects = member(statement, "subject");
  const json& subject = subjects.is_array() && subjects.size() == 1 ? subjects[0] : json();
  if (text_in(member(subject, "digest"), "sha256") == digest_of_all(list.files)) return {};
  return fail(Code::kDigestMismatch,
              "{}: the digest over its list is another one: the list was altered; restore the file",
              kSignatureFile);
}

Status read_statement(SignedList& list) {
  const json statement = SW_TRY(parse_json(list.payload, kSignatureFile));
  if (text_in(statement, "_type") != kStatementType)
    return not_signed("found no in-toto statement");
  const std::string type = text_in(statement, "predicateType");
  if (type == kPredicateType) return read_resources(statement, list);
  if (type != kOldPredicateType) {
    list.unread = translated("its statement is of type {}", printable(type));
    return {};
  }
  list.is_dsse = false;
  for (const json& one : member(statement, "subject")) {
    SW_TRY(add_file(text_in(one, "name"), text_in(member(one, "digest"), "sha256"), list));
  }
  return {};
}

void read_certificates(const json& material, SignedList& list) {
  const json& identity = member(material, "certificate");
  list.has_identity = !identity.is_null();
  if (list.has_identity) {
    list.certificates = {from_base64(text_in(identity, "rawBytes")).value_or("")};
    return;
  }
  for (const json& one : member(member(material, "x509CertificateChain"), "certificates")) {
    if (list.certificates.size() > Certificates::kMost) return;  // which are refused
    list.certificates.push_back(from_base64(text_in(one, "rawBytes")).value_or(""));
  }
}

Result<SignedList> read_signature_file(const Directory& directory) {
  const std::string text = SW_TRY(read_whole(directory, kSignatureFile, kMostSignatureBytes));
  const json bundle = SW_TRY(parse_json(text, kSignatureFile));
  const json& envelope = member(bundle, "dsseEnvelope");
  auto payload = from_base64(text_in(envelope, "payload"));
  if (!payload || text_in(envelope, "payloadType") != kPayloadType) {
    return not_signed("found no signed statement");
  }
  SignedList list;
  list.payload = *std::move(payload);
  const json& signatures = member(envelope, "signatures");
  if (signatures.is_array() && !signatures.empty()) {
    list.signature = from_base64(text_in(signatures[0], "sig")).value_or("");
  }
  read_certificates(member(bundle, "verificationMaterial"), list);
  SW_TRY(read_statement(list));
  return list;
}

std::unexpected<Error> signed_otherwise() {
  return fail(
      Code::kSignature,
      "{}: model_signing 0.2 signed this, and made its signatures of other bytes, which are "
      "not checked here; let 'model_signing verify' look, or have it signed again",
      kSignatureFile);
}

bool is_signed_by(const SignedList& list, const EcKey& key) {
  return key.verifies(as_bytes(signed_bytes(list.payload)), list.signature);
}

Status check_key(const SignedList& list, const EcKey& key, std::string_view path) {
  if (!list.is_dsse) return signed_otherwise();
  if (is_signed_by(list, key)) return {};
  return fail(Code::kSignature,
              "{}: {} did not sign this: another key did{}, or it was altered since",
              kSignatureFile, path, list.certificates.empty() ? "" : " (that of its certificate)");
}

// What the user has named to tell who must have signed.
struct Trusted {
  std::optional<EcKey> key;
  std::string authorities;  // PEM
};

// Whom its own certificate names, if the key in that has signed it; `checked` says so. Error:
// kSignature.
Status check_certificate(const SignedList& list, const Trusted& trusted, const Signer& signer,
                         SignatureChecked& checked) {
  const bool is_asked = !signer.certificate_chain.empty();
  if (list.certificates.empty()) {
    if (!is_asked) return {};
    return fail(
        Code::kSignature,
        "{}: it has no certificate: a bare key has signed it, or nobody; ask the signer for "
        "the key, and give that (--public-key)",
        kSignatureFile);
  }
  if (is_asked && list.has_identity) {
    return fail(Code::kSignature,
                "{}: its certificate is Sigstore's, which only its transparency log makes one of "
                "somebody; let 'model_signing verify sigstore' look",
                kSignatureFile);
  }
  const auto certificates = Certificates::read(list.certificates, kSignatureFile);
  if (!certificates) {
    if (is_asked) return std::unexpected(certificates.error());
    return {};  // it names nobody then
  }
  if (!list.is_dsse) return is_asked ? Status(signed_otherwise()) : Status();
  if (!is_signed_by(list, certificates->key())) {
    return fail(
        Code::kSignature,
        "{}: the key of its own certificate, of {}, did not sign this: it was altered since",
        kSignatureFile, certificates->owner());
  }
  if (is_asked) {
    SW_TRY(certificates->check_trusted(trusted.authorities, signer.certificate_chain));
  }
  checked.owner = certificates->owner();
  checked.is_vouched_for = is_asked;
  return {};
}

// All files in a directory that no list and no signer's wish covers.
class UnlistedSearch {
 public:
  UnlistedSearch(const Directory& directory, const SignedList& list)
      : directory_(directory), ignored_(list.ignored.begin(), list.ignored.end()) {
    for (const ListedDigest& file : list.files) known_.insert(file.file);
    ignored_.insert(kNeverSigned.begin(), kNeverSigned.end());
  }

  std::vector<std::string> run() {
    look_into("", 0);
    return std::move(found_);
  }

 private:
  void look_into(const std::string& folder, int depth) {
    const auto entries = directory_.list(folder);
    if (!entries || depth > kDeepestSigned) return;  // whoever needs it has told why
    for (const DirectoryEntry& entry : *entries) {
      if (found_.size() >= kMostUnlisted || ++looked_ > kMostLooked) return;
      const std::string path = folder.empty() ? entry.name : folder + "/" + entry.name;
      if (ignored_.contains(path)) continue;
      if (entry.is_directory) {
        look_into(path, depth + 1);
      } else if (!known_.contains(path)) {
        found_.push_back(path);
      }
    }
  }

  const Directory& directory_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> ignored_;
  std::size_t looked_ = 0;
  std::vector<std::string> found_;
};

Result<Trusted> read_trusted(const Signer& signer) {
  Trusted trusted;
  if (!signer.public_key.empty()) {
    const std::string pem = SW_TRY(read_named_file(signer.public_key, kMostKeyBytes));
    trusted.key = SW_TRY(EcKey::read_public(pem, signer.public_key));
  }
  if (!signer.certificate_chain.empty()) {
    trusted.authorities = SW_TRY(read_named_file(signer.certificate_chain, kMostChainBytes));
    SW_TRY(check_authorities(trusted.authorities, signer.certificate_chain));
  }
  return trusted;
}

}  // namespace

Result<EcKey> read_signing_key(const std::string& path) {
  return EcKey::read_private(SW_TRY(read_named_file(path, kMostKeyBytes)), path);
}

Result<SignatureChecked> check_signature_file(const Checkpoint& checkpoint, const Signer& signer,
                                              const Workers& workers, Defects& defects) {
  const Trusted trusted = SW_TRY(read_trusted(signer));
  const Directory& directory = *checkpoint.directory;
  SignatureChecked checked;
  checked.is_there = directory.exists(kSignatureFile);
  if (!checked.is_there) {
    if (!trusted.key && trusted.authorities.empty()) return checked;
    SW_TRY(defects.report(
        fail(Code::kSignature, "{}: it is not there, so nobody has signed this", kSignatureFile)));
    return checked;
  }
  const auto list = read_signature_file(directory);
  if (!list) {
    SW_TRY(defects.report(std::unexpected(list.error())));
    checked.unread = "it can't be read";
    return checked;
  }
  if (trusted.key) {
    Status is_of_key = check_key(*list, *trusted.key, signer.public_key);
    checked.is_of_key = is_of_key.has_value();
    SW_TRY(defects.report(std::move(is_of_key)));
  }
  SW_TRY(defects.report(check_certificate(*list, trusted, signer, checked)));
  checked.unread = list->unread;
  if (!list->unread.empty()) return checked;
  checked.listed = SW_TRY(check_listed(directory, list->files, kSignatureFile, workers, defects));
  checked.unlisted = UnlistedSearch(directory, *list).run();
  return checked;
}

Result<GuardFile> signature_file_of(const std::string& folder,
                                    std::span<const ListedDigest> digests, std::string_view model,
                                    const EcKey& key) {
  std::vector<ListedDigest> files(digests.begin(), digests.end());
  for (ListedDigest& file : files) file.file.erase(0, folder.size());
  std::ranges::sort(files, {}, &ListedDigest::file);
  json resources = json::array();
  for (const ListedDigest& file : files) {
    resources.push_back(
        json{{"name", file.file}, {"algorithm", "sha256"}, {"digest", file.digest}});
  }
  const json how = {{"method", "files"},
                    {"hash_type", "sha256"},
                    {"allow_symlinks", false},
                    {"ignore_paths", kNeverSigned}};
  json subject = {{"name", model}};
  subject["digest"]["sha256"] = digest_of_all(files);
  json statement = {{"_type", kStatementType}, {"predicateType", kPredicateType}};
  statement["subject"] = json::array({std::move(subject)});
  statement["predicate"]["serialization"] = how;
  statement["predicate"]["resources"] = std::move(resources);
  const std::string payload = statement.dump(-1, ' ', false, json::error_handler_t::replace);
  json signature = {{"keyid", ""}};
  signature["sig"] = to_base64(as_bytes(SW_TRY(key.sign(as_bytes(signed_bytes(payload))))));
  // By which model_signing tells that it was given another key.
  Sha256 hint;
  hint.update(as_bytes(key.public_pem()));
  json bundle = {{"mediaType", kBundleType}};
  bundle["verificationMaterial"]["publicKey"]["hint"] = hint.finish();
  bundle["verificationMaterial"]["tlogEntries"] = json::array();
  bundle["dsseEnvelope"]["payload"] = to_base64(as_bytes(payload));
  bundle["dsseEnvelope"]["payloadType"] = kPayloadType;
  bundle["dsseEnvelope"]["signatures"] = json::array({std::move(signature)});
  return GuardFile{folder + std::string(kSignatureFile), bundle.dump() + "\n"};
}

}  // namespace shardwright
