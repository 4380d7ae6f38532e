// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright::python {

/// An Error on its way to Python, where it becomes a shardwright.Error.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  [[nodiscard]] const char* what() const noexcept override { return error_.message.c_str(); }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

/// The value, or Failure thrown.
template <class T>
T take(Result<T> result) {
  if (!result) throw Failure(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

[[nodiscard]] nanobind::tuple to_tuple(const Dims& dims);

/// Throws ValueError for more axes than a tensor has.
[[nodiscard]] Dims to_dims(const std::vector<std::int64_t>& values);

/// A path or word as the system has it, whatever its encoding. Throws ValueError for a NUL in it.
[[nodiscard]] std::string to_path(const nanobind::bytes& bytes);

/// What Python makes of a path: undecodable bytes become surrogates (PEP 383).
[[nodiscard]] nanobind::object from_path(const std::string& path);

/// Reading of tensors and objects, see shardwright/_reading.py.
void bind_reader(nanobind::module_& module);

/// The rules of DTensor placements, see shardwright/torch/_placing.py.
void bind_placements(nanobind::module_& module);

/// What a group of ranks reads and sends one another, see shardwright/_loading.
void bind_planning(nanobind::module_& module);
/// Writing of checkpoint files out of memory, see shardwright/torch/_items.py.
void bind_writing(nanobind::module_& module);

}  // namespace shardwright::python
