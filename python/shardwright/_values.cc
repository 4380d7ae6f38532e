// SPDX-License-Identifier: Apache-2.0
#include "_values.h"

namespace nb = nanobind;

namespace shardwright::python {

nb::tuple to_tuple(const Dims& dims) {
  nb::list items;
  for (const std::int64_t extent : dims) items.append(extent);
  return nb::tuple(items);
}

Dims to_dims(const std::vector<std::int64_t>& values) {
  if (values.size() > static_cast<std::size_t>(kMaxAxes)) {
    throw nb::value_error("a tensor has at most 8 axes");
  }
  Dims dims;
  for (const std::int64_t value : values) dims.push_back(value);
  return dims;
}

std::string to_path(const nb::bytes& bytes) {
  std::string path(bytes.c_str(), bytes.size());
  if (path.contains('\0')) throw nb::value_error("embedded null byte");
  return path;
}

nb::object from_path(const std::string& path) {
  return nb::module_::import_("os").attr("fsdecode")(nb::bytes(path.data(), path.size()));
}

}  // namespace shardwright::python
