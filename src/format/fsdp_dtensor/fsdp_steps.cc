// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/endian.h"
#include "base/fail.h"
#include "layout/fsdp_name.h"
#include "state/object_archive.h"

namespace shardwright {
namespace {

using Role = FsdpName::Role;

constexpr double kMostSteps = 1e9;

std::unexpected<Error> refuse_step(std::string_view name, std::string_view found) {
  return fail(Code::kStateUnreadable,
              "entry {}: found {}, expected the number of the optimizer's steps; convert without "
              "its states (--optimizer drop)",
              name, found);
}

Result<std::int64_t> count_of(std::string_view name, double number) {
  const bool is_count = number >= 0 && number <= kMostSteps && std::floor(number) == number;
  if (!is_count) return refuse_step(name, fmt::to_string(number));
  return static_cast<std::int64_t>(number);
}

// Of the number types that counts are kept in.
std::optional<double> number_in(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<float>(load_le<std::uint32_t>(bytes));
    case DType::kF64:
      return std::bit_cast<double>(load_le<std::uint64_t>(bytes));
    case DType::kI32:
      return load_le<std::int32_t>(bytes);
    case DType::kI64:
      return static_cast<double>(load_le<std::int64_t>(bytes));
    default:
      return std::nullopt;
  }
}

Result<std::int64_t> read_step_tensor(const StoredTensor& tensor, SourceFiles& files) {
  const TensorDesc& desc = tensor.desc;
  const auto elements = element_count(desc.shape);
  std::array<std::byte, sizeof(double)> bytes{};
  const auto refuse = [&] {
    return refuse_step(desc.name,
                       fmt::format("{} {}", torch_name(desc.dtype), to_string(desc.shape)));
  };
  if (!elements || *elements != 1 || tensor.chunks.size() == 0) return refuse();
  if (!number_in(desc.dtype, bytes.data())) return refuse();
  SW_TRY(files.read_at(tensor.chunks.file(0), tensor.chunks.range(0).offset,
                       std::span(bytes).first(static_cast<std::size_t>(bytes_of(desc.dtype)))));
  return count_of(desc.name, *number_in(desc.dtype, bytes.data()));
}

Result<std::int64_t> read_step_object(const StoredObject& object, SourceFiles& files) {
  const TorchArchive archive = SW_TRY(open_object(object, files));
  const std::optional<double> number = archive.root().as_double();
  if (!number) return refuse_step(object.name, "a Python object");
  return count_of(object.name, *number);
}

}  // namespace

Result<FsdpSteps> read_fsdp_steps(const Catalog& catalog, SourceFiles& files) {
  FsdpSteps steps;
  const auto add = [&](const FsdpName& name, std::int64_t step) {
    for (std::string& parameter : fsdp_settings_of(name)) {
      const auto [found, is_new] = steps.by_parameter.try_emplace(std::move(parameter), step);
      steps.halves_differ |= found->second != step;
      found->second = std::max(found->second, step);
    }
  };
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto name = split_fsdp_name(tensor.desc.name);
    if (!name) continue;
    if (name->role == Role::kExpAvgSq) {
      for (std::string& parameter : fsdp_settings_of(*name)) {
        steps.uncounted.insert(std::move(parameter));
      }
    }
    if (name->role == Role::kStep) add(*name, SW_TRY(read_step_tensor(tensor, files)));
  }
  for (const StoredObject& object : catalog.objects) {
    const auto name = split_fsdp_name(object.name);
    const bool is_step = name && name->role == Role::kStep;
    if (is_step) add(*name, SW_TRY(read_step_object(object, files)));
  }
  for (const auto& [parameter, step] : steps.by_parameter) steps.uncounted.erase(parameter);
  return steps;
}

}  // namespace shardwright
