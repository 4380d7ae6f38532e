// SPDX-License-Identifier: Apache-2.0
#include "canonical/dequantise.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "base/text.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// The one chunk of stored values, as a tensor of values in the model's order of axes.
StoredTensor as_values(const StoredTensor& stored, const QuantisedTensor& joined) {
  StoredTensor values{{joined.desc.name, joined.dtype, joined.desc.shape},
                      ChunkList(joined.desc.shape.size())};
  values.chunks.push_back({Box::whole(joined.desc.shape), stored.chunks.file(0),
                           stored.chunks.range(0), joined.strides});
  return values;
}

// How many tensors become `dtype`, and what is ignored.
void tell_quantised(const ModelTensors& model, DType dtype, Notes& notes) {
  std::vector<std::pair<std::string_view, int>> counts;  // in the order of the tensors
  for (const QuantisedTensor& joined : model.quantised) {
    const auto found =
        std::ranges::find(counts, joined.scheme, &decltype(counts)::value_type::first);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace_back(joined.scheme, 1);
    }
  }
  for (const auto& [scheme, count] : counts) {
    notes.push_back(translated("dequantised {} tensor{}: {} to {}", count, count == 1 ? "" : "s",
                               scheme, torch_name(dtype)));
  }
  if (!model.ignored.empty()) {
    notes.push_back(
        translated("scales of activations and caches are ignored, the weights do not need them: {}",
                   name_list(model.ignored)));
  }
  if (!model.zero_biases.empty()) {
    notes.push_back(translated("{} biases that writers of gptq files add are zero and left out: {}",
                               model.zero_biases.size(), name_list(model.zero_biases)));
  }
}

std::string file_of(const Catalog& catalog, const StoredTensor& tensor) {
  return tensor.chunks.empty() ? "(no file)" : catalog.files[tensor.chunks.file(0)];
}

// Row-major and in one piece: what counts bits and words of a tensor needs that.
bool is_plain(const StoredTensor& tensor) {
  return tensor.encoding == Encoding::kRaw && tensor.chunks.size() == 1 &&
         tensor.chunks[0].strides.empty();
}

std::unexpected<Error> refuse_stored(const Catalog& catalog, const StoredTensor& tensor,
                                     std::string_view why) {
  return fail(Code::kDtypeUnsupported, "{}: tensor {} {}; save the model as safetensors first",
              file_of(catalog, tensor), tensor.desc.name, why);
}

// All of a small tensor in one piece.
Result<std::vector<std::byte>> bytes_of_small(const Catalog& catalog, SourceFiles& files,
                                              const StoredTensor& tensor) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  const std::int64_t count = tensor.chunks.box(0).volume();
  if (count > kMost) {
    return refuse_stored(catalog, tensor, "has more elements than a matrix has columns");
  }
  const auto size = static_cast<std::size_t>(bytes_of(tensor.desc.dtype));
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  SW_TRY(files.read_at(tensor.chunks.file(0), tensor.chunks.range(0).offset, bytes));
  return bytes;
}

// One that is stored otherwise, or has several axes, is no bias that a writer added.
Result<bool> is_zero(const Catalog& catalog, SourceFiles& files, std::uint32_t index) {
  const StoredTensor& tensor = catalog.tensors[index];
  if (!is_plain(tensor) || tensor.desc.shape.size() != 1) return false;
  const std::vector<std::byte> bytes = SW_TRY(bytes_of_small(catalog, files, tensor));
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

// All numbers of a small tensor, whose shape was looked at before.
Result<std::vector<std::int64_t>> numbers_of(const Catalog& catalog, SourceFiles& files,
                                             std::uint32_t index) {
  const StoredTensor& tensor = catalog.tensors[index];
  const DType dtype = tensor.desc.dtype;
  if (!is_plain(tensor) || (dtype != DType::kI32 && dtype != DType::kI64)) {
    return refuse_stored(catalog, tensor, "is not stored as plain whole numbers in one piece");
  }
  const std::vector<std::byte> bytes = SW_TRY(bytes_of_small(catalog, files, tensor));
  const auto size = static_cast<std::size_t>(bytes_of(dtype));
  std::vector<std::int64_t> numbers;
  numbers.reserve(bytes.size() / size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    numbers.push_back(dtype == DType::kI32 ? load_le<std::int32_t>(&bytes[at])
                                           : load_le<std::int64_t>(&bytes[at]));
  }
  return numbers;
}

}  // namespace

Result<ModelTensors> model_tensors(const Catalog& catalog, std::string_view config_json,
                                   SourceFiles* files) {
  const QuantisationConfig config = SW_TRY(read_quantisation_config(config_json));
  StoredContents contents;
  contents.file = [&](std::uint32_t index) { return file_of(catalog, catalog.tensors[index]); };
  contents.numbers = [&](std::uint32_t index) { return numbers_of(catalog, *files, index); };
  contents.is_zero = [&](std::uint32_t index) { return is_zero(catalog, *files, index); };
  const std::vector<TensorDesc> descs = descs_of(catalog);
  ModelTensors model = SW_TRY(join_scales(descs, config, files == nullptr ? nullptr : &contents));
  for (const QuantisedTensor& joined : model.quantised) {
    const StoredTensor& values = catalog.tensors[joined.values];
    if (files == nullptr || joined.dtype == DType::kF8E4M3 || is_plain(values)) continue;
    return refuse_stored(catalog, values, "is packed and not stored in one piece");
  }
  // Of the optimizer, which trainers keep by the same names.
  std::erase_if(model.tensors, [](const TensorDesc& desc) { return is_optimizer_name(desc.name); });
  return model;
}

void declare_quantised(const ModelTensors& model, DType dtype, Catalog& catalog,
                       std::vector<QuantisedSource>& quantised, Notes& notes) {
  tell_quantised(model, dtype, notes);
  for (const QuantisedTensor& joined : model.quantised) {
    StoredTensor& values = catalog.tensors[joined.values];
    // e4m3 keeps its chunk, whose strides may be those of a torch file.
    if (joined.dtype != DType::kF8E4M3) values = as_values(values, joined);
    catalog.tensors[joined.scales].desc.dtype = joined.scale_dtype;
    quantised.push_back(static_cast<const QuantisedSource&>(joined));
  }
}

std::vector<std::string> stored_names(const ModelTensors& model, const Catalog& catalog,
                                      const std::vector<std::string>& names) {
  const std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  std::vector<std::string> stored = names;
  for (const QuantisedTensor& joined : model.quantised) {
    if (!wanted.contains(joined.desc.name)) continue;
    stored.push_back(catalog.tensors[joined.values].desc.name);
    for (const std::uint32_t companion : companions_of(joined)) {
      stored.push_back(catalog.tensors[companion].desc.name);
    }
    for (const std::uint32_t more : joined.more) stored.push_back(catalog.tensors[more].desc.name);
  }
  return stored;
}

void keep_model_tensors(const ModelTensors& model, DType dtype, std::vector<DraftTensor>& drafts) {
  std::unordered_set<std::string_view> kept;
  for (const TensorDesc& desc : model.tensors) kept.insert(desc.name);
  for (const QuantisedTensor& joined : model.quantised) drafts[joined.values].desc.dtype = dtype;
  std::erase_if(drafts, [&](const DraftTensor& draft) { return !kept.contains(draft.desc.name); });
}

}  // namespace shardwright
