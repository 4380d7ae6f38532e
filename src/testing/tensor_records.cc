// SPDX-License-Identifier: Apache-2.0
#include "testing/tensor_records.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "testing/golden_files.h"

namespace shardwright {

std::map<std::string, TensorRecord> read_tensor_records(const std::string& path) {
  const auto root = nlohmann::json::parse(read_file(path));
  std::map<std::string, TensorRecord> records;
  for (const auto& [name, entry] : root["tensors"].items()) {
    records[name] = {entry["dtype"], entry["shape"], entry["xxh3_128"], std::nullopt};
    if (entry.contains("rows")) records[name].rows = entry["rows"];
  }
  return records;
}

std::string content_digest(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace shardwright
