// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "_values.h"
#include "cli/run.h"
#include "exec/tile_reader.h"
#include "format/torch_items.h"
#include "io/source_files.h"
#include "plan/canonical.h"
#include "shardwright/checkpoint.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

void translate(const std::exception_ptr& exception, void* /*unused*/) {
  try {
    std::rethrow_exception(exception);
  } catch (const Failure& failure) {
    const nb::object error = nb::module_::import_("shardwright._errors")
                                 .attr("make")(code_name(failure.error().code), failure.what());
    PyErr_SetObject(error.type().ptr(), error.ptr());
  }
}

// Follows a command from the thread that called it: tells Python how far it is, and stops it once
// Python raises, be it the callback or a signal's handler.
class Follower {
 public:
  explicit Follower(nb::object progress) : progress_(std::move(progress)) {}

  [[nodiscard]] RunOptions options() {
    RunOptions options;
    options.on_progress = [this](const ConvertProgress& progress) { tell(progress); };
    options.cancelled = &stop_;
    return options;
  }

  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  void tell(const ConvertProgress& progress) {
    if (stop_) return;
    const nb::gil_scoped_acquire locked;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      // Objects beside the tensors may be counted on top.
      const std::uint64_t done = std::min(progress.bytes_done, progress.bytes_total);
      if (!progress_.is_none()) progress_(done, progress.bytes_total);
    } catch (...) {
      raised_ = std::current_exception();
      stop_ = true;
    }
  }

  nb::object progress_;
  std::exception_ptr raised_;
  std::atomic<bool> stop_{false};
};

nb::tuple run(const std::vector<std::string>& words, nb::object progress) {
  Follower follower(std::move(progress));
  cli::Console::Capture capture;
  capture.run = follower.options();
  int status = 0;
  {
    const nb::gil_scoped_release unlocked;
    cli::Console console(capture);
    status = cli::run_command_line(words, console);
  }
  follower.rethrow();
  return nb::make_tuple(status, capture.output, capture.messages);
}

using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A checkpoint of any format by its own names. A tensor is located and proven whole when it is
// first read. Safe for concurrent use.
class Reader {
 public:
  explicit Reader(const std::string& path) {
    const nb::gil_scoped_release unlocked;
    checkpoint_ = take(open_checkpoint(path));
    tensors_.resize(checkpoint_.catalog.tensors.size());
  }

  [[nodiscard]] std::string path() const { return checkpoint_.location.path; }
  [[nodiscard]] std::string container() const {
    return std::string(container_name(checkpoint_.location.container));
  }
  [[nodiscard]] nb::object iteration() const {
    const auto& iteration = checkpoint_.location.iteration;
    return iteration ? nb::cast(*iteration) : nb::none();
  }

  /// Name, torch's dtype, safetensors' dtype, bytes of an element, shape; in the stored order.
  [[nodiscard]] nb::list tensors() const {
    nb::list list;
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      const TensorDesc& desc = tensor.desc;
      list.append(nb::make_tuple(desc.name, std::string(torch_name(desc.dtype)),
                                 std::string(safetensors_name(desc.dtype)), bytes_of(desc.dtype),
                                 to_tuple(desc.shape)));
    }
    return list;
  }

  /// Fills `buffer` with a box of a tensor, row-major. Gives what locating the tensor had to say.
  std::vector<std::string> read(std::size_t index, const std::vector<std::int64_t>& origin,
                                const std::vector<std::int64_t>& shape, const Bytes& buffer) {
    const TensorDesc& desc = checkpoint_.catalog.tensors.at(index).desc;
    const Box box = take(make_box(to_dims(origin), to_dims(shape), desc.shape));
    if (take(byte_count(box.shape, desc.dtype)) != static_cast<std::int64_t>(buffer.size())) {
      throw nb::value_error("the buffer's size is not the box's");
    }
    const std::span bytes(reinterpret_cast<std::byte*>(buffer.data()), buffer.size());
    const nb::gil_scoped_release unlocked;
    std::vector<std::string> notes;
    take(read_box(index, box, bytes, notes));
    return notes;
  }

 private:
  struct Located {
    Plan plan;
    std::optional<Lowering> lowering;
  };

  Result<const Located*> locate(std::size_t index, std::vector<std::string>& notes) {
    const std::scoped_lock lock(mutex_);
    if (tensors_[index]) return tensors_[index].get();
    auto located = std::make_unique<Located>();
    Catalog& source = located->plan.source;
    source.tensors.push_back(checkpoint_.catalog.tensors[index]);
    // Lent for messages: there may be as many files as tensors.
    source.files.swap(checkpoint_.catalog.files);
    Result<std::vector<std::string>> told = locate_items(source, *checkpoint_.files);
    source.files.swap(checkpoint_.catalog.files);
    notes = SW_TRY(std::move(told));
    SW_TRY(check_coverage(source.tensors.front()));
    const TensorDesc& desc = source.tensors.front().desc;
    located->plan.target.tensors.push_back({desc, ChunkList(desc.shape.size())});
    located->plan.tensors.push_back({{view_of_canonical({desc, 0, -1})}, std::nullopt, 0.0});
    located->lowering.emplace(located->plan);
    tensors_[index] = std::move(located);
    return tensors_[index].get();
  }

  Status read_box(std::size_t index, const Box& box, std::span<std::byte> bytes,
                  std::vector<std::string>& notes) {
    const Located* located = SW_TRY(locate(index, notes));
    if (bytes.empty()) return {};
    constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
    const auto scratch = std::make_unique_for_overwrite<std::byte[]>(kScratchBytes);
    TileReader reader(located->plan, *located->lowering, *checkpoint_.files,
                      std::span(scratch.get(), kScratchBytes));
    const int element = bytes_of(located->plan.target.tensors.front().desc.dtype);
    const Part part = dense_part(box, bytes.data(), element);
    return reader.read(0, box, bytes, std::span(&part, 1));
  }

  Checkpoint checkpoint_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Located>> tensors_;
};

}  // namespace
}  // namespace shardwright::python

NB_MODULE(_core, module) {
  using namespace shardwright::python;
  nb::register_exception_translator(&translate);
  module.attr("version") = SHARDWRIGHT_VERSION;
  module.def("run", &run, nb::arg("words"), nb::arg("progress").none());
  nb::class_<Reader>(module, "Reader")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def_prop_ro("path", &Reader::path)
      .def_prop_ro("container", &Reader::container)
      .def_prop_ro("iteration", &Reader::iteration)
      .def("tensors", &Reader::tensors)
      .def("read", &Reader::read, nb::arg("index"), nb::arg("origin"), nb::arg("shape"),
           nb::arg("buffer"));
  bind_placements(module);
}
