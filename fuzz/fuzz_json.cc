// SPDX-License-Identifier: Apache-2.0
// The JSON and YAML texts that lie beside weights: index, config, source keys, run config.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "codec/json_text.h"
#include "codec/safetensors_header.h"
#include "expect.h"
#include "format/safetensors_reader.h"
#include "io/memory_directory.h"
#include "model/config.h"
#include "model/quantisation_config.h"
#include "state/run_config.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

void parse(std::string_view text) {
  const Result<nlohmann::json> document = parse_json(text, "input.json");
  const Result<nlohmann::ordered_json> ordered = parse_ordered_json(text, "input.json");
  expect(document.has_value() == ordered.has_value(), "both parsers agree");
  if (!document) return;
  const Result<nlohmann::json> again = parse_json(document->dump(), "again.json");
  expect(again.has_value(), "what was written can be read");
}

// A model of one small file beside an index that may say anything.
void read_index(std::string_view text) {
  auto directory = std::make_unique<MemoryDirectory>();
  const std::vector<TensorDesc> tensors = {{"a", DType::kBF16, {2}}, {"b", DType::kF32, {1, 2}}};
  const Result<SafetensorsLayout> layout = layout_safetensors(tensors);
  expect(layout.has_value(), "the file of this test is one");
  std::string file = layout->header;
  file.resize(static_cast<std::size_t>(layout->file_bytes));
  directory->put("model.safetensors", std::move(file));
  directory->put("model.safetensors.index.json", std::string(text));
  Checkpoint checkpoint;
  checkpoint.directory = std::move(directory);
  const auto read = [&](Defects& defects) -> Result<Catalog> {
    SourceFiles files(*checkpoint.directory, {}, 4);
    WeightChoice choice = SW_TRY(choose_weights(checkpoint, defects));
    return read_hf_catalog(*checkpoint.directory, std::move(choice), files, defects);
  };
  Defects first;
  const Result<Catalog> catalog = read(first);
  if (catalog) expect(catalog->tensors.size() == tensors.size(), "index and files agree");
  Defects all(Defects::Policy::kCollect);
  const Result<Catalog> collected = read(all);
  expect(!catalog || (collected && all.found().empty()), "a sound index has no defects");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwright;
  const std::string text(data, data + size);
  parse(text);
  read_index(text);
  static_cast<void>(read_hf_config(text));
  static_cast<void>(read_quantisation_config(text));
  static_cast<void>(read_source_keys(text));
  static_cast<void>(read_run_config(text));
  return 0;
}
