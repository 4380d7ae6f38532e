// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "_values.h"
#include "format/formats.h"
#include "layout/layer_name.h"
#include "shardwright/reader.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Name, torch's dtype, safetensors' dtype, bytes of an element, shape.
nb::tuple row_of(const TensorDesc& desc) {
  return nb::make_tuple(desc.name, std::string(torch_name(desc.dtype)),
                        std::string(safetensors_name(desc.dtype)), bytes_of(desc.dtype),
                        to_tuple(desc.shape));
}

// A checkpoint of any format, by its own names or by Megatron's. Safe for concurrent use.
class Reader {
 public:
  Reader(const nb::bytes& path, const std::string& format, bool canonical)
      : reader_(open(to_path(path), format, canonical)) {}

  [[nodiscard]] nb::object path() const { return from_path(reader_.location().path); }
  [[nodiscard]] std::string container() const {
    const Location& location = reader_.location();
    return std::string(shown_container(location.format));
  }
  [[nodiscard]] std::string format() const { return std::string(reader_.location().format); }
  [[nodiscard]] nb::object iteration() const {
    const auto& iteration = reader_.location().iteration;
    return iteration ? nb::cast(*iteration) : nb::none();
  }
  [[nodiscard]] bool has_layer_stacks() const { return reader_.has_megatron_names(); }
  [[nodiscard]] nb::list tensors() const {
    nb::list list;
    for (const TensorDesc& desc : reader_.tensors()) list.append(row_of(desc));
    return list;
  }
  /// Number and row of a tensor that tensors() need not list; None where there is none.
  [[nodiscard]] nb::object find(const std::string& name) const {
    const std::optional<std::size_t> found = reader_.find(name);
    if (!found) return nb::none();
    return nb::make_tuple(*found, row_of(reader_.desc(*found)));
  }
  [[nodiscard]] std::vector<std::string> objects() const {
    const std::span<const std::string> names = reader_.objects();
    return {names.begin(), names.end()};
  }

  /// Fills `buffer` with a box of a tensor, row-major. Gives what reading had to say.
  std::vector<std::string> read(std::size_t index, const std::vector<std::int64_t>& origin,
                                const std::vector<std::int64_t>& shape, const Bytes& buffer) {
    const Box box{to_dims(origin), to_dims(shape)};
    const std::span bytes(reinterpret_cast<std::byte*>(buffer.data()), buffer.size());
    const nb::gil_scoped_release unlocked;
    take(reader_.read(index, box, bytes));
    return reader_.take_notes();
  }

  /// Raises unless every file that was read is still what it was when it was opened.
  void check_unchanged() const {
    const nb::gil_scoped_release unlocked;
    take(reader_.check_unchanged());
  }

  /// The bytes of an entry that is no tensor, as they are stored.
  [[nodiscard]] nb::bytes read_object(std::size_t index) {
    std::string bytes;
    {
      const nb::gil_scoped_release unlocked;
      bytes = take(reader_.read_object(index));
    }
    return nb::bytes(bytes.data(), bytes.size());
  }

 private:
  static TensorReader open(const std::string& path, const std::string& format, bool canonical) {
    const nb::gil_scoped_release unlocked;
    const Naming naming = canonical ? Naming::kCanonical : Naming::kStored;
    // Messages name what Python calls the flag.
    TensorReader reader = take(TensorReader::open(path, naming, FormatChoice{format, "as_"}));
    static_cast<void>(reader.take_notes());  // of opening: the command line tells them
    return reader;
  }

  TensorReader reader_;
};

// Stack, index or None, rest; None for names outside of layers.
nb::object layer_name(const std::string& name) {
  const std::optional<LayerName> parts = split_layer_name(name);
  if (!parts) return nb::none();
  return nb::make_tuple(std::string(parts->stack),
                        parts->index ? nb::cast(*parts->index) : nb::none(),
                        std::string(parts->rest));
}

}  // namespace

void bind_reader(nb::module_& module) {
  nb::class_<Reader>(module, "Reader")
      .def(nb::init<const nb::bytes&, const std::string&, bool>(), nb::arg("path"),
           nb::arg("format"), nb::arg("canonical") = false)
      .def_prop_ro("path", &Reader::path)
      .def_prop_ro("container", &Reader::container)
      .def_prop_ro("format", &Reader::format)
      .def_prop_ro("iteration", &Reader::iteration)
      .def_prop_ro("has_layer_stacks", &Reader::has_layer_stacks)
      .def("tensors", &Reader::tensors)
      .def("find", &Reader::find, nb::arg("name"))
      .def("objects", &Reader::objects)
      .def("read", &Reader::read, nb::arg("index"), nb::arg("origin"), nb::arg("shape"),
           nb::arg("buffer"))
      .def("check_unchanged", &Reader::check_unchanged)
      .def("read_object", &Reader::read_object, nb::arg("index"));
  module.def("split_layer_name", &layer_name, nb::arg("name"));
}

}  // namespace shardwright::python
