// SPDX-License-Identifier: Apache-2.0
// Small files that decide: manifests, integrity.json, model.sig, the tracker.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/endian.h"
#include "codec/base64.h"
#include "compare/integrity_file.h"
#include "compare/signature_file.h"
#include "expect.h"
#include "format/tracker.h"
#include "io/memory_directory.h"
#include "shardwright/verify.h"

namespace shardwright {
namespace {

void read_digests_of(const std::string& text) {
  Checkpoint checkpoint;
  auto directory = std::make_unique<MemoryDirectory>();
  directory->put("common.pt", "some bytes");
  directory->put(kIntegrityFile, text);
  checkpoint.directory = std::move(directory);
  Defects defects(Defects::Policy::kCollect);
  const Result<ListedChecked> checked = check_integrity_file(checkpoint, Workers{}, defects);
  expect(checked.has_value(), "what is wrong is collected");
  expect(checked->right <= 1, "only what is there can be right");
}

void read_signature_of(const std::string& text) {
  Checkpoint checkpoint;
  auto directory = std::make_unique<MemoryDirectory>();
  directory->put("common.pt", "some bytes");
  directory->put(kSignatureFile, text);
  checkpoint.directory = std::move(directory);
  Defects defects(Defects::Policy::kCollect);
  const auto checked = check_signature_file(checkpoint, Signer{}, Workers{}, defects);
  expect(checked.has_value(), "what is wrong is collected");
  expect(checked->listed.right <= checked->listed.guarded.size(), "only what is there is right");
  expect(!checked->is_of_key, "without a key nobody has signed");
}

// What no fuzzer would find behind base64.
std::string signed_text(const std::string& statement) {
  return R"({"dsseEnvelope": {"payloadType": "application/vnd.in-toto+json", "payload": ")" +
         to_base64(as_bytes(statement)) + R"(", "signatures": [{"sig": "MEQC"}]}})";
}

void read_tracker_of(const std::string& text) {
  MemoryDirectory directory;
  directory.put("latest_checkpointed_iteration.txt", text);
  directory.put("iter_0000010/common.pt", "x");
  const Result<Folder> folder = Folder::open(directory, "");
  expect(folder.has_value(), "the folder of this test is one");
  const auto tracker = read_tracker(*folder);
  if (!tracker || !*tracker) return;
  expect((*tracker)->folder.find("..") == std::string::npos, "a tracker leads nowhere else");
  expect(!(*tracker)->is_there || (*tracker)->folder == "iter_0000010", "what is there is there");
}

void read(const std::string& text) {
  read_digests_of(text);
  read_signature_of(text);
  read_signature_of(signed_text(text));
  read_tracker_of(text);
  const Result<HashReport> manifest = read_manifest(text);
  if (!manifest) return;
  const Result<HashReport> again = read_manifest(write_manifest(*manifest));
  expect(again.has_value() && again->model.size() == manifest->model.size(),
         "what was written can be read");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
