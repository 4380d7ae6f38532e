// SPDX-License-Identifier: Apache-2.0
#include "model/golden_family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "testing/golden_files.h"
#include "testing/tensor_records.h"

namespace shardwright {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::abort();
}

/// Where the name of a list of layers ends that a stacked tensor has an axis for; npos for others.
std::size_t end_of_stack(std::string_view name) {
  for (const std::string_view list : {"decoder.layers.", "decoder.deepstack_merger_list."}) {
    const std::size_t at = name.find(list);
    if (at == std::string_view::npos) continue;
    const char next = name[at + list.size()];
    if (next < '0' || next > '9') return at + list.size();
  }
  return std::string_view::npos;
}

/// `decoder.layers.mlp...` with a layer axis as `decoder.layers.3.mlp...` without.
bool is_stacked(std::string_view name) { return end_of_stack(name) != std::string_view::npos; }

std::string layer_name(const std::string& stacked, std::int64_t layer) {
  const std::size_t end = end_of_stack(stacked);
  return fmt::format("{}{}.{}", stacked.substr(0, end), layer, stacked.substr(end));
}

Dims tail(const Dims& shape) {
  Dims rest;
  for (int axis = 1; axis < shape.size(); ++axis) rest.push_back(shape[axis]);
  return rest;
}

/// The stored tensors of a golden import, whose bytes may be given or only described.
std::vector<TensorDesc> stored_tensors(const std::string& folder) {
  const std::string whole = folder + "/megatron_global.safetensors";
  if (std::filesystem::exists(whole)) return safetensors_header(whole);
  std::vector<TensorDesc> tensors;
  for (const auto& [name, record] : read_tensor_records(folder + "/megatron_global.json")) {
    TensorDesc desc{name, *dtype_from_safetensors(record.dtype), {}};
    for (const std::int64_t extent : record.shape) desc.shape.push_back(extent);
    tensors.push_back(std::move(desc));
  }
  return tensors;
}

std::vector<TensorDesc> one_per_layer(const std::vector<TensorDesc>& stored) {
  std::vector<TensorDesc> tensors;
  for (const TensorDesc& desc : stored) {
    if (!is_stacked(desc.name)) {
      tensors.push_back(desc);
      continue;
    }
    for (std::int64_t layer = 0; layer < desc.shape[0]; ++layer) {
      tensors.push_back(TensorDesc{layer_name(desc.name, layer), desc.dtype, tail(desc.shape)});
    }
  }
  return tensors;
}

/// `[0:96]` at the end of a word, or the whole of it.
struct Range {
  std::string name;
  std::int64_t from = 0;
  std::int64_t to = -1;
};

Range parse_range(std::string_view text) {
  const std::size_t open = text.rfind('[');
  if (open == std::string_view::npos) return Range{std::string(text), 0, -1};
  const std::string inner(text.substr(open + 1, text.size() - open - 2));
  const std::size_t colon = inner.find(':');
  return Range{std::string(text.substr(0, open)), std::stoll(inner),
               std::stoll(inner.substr(colon + 1))};
}

std::vector<std::int64_t> parse_list(std::string_view text) {
  std::vector<std::int64_t> numbers;
  std::istringstream stream{std::string(text.substr(1, text.size() - 2))};
  for (std::string part; std::getline(stream, part, ',');) numbers.push_back(std::stoll(part));
  return numbers;
}

std::string row_key(const std::string& name, std::int64_t expert, std::int64_t row) {
  return fmt::format("{}|{}|{}", name, expert, row);
}

/// One tensor of the record and its lines.
class RecordedTensor {
 public:
  explicit RecordedTensor(const std::string& line) {
    const std::size_t open = line.find(" [");
    const std::size_t close = line.find(']', open);
    name_ = line.substr(0, open);
    shape_ = parse_list(line.substr(open + 1, close - open));
  }

  /// `    [0, 1][0:96] <- model....[0:96]` and its shorter forms.
  void add(const std::string& line, RowOrigins& origins) const {
    const std::size_t arrow = line.find("<-");
    std::string target = line.substr(0, arrow);
    std::erase(target, ' ');
    const Range source = parse_range(line.substr(arrow + 3));
    const Range rows = parse_range(target);
    std::vector<std::int64_t> at;
    if (!rows.name.empty()) at = parse_list(rows.name);
    std::string name = name_;
    std::int64_t from = rows.from;
    std::int64_t count = rows.to - rows.from;
    if (is_stacked(name_)) {
      if (at.empty()) {  // a vector per layer: the range counts layers
        name = layer_name(name_, rows.from);
        from = 0;
        count = shape_[1];
      } else {
        name = layer_name(name_, at[0]);
        at.erase(at.begin());
      }
    }
    if (rows.to < 0) count = shape_[0];
    const std::int64_t expert = at.empty() ? -1 : at[0];
    for (std::int64_t row = 0; row < count; ++row) {
      origins[row_key(name, expert, from + row)] =
          fmt::format("{}|{}", source.name, source.from + row);
    }
  }

 private:
  std::string name_;
  std::vector<std::int64_t> shape_;
};

/// Walks the index tuples of a shape.
template <class Visit>
void for_each_index(const Dims& shape, const Visit& visit) {
  Dims index = Dims::filled(shape.size(), 0);
  for (const std::int64_t extent : shape) {
    if (extent == 0) return;
  }
  while (true) {
    visit(index);
    int axis = shape.size() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

}  // namespace

const std::vector<Mapping>& shipped_mappings() {
  static const std::vector<Mapping> mappings = [] {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(source_path("models"))) {
      if (entry.is_directory()) continue;
      if (entry.path().filename() != "schema.json") paths.push_back(entry.path());
    }
    std::ranges::sort(paths);
    std::vector<std::string> contents;
    for (const std::string& path : paths) contents.push_back(read_file(path));
    std::vector<MappingText> texts;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      texts.push_back(MappingText{std::filesystem::path(paths[i]).filename(), contents[i]});
    }
    Result<std::vector<Mapping>> parsed = parse_mappings(texts);
    if (!parsed) give_up(parsed.error().text());
    return *std::move(parsed);
  }();
  return mappings;
}

const Mapping& shipped(std::string_view family) {
  const auto found = find_family(shipped_mappings(), family);
  if (!found) give_up(found.error().text());
  return **found;
}

std::vector<TensorDesc> safetensors_header(const std::string& path) {
  const std::string text = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  const auto header = nlohmann::json::parse(text.substr(sizeof length, length));
  std::vector<TensorDesc> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    TensorDesc desc{name, *dtype_from_safetensors(entry["dtype"].get<std::string>()), {}};
    for (const auto& extent : entry["shape"]) desc.shape.push_back(extent.get<std::int64_t>());
    tensors.push_back(std::move(desc));
  }
  return tensors;
}

std::vector<std::string> golden_folders() {
  return {"llama3",  "llama3_4l",   "qwen2",           "qwen3",     "qwen3_moe", "mistral",
          "mixtral", "deepseek_v3", "deepseek_v3_mtp", "gemma2",    "gpt_oss",   "glm45",
          "olmoe",   "qwen3_vl",    "qwen25_vl",       "qwen35_vl", "nemotron_h"};
}

std::vector<std::string> golden_folders_with_rows() {
  std::vector<std::string> folders = golden_folders();
  std::erase_if(folders, [](const std::string& folder) {
    return !std::filesystem::exists(golden_path("hf/" + folder + "/provenance.txt"));
  });
  return folders;
}

GoldenFamily load_golden(const std::string& folder) {
  const std::string base = golden_path("hf/" + folder);
  GoldenFamily golden;
  golden.folder = base;
  Result<HfConfig> config = read_hf_config(read_file(base + "/hf/config.json"));
  if (!config) give_up(config.error().text());
  golden.config = *std::move(config);
  const auto family = find_family(shipped_mappings(), golden.config);
  if (!family) give_up(family.error().text());
  golden.mapping = *family;
  golden.hf = safetensors_header(base + "/hf/model.safetensors");
  golden.canonical = one_per_layer(stored_tensors(base));
  return golden;
}

RowOrigins recorded_origins(const std::string& folder) {
  RowOrigins origins;
  std::istringstream stream(read_file(folder + "/provenance.txt"));
  std::vector<RecordedTensor> current;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("HF tensors never used") || line.starts_with("Megatron rows")) break;
    if (line.starts_with(" ")) {
      current.back().add(line, origins);
    } else if (!line.empty()) {
      current.emplace_back(line);
    }
  }
  return origins;
}

RowOrigins block_origins(const Correspondence& correspondence) {
  RowOrigins origins;
  for (const Block& block : correspondence.blocks) {
    const TensorDesc& hf = correspondence.hf[block.hf].desc;
    const TensorDesc& megatron = correspondence.megatron[block.megatron].desc;
    const bool has_experts = block.shape.size() > hf.shape.size();
    const int row_axis = has_experts ? 1 : 0;
    for (int axis = 0; axis < block.shape.size(); ++axis) {
      const bool is_expert_axis = has_experts && axis == 0;
      const bool is_whole = axis <= row_axis || (block.shape[axis] == megatron.shape[axis] &&
                                                 block.hf_origin[axis - row_axis] == 0);
      if (!is_whole || block.hf_step[axis] != 1 ||
          block.hf_axis[axis] != (is_expert_axis ? -1 : axis - row_axis)) {
        give_up("a block of " + megatron.name + " does not run along whole rows");
      }
    }
    const std::int64_t expert = has_experts ? block.megatron_origin[0] : -1;
    for (std::int64_t row = 0; row < block.shape[row_axis]; ++row) {
      const std::string key = row_key(megatron.name, expert, block.megatron_origin[row_axis] + row);
      if (!origins.emplace(key, fmt::format("{}|{}", hf.name, block.hf_origin[0] + row)).second) {
        give_up("two sources for " + key);
      }
    }
  }
  return origins;
}

std::map<std::string, std::string> element_origins(const Correspondence& correspondence) {
  std::map<std::string, std::string> origins;
  for (const Block& block : correspondence.blocks) {
    const TensorDesc& hf = correspondence.hf[block.hf].desc;
    const TensorDesc& megatron = correspondence.megatron[block.megatron].desc;
    for_each_index(block.shape, [&](const Dims& t) {
      Dims source = block.hf_origin;
      Dims target = block.megatron_origin;
      for (int axis = 0; axis < t.size(); ++axis) {
        target[axis] += t[axis];
        const int hf_axis = static_cast<int>(block.hf_axis[axis]);
        if (hf_axis >= 0)
          source[hf_axis] = block.hf_origin[hf_axis] + t[axis] * block.hf_step[axis];
      }
      const std::string key = megatron.name + to_string(target);
      if (!origins.emplace(key, hf.name + to_string(source)).second) {
        give_up("two sources for " + key);
      }
    });
  }
  return origins;
}

std::vector<std::string> block_lines(const Correspondence& correspondence) {
  std::vector<std::string> lines;
  for (const Block& block : correspondence.blocks) {
    lines.push_back(fmt::format("{} {} {} <- {} {} axes {} step {}",
                                correspondence.megatron[block.megatron].desc.name,
                                to_string(block.megatron_origin), to_string(block.shape),
                                correspondence.hf[block.hf].desc.name, to_string(block.hf_origin),
                                to_string(block.hf_axis), to_string(block.hf_step)));
  }
  std::ranges::sort(lines);
  return lines;
}

std::vector<std::string> tensor_lines(const std::vector<MappedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const MappedTensor& tensor : tensors) {
    lines.push_back(fmt::format("{} {} {}{}{}", tensor.desc.name, torch_name(tensor.desc.dtype),
                                to_string(tensor.desc.shape), tensor.pinned_dtype ? " pinned" : "",
                                tensor.vocabulary ? " vocabulary" : ""));
  }
  std::ranges::sort(lines);
  return lines;
}

}  // namespace shardwright
