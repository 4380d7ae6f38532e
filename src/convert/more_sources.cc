// SPDX-License-Identifier: Apache-2.0
#include "convert/more_sources.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io/source_files.h"

namespace shardwright {

std::uint32_t repeat_source(Drafting& drafting, std::uint32_t source) {
  std::vector<StoredTensor>& tensors = drafting.catalog.tensors;
  StoredTensor copy = tensors[source];
  tensors.push_back(std::move(copy));
  std::vector<std::string>& names = drafting.stored_names;
  if (!names.empty()) names.push_back(std::string(names[source]));
  const auto number = static_cast<std::uint32_t>(tensors.size() - 1);
  std::vector<QuantisedSource>& quantised = drafting.result.plan.quantised;
  const auto found = std::ranges::find(quantised, source, &QuantisedSource::values);
  if (found != quantised.end()) {
    QuantisedSource again = *found;
    again.values = number;
    quantised.push_back(again);
  }
  return number;
}

std::uint32_t add_made_source(Drafting& drafting, TensorDesc desc,
                              std::unique_ptr<ReadableFile> file) {
  const std::string name = desc.name;
  const ByteRange range{0, file->size()};
  const std::uint32_t number = drafting.source().files->add(std::move(file));
  for (Catalog* catalog : {&drafting.result.source.catalog, &drafting.catalog}) {
    catalog->files.resize(number);
    catalog->files.push_back(name);
  }
  const Box whole = Box::whole(desc.shape);
  StoredTensor tensor{std::move(desc), ChunkList(whole.axes())};
  tensor.chunks.push_back({whole, number, range, {}});
  drafting.catalog.tensors.push_back(std::move(tensor));
  if (!drafting.stored_names.empty()) drafting.stored_names.push_back(name);
  return static_cast<std::uint32_t>(drafting.catalog.tensors.size() - 1);
}

}  // namespace shardwright
