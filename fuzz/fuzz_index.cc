// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json: keys, files that lead out, totals.
#include <cstddef>
#include <cstdint>
#include <string>

#include "expect.h"
#include "format/hf_index.h"
#include "format/weight_names.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

void read(const std::string& text) {
  MemoryDirectory directory;
  directory.put(kHfIndexFile, text);
  const Result<HfIndex> index = read_hf_index(directory, kHfIndexFile);
  if (!index) return;
  for (const auto& [key, file] : index->files) {
    const bool is_plain = !file.empty() && file.front() != '/' &&
                          ("/" + file + "/").find("/../") == std::string::npos;
    // Whatever the index says, a file is only ever opened under the directory's own rules.
    expect(is_plain || !directory.open(file).has_value(), "a name that leads out opens nothing");
  }
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
