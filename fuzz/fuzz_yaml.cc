// SPDX-License-Identifier: Apache-2.0
// Megatron-Bridge's run_config.yaml: read, and edited line by line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "expect.h"
#include "state/run_config.h"
#include "state/run_config_edits.h"
#include "state/yaml_lines.h"

namespace shardwright {
namespace {

void edit(const std::string& text) {
  RunConfigEdits edits;
  edits.layout = {{"tensor_model_parallel_size", ArgValue(std::int64_t{2})}};
  edits.format = "torch_dist";
  const Result<std::string> edited = edited_run_config(text, edits);
  if (!edited) return;
  expect(read_run_config(*edited).has_value(), "what was edited can be read");
  const Result<std::string> twice = edited_run_config(*edited, edits);
  expect(twice.has_value() && *twice == *edited, "editing again changes nothing");
}

void read(const std::string& text) {
  static_cast<void>(read_run_config(text));
  Result<YamlLines> lines = YamlLines::read(text);
  if (!lines) return;
  for (const std::string& key : lines->keys({})) {
    static_cast<void>(lines->scalar({key}));
    static_cast<void>(lines->lines_below({key}));
  }
  edit(text);
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
