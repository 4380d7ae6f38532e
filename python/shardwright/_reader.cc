// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "_main_thread.h"
#include "_values.h"
#include "format/formats.h"
#include "layout/layer_name.h"
#include "remote/open_path.h"
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

/// What Python's options say, see shardwright/_naming.py.
struct Options {
  nb::bytes hf_config;
  std::string family;
  std::vector<nb::bytes> maps;
  std::string dtype;
  std::string mtp;
  bool accept_loss = false;
  std::optional<std::int64_t> replica;
  std::optional<std::int64_t> source_ep;
  std::optional<std::int64_t> source_etp;
  std::optional<std::int64_t> source_tp;
};

Naming naming_of(const std::string& names) {
  if (names == "stored") return Naming::kStored;
  if (names == "megatron") return Naming::kCanonical;
  if (names == "hf") return Naming::kHf;
  throw Failure(
      {Code::kUsage, "names: '" + names + "' is none of \"stored\", \"megatron\", \"hf\""});
}

std::optional<DType> dtype_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<DType> dtype = dtype_from_torch(name);
  if (!dtype) throw Failure({Code::kUsage, "dtype: '" + name + "' is none of torch's types"});
  return dtype;
}

MtpPolicy mtp_of(const std::string& mtp) {
  if (mtp.empty()) return MtpPolicy::kDefault;
  if (mtp == "keep") return MtpPolicy::kKeep;
  if (mtp == "drop") return MtpPolicy::kDrop;
  throw Failure({Code::kUsage, "mtp: '" + mtp + "' is none of \"keep\", \"drop\""});
}

ReadOptions read_options(const std::string& names, const std::string& format,
                         const Options& given) {
  ReadOptions options;
  options.naming = naming_of(names);
  options.format = {format, "as_"};  // messages name what Python calls the flag
  options.family.hf_config_dir = to_path(given.hf_config);
  options.family.family = given.family;
  for (const nb::bytes& map : given.maps) options.family.map_files.push_back(to_path(map));
  options.source.accept_loss = given.accept_loss;
  options.source.replica = given.replica;
  options.source.source_expert = given.source_ep;
  options.source.source_expert_tensor = given.source_etp;
  options.source.source_tensor = given.source_tp;
  options.dtype = dtype_of(given.dtype);
  options.mtp = mtp_of(given.mtp);
  return options;
}

// A disk answers: only what may wait for a server needs Ctrl-C meanwhile.
template <class Function>
auto of_files(const TensorReader& reader, const Function& read) {
  if (is_remote_path(reader.location().path)) return without_gil(read);
  const nb::gil_scoped_release unlocked;
  return read();
}

// A checkpoint of any format, by its own names, by Megatron's or by Hugging Face's. Safe for
// concurrent use.
class Reader {
 public:
  Reader(const nb::bytes& path, const std::string& format, const std::string& names,
         const Options& options)
      : reader_(std::make_shared<TensorReader>(
            open(to_path(path), read_options(names, format, options)))) {}

  /// Closes its files, once nobody reads any more; all else raises from then on.
  void close() { reader_.reset(); }

  [[nodiscard]] nb::object path() const { return from_path(opened().location().path); }
  [[nodiscard]] std::string container() const {
    const Location& location = opened().location();
    return std::string(shown_container(location.format));
  }
  [[nodiscard]] std::string format() const { return std::string(opened().location().format); }
  [[nodiscard]] nb::object iteration() const {
    const auto& iteration = opened().location().iteration;
    return iteration ? nb::cast(*iteration) : nb::none();
  }
  [[nodiscard]] bool has_layer_stacks() const { return opened().has_megatron_names(); }
  [[nodiscard]] nb::list tensors() const {
    nb::list list;
    for (const TensorDesc& desc : opened().tensors()) list.append(row_of(desc));
    return list;
  }
  [[nodiscard]] std::vector<std::size_t> order() const { return opened().order(); }
  /// Number and row of a tensor that tensors() need not list; None where there is none, or where
  /// this is closed.
  [[nodiscard]] nb::object find(const std::string& name) const {
    const std::optional<std::size_t> found = reader_ ? reader_->find(name) : std::nullopt;
    if (!found) return nb::none();
    return nb::make_tuple(*found, row_of(reader_->desc(*found)));
  }
  /// By name: code and message of tensors that are stored and not read.
  [[nodiscard]] nb::dict unreadable() const {
    nb::dict found;
    for (const auto& [name, error] : opened().unreadable()) {
      found[name.c_str()] = nb::make_tuple(code_name(error.code), error.message);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> objects() const {
    const std::span<const std::string> names = opened().objects();
    return {names.begin(), names.end()};
  }

  /// Fills `buffer` with a box of a tensor, row-major. Gives what reading had to say.
  std::vector<std::string> read(std::size_t index, const std::vector<std::int64_t>& origin,
                                const std::vector<std::int64_t>& shape, const Bytes& buffer) {
    const Box box{to_dims(origin), to_dims(shape)};
    const std::span bytes(reinterpret_cast<std::byte*>(buffer.data()), buffer.size());
    const auto reader = held();
    take(of_files(*reader, [&] { return reader->read(index, box, bytes); }));
    return reader->take_notes();
  }

  /// Raises unless every file that was read is still what it was when it was opened.
  void check_unchanged() const {
    const auto reader = held();
    take(of_files(*reader, [&] { return reader->check_unchanged(); }));
  }

  [[nodiscard]] std::vector<std::string> documents() const { return opened().documents(); }
  /// The bytes of a file beside the weights.
  [[nodiscard]] nb::bytes read_document(const std::string& name) const {
    const auto reader = held();
    const std::string bytes = take(of_files(*reader, [&] { return reader->read_document(name); }));
    return nb::bytes(bytes.data(), bytes.size());
  }

  /// The bytes of an entry that is no tensor, as they are stored.
  [[nodiscard]] nb::bytes read_object(std::size_t index) {
    const auto reader = held();
    const std::string bytes = take(of_files(*reader, [&] { return reader->read_object(index); }));
    return nb::bytes(bytes.data(), bytes.size());
  }

 private:
  static TensorReader open(const std::string& path, const ReadOptions& options) {
    TensorReader reader = take(without_gil([&] { return TensorReader::open(path, options); }));
    static_cast<void>(reader.take_notes());  // of opening: the command line tells them
    return reader;
  }

  /// For as long as another thread may close it: while this one does not hold the GIL.
  [[nodiscard]] std::shared_ptr<TensorReader> held() const {
    if (!reader_) throw nb::value_error("the checkpoint is closed");
    return reader_;
  }
  [[nodiscard]] TensorReader& opened() const { return *held(); }

  std::shared_ptr<TensorReader> reader_;
};

// Stack, index or None, rest; None for names outside of layers.
nb::object layer_name(const std::string& name) {
  const std::optional<LayerName> parts = split_layer_name(name);
  if (!parts) return nb::none();
  return nb::make_tuple(std::string(parts->stack),
                        parts->index ? nb::cast(*parts->index) : nb::none(),
                        std::string(parts->rest));
}

// Memory as DLPack hands it on, with the dtype of this code and so many bits. It keeps `bytes`.
nb::ndarray<nb::array_api> dlpack(
    nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> bytes,
    const std::vector<std::size_t>& shape, std::uint8_t code, std::uint8_t bits) {
  const nb::dlpack::dtype type{code, bits, 1};
  return nb::ndarray<nb::array_api>(bytes.data(), shape.size(), shape.data(), nb::find(bytes),
                                    nullptr, type, nb::device::cpu::value);
}

}  // namespace

void bind_reader(nb::module_& module) {
  nb::class_<Reader>(module, "Reader")
      .def(
          "__init__",
          [](Reader* reader, const nb::bytes& path, const std::string& format,
             const std::string& names, const nb::bytes& hf_config, const std::string& family,
             const std::vector<nb::bytes>& maps, const std::string& dtype, const std::string& mtp,
             bool accept_loss, std::optional<std::int64_t> replica,
             std::optional<std::int64_t> source_ep, std::optional<std::int64_t> source_etp,
             std::optional<std::int64_t> source_tp) {
            new (reader) Reader(path, format, names,
                                {hf_config, family, maps, dtype, mtp, accept_loss, replica,
                                 source_ep, source_etp, source_tp});
          },
          nb::arg("path"), nb::arg("format"), nb::arg("names") = "stored", nb::kw_only(),
          nb::arg("hf_config") = nb::bytes("", 0), nb::arg("family") = "",
          nb::arg("maps") = std::vector<nb::bytes>(), nb::arg("dtype") = "", nb::arg("mtp") = "",
          nb::arg("accept_loss") = false, nb::arg("replica") = nb::none(),
          nb::arg("source_ep") = nb::none(), nb::arg("source_etp") = nb::none(),
          nb::arg("source_tp") = nb::none())
      .def("close", &Reader::close)
      .def_prop_ro("path", &Reader::path)
      .def_prop_ro("container", &Reader::container)
      .def_prop_ro("format", &Reader::format)
      .def_prop_ro("iteration", &Reader::iteration)
      .def_prop_ro("has_layer_stacks", &Reader::has_layer_stacks)
      .def("tensors", &Reader::tensors)
      .def("order", &Reader::order)
      .def("find", &Reader::find, nb::arg("name"))
      .def("unreadable", &Reader::unreadable)
      .def("objects", &Reader::objects)
      .def("read", &Reader::read, nb::arg("index"), nb::arg("origin"), nb::arg("shape"),
           nb::arg("buffer").noconvert())
      .def("documents", &Reader::documents)
      .def("read_document", &Reader::read_document, nb::arg("name"))
      .def("check_unchanged", &Reader::check_unchanged)
      .def("read_object", &Reader::read_object, nb::arg("index"));
  module.def("dlpack", &dlpack, nb::arg("bytes"), nb::arg("shape"), nb::arg("code"),
             nb::arg("bits"));
  module.def("split_layer_name", &layer_name, nb::arg("name"));
}

}  // namespace shardwright::python
