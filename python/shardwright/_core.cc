// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "_main_thread.h"
#include "_values.h"
#include "cli/run.h"
#include "convert/replaced_files.h"
#include "io/output_place.h"
#include "verify/option_words.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

void translate(const std::exception_ptr& exception, void* /*unused*/) {
  try {
    std::rethrow_exception(exception);
  } catch (const Failure& failure) {
    try {
      const nb::object error = nb::module_::import_("shardwright._errors")
                                   .attr("make")(code_name(failure.error().code),
                                                 from_path(in_words_of_arguments(failure.what())));
      PyErr_SetObject(error.type().ptr(), error.ptr());
    } catch (nb::python_error& raised) {  // by the handler of a signal that came before
      raised.restore();
    }
  }
}

// Tells Python how far a command is; what it raises stops the command.
void tell(Work& work, const nb::object& progress, const ConvertProgress& now) {
  work.call([&] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    // Objects beside the tensors may be counted on top.
    const std::uint64_t done = std::min(now.bytes_done, now.bytes_total);
    if (!progress.is_none()) progress(done, now.bytes_total);
  });
}

nb::tuple run(const std::vector<nb::bytes>& given, const nb::object& progress) {
  std::vector<std::string> words;
  for (const nb::bytes& word : given) words.push_back(to_path(word));
  Work work;
  cli::Console::Capture capture;
  capture.run.on_progress = [&](const ConvertProgress& now) { tell(work, progress, now); };
  capture.run.cancelled = &work.stopped();
  int status = 0;
  work.run([&] {
    cli::Console console(capture);
    status = cli::run_command_line(words, console);
  });
  return nb::make_tuple(status, capture.output, capture.messages);
}

// The command line on this process's streams; its exit status.
int program(const std::vector<nb::bytes>& given) {
  std::vector<std::string> words;
  for (const nb::bytes& word : given) words.push_back(to_path(word));
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const nb::gil_scoped_release unlocked;
  return cli::run_program(static_cast<int>(pointers.size()), pointers.data());
}

// Whether a save may replace what is there.
void check_replaceable(const nb::bytes& given) {
  const std::string path = to_path(given);
  take(check_is_folder(take(resolved_output(path))));
  take(check_may_be_replaced(path));
  static_cast<void>(take(find_replaced_files(path, {})));
}

}  // namespace
}  // namespace shardwright::python

NB_MODULE(_core, module) {
  using namespace shardwright::python;
  nb::register_exception_translator(&translate);
  module.attr("version") = SHARDWRIGHT_VERSION;
  module.def("run", &run, nb::arg("words"), nb::arg("progress").none());
  module.def(
      "in_words_of_arguments",
      [](const std::string& text) { return shardwright::in_words_of_arguments(text); },
      nb::arg("text"));
  module.def("program", &program, nb::arg("words"));
  module.def("check_replaceable", &check_replaceable, nb::arg("path"));
  bind_reader(module);
  bind_placements(module);
  bind_planning(module);
  bind_writing(module);
}
