// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_main_thread.h"
#include "_values.h"
#include "dcp/chunk_reader.h"
#include "dcp/load_catalog.h"
#include "dcp/rank_metadata.h"
#include "dcp/replica_name.h"
#include "io/process_memory.h"
#include "layout/asked_plan.h"
#include "remote/open_path.h"
#include "shardwright/checkpoint.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

using Memory = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = std::vector<std::int64_t>;
using Asked = std::vector<std::tuple<std::uint32_t, Numbers, Numbers>>;  // tensor, origin, shape
using Chunks = std::vector<std::tuple<std::uint32_t, std::uint32_t>>;    // tensor, chunk

std::string to_string_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::object row_of(const Catalog& catalog, std::optional<std::uint32_t> number) {
  if (!number) return nb::none();
  const TensorDesc& desc = catalog.tensors[*number].desc;
  return nb::make_tuple(*number, desc.name, std::string(torch_name(desc.dtype)),
                        to_tuple(desc.shape));
}

nb::list names_of(const LoadCatalog& load) {
  nb::list rows;
  for (std::uint32_t i = 0; i < load.listed(); ++i) rows.append(row_of(load.catalog(), i));
  return rows;
}

// Reads: member, tensor, chunk, file, bytes, torch's dtype, box. Parts: read, member, asked, box.
nb::tuple plan(const LoadCatalog& load, const Numbers& ranks, const std::vector<Asked>& asked,
               std::int64_t tensor_rank, std::uint32_t read_price, std::uint32_t sent_price,
               bool by_owner) {
  std::vector<std::vector<AskedBox>> boxes(asked.size());
  for (std::size_t member = 0; member < asked.size(); ++member) {
    for (const auto& [tensor, origin, shape] : asked[member]) {
      boxes[member].push_back({tensor, {to_dims(origin), to_dims(shape)}});
    }
  }
  const Catalog& catalog = load.catalog();
  GroupPlan made;
  std::vector<AskedPart> parts;
  std::vector<std::uint32_t> tensors;  // by the number that the needs have of them
  {
    const nb::gil_scoped_release unlocked;
    const LoadNeeds needs = take(needs_of_members(catalog, LoadGroups(ranks, tensor_rank), boxes));
    made = plan_members(needs, {{read_price, sent_price}, by_owner});
    parts = parts_of_plan(needs, boxes, made);
    for (const NeededTensor& tensor : needs.tensors) {
      tensors.push_back(static_cast<std::uint32_t>(tensor.stored - catalog.tensors.data()));
    }
  }
  nb::list reads;
  for (const GroupRead& read : made.reads) {
    const std::uint32_t tensor = tensors[read.tensor];
    const Chunk chunk = catalog.tensors[tensor].chunks[read.chunk];
    reads.append(nb::make_tuple(read.member, tensor, read.chunk, catalog.files[chunk.file],
                                chunk.range.length,
                                std::string(torch_name(catalog.tensors[tensor].desc.dtype)),
                                to_tuple(chunk.box.origin), to_tuple(chunk.box.shape)));
  }
  nb::list given;
  for (const AskedPart& part : parts) {
    given.append(nb::make_tuple(part.read, part.member, part.asked, to_tuple(part.box.origin),
                                to_tuple(part.box.shape)));
  }
  return nb::make_tuple(reads, given);
}

ChunkReader open_chunks(const LoadCatalog& load, const nb::bytes& folder, const Chunks& chunks) {
  const std::string path = to_path(folder);
  std::vector<ChunkNumber> numbers;
  for (const auto& [tensor, chunk] : chunks) numbers.push_back({tensor, chunk});
  const nb::gil_scoped_release unlocked;
  return take(ChunkReader::open(path, load.catalog(), numbers));
}

std::vector<nb::bytes> decode_objects(const LoadCatalog& load,
                                      const std::vector<std::uint32_t>& objects,
                                      const std::vector<nb::bytes>& stored) {
  std::vector<std::string> contents;
  for (const nb::bytes& bytes : stored) contents.push_back(to_string_of(bytes));
  std::vector<std::string> decoded;
  {
    const nb::gil_scoped_release unlocked;
    decoded = take(load.decode(objects, std::move(contents)));
  }
  std::vector<nb::bytes> given;
  for (const std::string& bytes : decoded) given.emplace_back(bytes.data(), bytes.size());
  return given;
}

void read_chunk(ChunkReader& reader, std::size_t chunk, const Memory& memory) {
  const std::span bytes(reinterpret_cast<std::byte*>(memory.data()), memory.size());
  const nb::gil_scoped_release unlocked;
  take(reader.read(chunk, bytes));
}

void read_memory_of(int process, std::uint64_t address, const Memory& memory) {
  const std::span bytes(reinterpret_cast<std::byte*>(memory.data()), memory.size());
  const nb::gil_scoped_release unlocked;
  take(read_process_memory(process, address, bytes));
}

// Without any where the format does not tell.
Result<DcpMetadata> read_planner_paths(const std::string& place) {
  if (!SW_TRY(locate_checkpoint(place)).traits.has_chunk_list) return DcpMetadata();
  const std::unique_ptr<Directory> directory = SW_TRY(open_directory(place));
  return read_any_metadata(*directory, {.planner_paths = true});
}

// Where each flattened name was in the nested state dict; nothing of formats that do not tell.
std::vector<std::pair<std::string, std::vector<PathStep>>> planner_paths(const nb::bytes& folder) {
  const std::string place(folder.c_str(), folder.size());
  const DcpMetadata metadata = take(without_gil([&] { return read_planner_paths(place); }));
  std::vector<std::pair<std::string, std::vector<PathStep>>> paths;
  for (const PlannerPath& path : metadata.planner_paths) {
    paths.emplace_back(path.name, path.path);
  }
  return paths;
}

}  // namespace

void bind_planning(nb::module_& module) {
  module.def("planner_paths", &planner_paths, nb::arg("folder"));
  module.def("replica_name", &replica_name, nb::arg("tensor"), nb::arg("replica"));
  module.def("has_replica_mark", &has_replica_mark, nb::arg("name"));
  module.def("read_memory_of", &read_memory_of, nb::arg("process"), nb::arg("address"),
             nb::arg("memory"));
  nb::class_<ChunkReader>(module, "ChunkReader")
      .def("read", &read_chunk, nb::arg("chunk"), nb::arg("memory"))
      .def("finish",
           [](ChunkReader& reader) {
             const nb::gil_scoped_release unlocked;
             take(reader.finish());
           })
      .def_prop_ro("opens", &ChunkReader::opens);
  nb::class_<LoadCatalog>(module, "LoadCatalog")
      .def(nb::new_([](const nb::bytes& contents, std::string name) {
             std::string bytes = to_string_of(contents);
             const nb::gil_scoped_release unlocked;
             return take(LoadCatalog::read(std::move(bytes), std::move(name)));
           }),
           nb::arg("contents"), nb::arg("name"))
      .def("tensors", &names_of)
      .def("objects", &LoadCatalog::objects)
      .def(
          "find",
          [](const LoadCatalog& load, const std::string& name) {
            return row_of(load.catalog(), load.find(name));
          },
          nb::arg("name"))
      .def(
          "find_object",
          [](const LoadCatalog& load, const std::string& name) {
            return row_of(load.catalog(), take(load.find_object(name)));
          },
          nb::arg("name"))
      .def("is_compressed", &LoadCatalog::is_compressed, nb::arg("object"))
      .def("decode", &decode_objects, nb::arg("objects"), nb::arg("stored"))
      .def(
          "tensor_name",
          [](const LoadCatalog& load, const std::string& name) { return load.tensor_name(name); },
          nb::arg("name"))
      .def("plan", &plan, nb::arg("ranks"), nb::arg("asked"), nb::arg("tensor_rank"),
           nb::arg("read_price"), nb::arg("sent_price"), nb::arg("by_owner"))
      .def("open", &open_chunks, nb::arg("folder"), nb::arg("chunks"));
}

}  // namespace shardwright::python
