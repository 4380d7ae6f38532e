// SPDX-License-Identifier: Apache-2.0
// Classes, calls and objects before they have attributes.
#include <array>
#include <string_view>

#include "base/translated.h"
#include "codec/pickle_names.h"
#include "dcp/dcp_machine.h"

namespace shardwright::dcp {
namespace {

constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
// torch up to 2.2, and writers that want to be read everywhere.
constexpr std::string_view kOldModule = "torch.distributed._shard.sharded_tensor.metadata";

struct KnownClass {
  std::string_view module;
  std::string_view name;
  Class known;
};

constexpr std::array<KnownClass, 15> kKnownClasses = {{
    {kMetadataModule, "ChunkStorageMetadata", Class::kChunkStorage},
    {kMetadataModule, "MetadataIndex", Class::kIndex},
    {kMetadataModule, "TensorStorageMetadata", Class::kTensorStorage},
    {kMetadataModule, "BytesStorageMetadata", Class::kBytesStorage},
    {kMetadataModule, "TensorProperties", Class::kProperties},
    {kOldModule, "TensorProperties", Class::kOldProperties},
    {kMetadataModule, "_MEM_FORMAT_ENCODING", Class::kFormat},
    {kOldModule, "MEM_FORMAT_ENCODING", Class::kOldFormat},
    {"builtins", "getattr", Class::kGetAttr},
    {"torch", "Size", Class::kSize},
    {"torch.serialization", "_get_layout", Class::kGetLayout},
    {"collections", "OrderedDict", Class::kOrderedDict},
    {"numpy", "dtype", Class::kNumpyType},
    {"numpy.core.multiarray", "scalar", Class::kNumpyScalar},
    {"numpy._core.multiarray", "scalar", Class::kNumpyScalar},
}};

}  // namespace

Class Machine::class_of(std::uint32_t module, std::uint32_t name) const {
  for (const KnownClass& known : kKnownClasses) {
    if (collector_.text(name) == known.name && collector_.text(module) == known.module) {
      return known.known;
    }
  }
  return Class::kOther;
}

bool Machine::push_global(std::string_view module, std::string_view name) {
  const pickle::GlobalName found = pickle::name_in_python3({module, name}, tokens_.protocol());
  const auto module_id = collector_.strings().intern(found.module);
  const auto name_id = collector_.strings().intern(found.name);
  if (!module_id || !name_id) return refuse(Code::kLimit, ": found too many strings that collide");
  return push_known_global(*module_id, *name_id);
}

bool Machine::push_known_global(std::uint32_t module, std::uint32_t name) {
  globals_.emplace(module, name);
  const auto known = static_cast<std::uint8_t>(class_of(module, name));
  return push({Tag::kGlobal, known, 0, module, name, 0});
}

void Machine::note_call(const Cell& callable) {
  if (callable.tag != Tag::kGlobal) audit_.runs.insert("a call of what another call returned");
}

pickle::Audit Machine::audit() const {
  pickle::Audit audit = audit_;
  for (const auto& [module, name] : globals_) {
    // Enums are pickled by it; what it may reach otherwise needs a call of its result.
    const bool is_getattr =
        collector_.text(module) == "builtins" && collector_.text(name) == "getattr";
    if (!is_getattr) audit.add_name(collector_.text(module), collector_.text(name));
  }
  return audit;
}

bool Machine::stack_global() {
  if (!has(2)) return false;
  const Cell name = pop();
  const Cell module = pop();
  if (name.tag != Tag::kString || module.tag != Tag::kString) {
    return refuse(Code::kMetadataCorrupt, ": found a global whose name is not a string");
  }
  return push_known_global(module.a, name.a);
}

bool Machine::reduce() {
  if (!has(2)) return false;
  const Cell arguments = pop();
  const Cell callable = pop();
  note_call(callable);
  const Class known = callable.tag == Tag::kGlobal ? static_cast<Class>(callable.n) : Class::kOther;
  if (known == Class::kSize) {
    if (arguments.tag == Tag::kArguments) {
      return push({Tag::kDims, arguments.n, 0, arguments.a, 0, 0});
    }
    if (arguments.tag == Tag::kDims && arguments.n == 0) return push({Tag::kDims});
    if (arguments.tag == Tag::kWide || arguments.tag == Tag::kHuge) return push(arguments);
  }
  if (known == Class::kGetLayout && arguments.tag == Tag::kText) {
    return push({Tag::kLayout, 0, 0, arguments.a, 0, 0});
  }
  const bool is_enum = known == Class::kFormat || known == Class::kOldFormat;
  if (is_enum && arguments.tag == Tag::kDims && arguments.n == 1) {
    return push({Tag::kFormat, callable.n});
  }
  if (known == Class::kNumpyType && arguments.tag == Tag::kInt64Name) {
    return push({Tag::kInt64Type});
  }
  if (known == Class::kNumpyScalar && arguments.tag == Tag::kInt64Value) {
    return push({Tag::kInt, 0, 0, 0, arguments.b, arguments.c});
  }
  if (known == Class::kGetAttr && arguments.tag == Tag::kFormat) return push(arguments);
  if (known == Class::kOrderedDict) {
    heap_.drop(arguments);
    return empty_dict();
  }
  heap_.drop(arguments);
  return push({});
}

bool Machine::new_object() {
  if (!has(2)) return false;
  heap_.drop(pop());
  const Cell cls = pop();
  note_call(cls);
  if (cls.tag != Tag::kGlobal) return push({});
  return push({Tag::kNew, cls.n, 0, cls.a, cls.b, 0});
}

bool Machine::build() {
  if (!has(2)) return false;
  const Cell state = pop();
  Cell& target = stack_.back();
  if (target.tag == Tag::kShared) {
    if (heap_.object(target.a).tag != Tag::kNew) {
      return refuse(Code::kMetadataCorrupt, ": found BUILD twice on one object, expected it once");
    }
    Cell result;
    if (!built(heap_.object(target.a), state, result)) return false;
    // keep() may make this very list of objects grow, so it comes first.
    const Cell kept = result.tag == Tag::kNew ? result : heap_.keep(result);
    heap_.object(target.a) = kept;
    return true;
  }
  if (target.tag == Tag::kNew) {
    Cell result;
    if (!built(target, state, result)) return false;
    target = result;
    return true;
  }
  if (target.tag == Tag::kGlobal)
    audit_.runs.insert(translated("a change of ") + class_name(target));
  heap_.drop(state);
  return true;
}

}  // namespace shardwright::dcp
