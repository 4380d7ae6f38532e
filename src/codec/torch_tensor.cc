// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_tensor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codec/torch_dtype.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr std::int64_t kMaxExpansionBytes = std::int64_t{64} << 20;
/// Parameter within a subclass within ... : real files have two.
constexpr int kMaxWrappers = 4;

struct Wrapper {
  std::string_view module;
  std::string_view name;
};
constexpr std::array<Wrapper, 2> kParameterWrappers = {{
    {"torch._utils", "_rebuild_parameter"},
    {"torch._utils", "_rebuild_parameter_with_state"},
}};

std::unexpected<Error> refuse_tensor(std::string_view found, std::string_view expected) {
  return fail(Code::kTorchArchive, "tensor: found {}, expected {}", found, expected);
}

std::string describe(Value value) {
  if (value.is(Kind::kReduce) || value.is(Kind::kObject)) {
    const Value callable = value.callable();
    return fmt::format("{}.{}", callable.module(), callable.name());
  }
  return std::string(value ? pickle::kind_name(value.kind()) : "nothing");
}

/// The function and arguments that rebuild the bare tensor, taken out of their wrappers.
struct Call {
  Value function;
  Value args;
  bool is_parameter = false;
};

Result<Call> unwrap(Value value) {
  Call call;
  for (int depth = 0; depth < kMaxWrappers; ++depth) {
    if (!value.is(Kind::kReduce)) break;
    call.function = value.callable();
    call.args = value.args();
    if (call.function.is_global("torch._tensor", "_rebuild_from_type_v2")) {
      // (function, class, its arguments, attributes): the attributes don't change the elements.
      call.is_parameter |= call.args[1].is_global("torch.nn.parameter", "Parameter");
      call.function = call.args[0];
      call.args = call.args[2];
    }
    const bool is_wrapper = std::ranges::any_of(kParameterWrappers, [&](const Wrapper& wrapper) {
      return call.function.is_global(wrapper.module, wrapper.name);
    });
    if (!is_wrapper) return call;
    call.is_parameter = true;
    value = call.args[0];
  }
  return refuse_tensor(describe(value), "a tensor");
}

std::optional<Dims> read_dims(Value value) {
  if (value.is(Kind::kReduce) && value.callable().is_global("torch", "Size")) {
    value = value.args()[0];
  }
  if (!value.is(Kind::kTuple) && !value.is(Kind::kList)) return std::nullopt;
  if (value.size() > kMaxAxes) return std::nullopt;
  Dims dims;
  for (std::size_t axis = 0; axis < value.size(); ++axis) {
    const auto extent = value[axis].as_int();
    if (!extent || *extent < 0) return std::nullopt;
    dims.push_back(*extent);
  }
  return dims;
}

/// `('storage', class, key, location, size)`, with a sixth element in old files.
Status read_storage(Value value, std::optional<DType> dtype, TorchTensor& recipe) {
  const Value id = value.is(Kind::kPersistentId) ? value[0] : Value();
  const auto tag = id[0].as_string();
  const auto key = id[2].as_string();
  const auto size = id[4].as_int();
  if (!id.is(Kind::kTuple) || tag != "storage" || !id[1].is(Kind::kGlobal) || !key || !size ||
      *size < 0) {
    return refuse_tensor(describe(value), "a storage ('storage', class, key, location, size)");
  }
  const bool plain_key =
      !key->empty() && key->size() <= 64 && std::ranges::all_of(*key, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
      });
  if (!plain_key) return refuse_tensor("an odd storage key", "letters and digits");
  const std::string_view cls = id[1].name();
  const std::optional<DType> typed = dtype_of_storage_class(cls);
  std::int64_t unit = 1;
  if (typed) {
    unit = bytes_of(*typed);
    recipe.dtype = dtype.value_or(*typed);
  } else if (cls == "UntypedStorage" && dtype) {
    recipe.dtype = *dtype;
  } else {
    return refuse_tensor(translated("a storage of class {}", cls), "one of plain numbers");
  }
  if (typed && recipe.dtype != *typed) {
    return refuse_tensor(translated("{} in a storage of class {}", torch_name(recipe.dtype), cls),
                         "the storage's own dtype");
  }
  const auto bytes = checked_mul(*size, unit);
  if (!bytes) return refuse_tensor("a storage size beyond int64", "one that can exist");
  recipe.storage_key = *key;
  recipe.storage_bytes = static_cast<std::uint64_t>(*bytes);
  return {};
}

Status check_geometry(const TorchTensor& recipe) {
  const auto elements = element_count(recipe.shape);
  if (!elements) return refuse_tensor(elements.error().message, "one that can exist");
  const auto bytes = checked_mul<std::int64_t>(*elements, bytes_of(recipe.dtype));
  if (!bytes) return refuse_tensor("a shape beyond int64 bytes", "one that can exist");
  if (*elements == 0) return {};
  std::optional<std::int64_t> last = recipe.offset;
  for (int axis = 0; axis < recipe.shape.size() && last; ++axis) {
    const auto step = checked_mul(recipe.shape[axis] - 1, recipe.strides[axis]);
    last = step ? checked_add(*last, *step) : std::nullopt;
  }
  const auto available = static_cast<std::int64_t>(recipe.storage_bytes) / bytes_of(recipe.dtype);
  if (!last || *last >= available) {
    return refuse_tensor(
        translated("shape {}, strides {}, offset {} on a storage of {} elements",
                   to_string(recipe.shape), to_string(recipe.strides), recipe.offset, available),
        "a view within its storage");
  }
  if (*bytes - static_cast<std::int64_t>(recipe.storage_bytes) > kMaxExpansionBytes) {
    return refuse_tensor(translated("{} bytes expanded from {}", *bytes, recipe.storage_bytes),
                         "at most 64 MiB more");
  }
  return {};
}

// Parts of an element that have a sign each: two of a complex number.
int signed_parts(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
      return 1;
    case DType::kC32:
    case DType::kC64:
    case DType::kC128:
      return 2;
    default:
      return 0;
  }
}

/// `{'conj': True}`, where torch writes anything at all.
Result<SignFlips> read_flips(Value metadata) {
  SignFlips flips;
  if (!metadata || metadata.is_none()) return flips;
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    const auto flag = metadata.is(Kind::kDict) ? metadata.value(i).as_bool() : std::nullopt;
    const std::string_view key = flag ? metadata.key(i).text() : std::string_view();
    if (key != "conj" && key != "neg")
      return refuse_tensor("unknown view flags", "conj, neg or none");
    (key == "conj" ? flips.conjugate : flips.negate) = *flag;
  }
  return flips;
}

}  // namespace

void flip_signs(DType dtype, const SignFlips& flips, std::span<std::byte> bytes) {
  const int parts = signed_parts(dtype);
  const auto part_bytes = static_cast<std::size_t>(bytes_of(dtype) / parts);
  constexpr std::byte kSign{0x80};  // in the last byte: numbers are little-endian
  std::size_t part = 0;
  for (std::size_t end = part_bytes; end <= bytes.size(); end += part_bytes, ++part) {
    const bool is_imaginary = part % 2 == 1;  // where anything is conjugated
    if (flips.negate != (flips.conjugate && is_imaginary)) bytes[end - 1] ^= kSign;
  }
}

bool TorchTensor::is_dense() const {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  const Dims dense = row_major_strides(shape);
  for (int axis = 0; axis < shape.size(); ++axis) {
    // An axis of one element is never stepped along, so torch lets its stride be anything.
    if (shape[axis] != 1 && strides[axis] != dense[axis]) return false;
  }
  return true;
}

Value dict_pairs(Value dict) { return dict.is(Kind::kDict) ? dict : dict.items(); }

bool holds_tensor(Value pairs) {
  if (!pairs.is(Kind::kDict)) return false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (is_tensor(pairs.value(i))) return true;
  }
  return false;
}

bool is_tensor(Value value) {
  if (!value.is(Kind::kReduce)) return false;
  const Value function = value.callable();
  if (!function.is(Kind::kGlobal)) return false;
  const bool torch_module =
      function.module() == "torch._utils" || function.module() == "torch._tensor";
  return torch_module && function.name().starts_with("_rebuild");
}

Result<TorchTensor> read_torch_tensor(Value value) {
  Result<TorchTensor> view = read_torch_view(value);
  if (view && view->flips.any()) {
    return refuse_tensor("a conjugate or negative view",
                         "plain elements; resolve it before saving");
  }
  return view;
}

Result<TorchTensor> read_torch_view(Value value) {
  const Call call = SW_TRY(unwrap(value));
  const Value args = call.args;
  const bool v1 = call.function.is_global("torch._utils", "_rebuild_tensor");
  const bool v2 = call.function.is_global("torch._utils", "_rebuild_tensor_v2");
  const bool v3 = call.function.is_global("torch._utils", "_rebuild_tensor_v3");
  if (!v1 && !v2 && !v3) {
    const Value function = call.function;
    return refuse_tensor(function.is(Kind::kGlobal)
                             ? fmt::format("{}.{}", function.module(), function.name())
                             : describe(value),
                         "a dense tensor");
  }
  const std::size_t least = v1 ? 4 : v2 ? 6 : 7;
  if (!args.is(Kind::kTuple) || args.size() < least || args.size() > least + 1) {
    return refuse_tensor(fmt::format("{} arguments", args.size()), fmt::format("{}", least));
  }
  TorchTensor recipe;
  recipe.flips = SW_TRY(read_flips(args.size() > least ? args[least] : Value()));
  recipe.is_parameter = call.is_parameter;
  recipe.requires_grad = !v1 && args[4].as_bool().value_or(false);
  std::optional<DType> dtype;
  if (v3) {
    dtype = args[6].is(Kind::kGlobal) && args[6].module() == "torch"
                ? dtype_from_torch(args[6].name())
                : std::nullopt;
    if (!dtype)
      return refuse_tensor(fmt::format("dtype {}", args[6].name()), "one of plain numbers");
  }
  SW_TRY(read_storage(args[0], dtype, recipe));
  const int parts = signed_parts(recipe.dtype);
  if ((recipe.flips.negate && parts == 0) || (recipe.flips.conjugate && parts != 2)) {
    return refuse_tensor(translated("a conjugate or negative view of {}", torch_name(recipe.dtype)),
                         "one of numbers that have such signs");
  }
  const auto offset = args[1].as_int();
  const auto shape = read_dims(args[2]);
  const auto strides = read_dims(args[3]);
  if (!offset || *offset < 0 || !shape || !strides || shape->size() != strides->size()) {
    return refuse_tensor("a broken offset, shape or stride",
                         translated("non-negative numbers for at most {} axes", kMaxAxes));
  }
  recipe.offset = *offset;
  recipe.shape = *shape;
  recipe.strides = *strides;
  SW_TRY(check_geometry(recipe));
  return recipe;
}

Value make_torch_tensor(pickle::Document& document, DType dtype, const Dims& shape,
                        std::string_view key) {
  const std::string_view storage_class = torch_storage_class(dtype);
  const bool untyped = storage_class.empty();
  std::int64_t count = untyped ? bytes_of(dtype) : 1;
  for (const std::int64_t extent : shape) count *= extent;
  const auto numbers = [&](const Dims& values) {
    std::vector<Value> elements;
    for (const std::int64_t value : values) elements.push_back(document.integer(value));
    return document.tuple(elements);
  };
  const Value cls = untyped ? document.global("torch.storage", "UntypedStorage")
                            : document.global("torch", storage_class);
  const Value storage =
      document.persistent_id(document.tuple({document.string("storage"), cls, document.string(key),
                                             document.string("cpu"), document.integer(count)}));
  std::vector<Value> arguments = {storage,
                                  document.integer(0),
                                  numbers(shape),
                                  numbers(row_major_strides(shape)),
                                  document.boolean(false),
                                  document.ordered_dict()};
  if (untyped) arguments.push_back(document.global("torch", torch_name(dtype)));
  return document.reduce(
      document.global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2"),
      document.tuple(arguments));
}

}  // namespace shardwright
