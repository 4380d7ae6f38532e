// SPDX-License-Identifier: Apache-2.0
// The file of digests beside a checkpoint, behind its last line, which a fuzzer would not guess.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "compare/digest_file.h"
#include "expect.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

std::unique_ptr<MemoryDirectory> folder_with(const std::string& lines) {
  auto directory = std::make_unique<MemoryDirectory>();
  directory->put("a.safetensors", std::string(200, 'a'));
  directory->put("config.json", "{}");
  Digest all;
  all.add(lines);
  directory->put(kDigestFile, lines + digest_file_end(all));
  return directory;
}

// What was read can be written and read again.
void read_again(const Directory& directory) {
  auto reader = DigestFileReader::open(directory);
  if (!reader) return;
  std::string lines = digest_file_head();
  std::size_t count = 0;
  for (auto entry = reader->next();; entry = reader->next()) {
    if (!entry) return;  // told by the check too
    if (!*entry) break;
    lines += std::visit([](const auto& one) { return line_of(one); }, **entry);
    ++count;
  }
  const auto again = folder_with(lines);
  auto second = DigestFileReader::open(*again);
  expect(second.has_value(), "what was written can be opened");
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = second->next();
    expect(entry.has_value() && entry->has_value(), "what was written can be read");
  }
}

void check(const std::string& lines) {
  Checkpoint checkpoint;
  checkpoint.directory = folder_with(lines);
  Defects defects(Defects::Policy::kCollect);
  const auto checked = check_digest_file(checkpoint, Workers{}, defects);
  expect(checked.has_value(), "what is wrong is collected");
  expect(checked->files <= checked->guarded.size(), "only files that are named can be right");
  read_again(*checkpoint.directory);
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::check(std::string(data, data + size));
  return 0;
}
