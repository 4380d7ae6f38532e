// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_names.h"

#include <algorithm>
#include <array>
#include <string>

#include "codec/torch_dtype.h"

namespace shardwright::pickle {
namespace {

struct RenamedGlobal {
  std::string_view old_module;
  std::string_view old_name;  // empty: any
  std::string_view module;
  std::string_view name;
};

constexpr std::array<RenamedGlobal, 8> kRenamed = {{
    {"__builtin__", "long", "builtins", "int"},
    {"__builtin__", "unicode", "builtins", "str"},
    {"__builtin__", "basestring", "builtins", "str"},
    {"__builtin__", "xrange", "builtins", "range"},
    {"__builtin__", "unichr", "builtins", "chr"},
    {"__builtin__", "", "builtins", ""},
    {"copy_reg", "", "copyreg", ""},
    {"UserDict", "", "collections", ""},
}};

struct Names {
  std::string_view module;
  std::string_view names;  // between spaces; " * ": all of the module and of those in it
};

// Names by which torch, numpy and Python's own pickler write values.
constexpr std::array kValues = std::to_array<Names>({
    {"argparse", " Namespace "},
    {"builtins",
     " bool bytearray bytes complex dict float frozenset int list long object range set slice str "
     "tuple type unicode xrange "},
    {"_codecs", " encode "},
    {"codecs", " encode "},
    {"collections", " OrderedDict defaultdict Counter deque ChainMap UserDict UserList "},
    {"copyreg", " _reconstructor __newobj__ __newobj_ex__ "},
    {"datetime", " date datetime time timedelta timezone "},
    {"decimal", " Decimal "},
    {"functools", " partial "},
    {"random", " Random "},
    {"re", " _compile "},
    {"typing", " * "},
    {"enum", " Enum IntEnum Flag IntFlag StrEnum "},
    {"fractions", " Fraction "},
    {"pathlib", " Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath "},
    {"pathlib._local", " Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath "},
    {"signal", " Signals Handlers Sigmasks "},
    {"types", " SimpleNamespace NoneType "},
    {"uuid", " UUID SafeUUID "},
    {"_io", " BytesIO StringIO "},
    {"io", " BytesIO StringIO "},
    {"numpy", " ndarray dtype matrix bool_ generic "},
    {"numpy.core.multiarray", " _reconstruct scalar "},
    {"numpy._core.multiarray", " _reconstruct scalar "},
    {"numpy.core.numeric", " _frombuffer "},
    {"numpy._core.numeric", " _frombuffer "},
    {"numpy.random._pickle", " __randomstate_ctor __generator_ctor __bit_generator_ctor "},
    {"numpy.random._mt19937", " MT19937 "},
    {"numpy.random._pcg64", " PCG64 PCG64DXSM "},
    {"torch", " Size device Tensor Generator FloatTensor ByteTensor contiguous_format strided "},
    {"torch._C", " Generator _DisableTorchDispatch "},
    {"torch._tensor", " Tensor _rebuild_from_type_v2 "},
    {"torch._utils",
     " _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter "
     "_rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_tensor "
     "_rebuild_sparse_csr_tensor _rebuild_nested_tensor _rebuild_meta_tensor_no_storage "
     "_rebuild_wrapper_subclass _rebuild_device_tensor_from_numpy "
     "_rebuild_device_tensor_from_cpu_tensor "},
    {"torch.nn.parameter", " Parameter Buffer "},
    {"torch.serialization", " _get_layout "},
    {"torch.storage", " UntypedStorage TypedStorage "},
    {"torch.distributed.checkpoint", " * "},
    {"torch.distributed._shard", " * "},
    {"torch.distributed.tensor", " * "},
    {"torch.distributed._tensor", " * "},
    {"torch.distributed.device_mesh", " * "},
    {"torch.distributed.fsdp", " * "},
});

// Software whose classes lie in checkpoints, by the first part of the module's name.
constexpr std::array kTraining = std::to_array<std::string_view>({
    "accelerate",
    "apex",
    "bitsandbytes",
    "datasets",
    "deepspeed",
    "diffusers",
    "fairscale",
    "fairseq",
    "flash_attn",
    "lightning",
    "megatron",
    "mindspeed",
    "modelopt",
    "nemo",
    "nemo_run",
    "numpy",
    "omegaconf",
    "peft",
    "primus",
    "pytorch_lightning",
    "slime",
    "swift",
    "tokenizers",
    "torch",
    "torchao",
    "torchdata",
    "torchtitan",
    "transformer_engine",
    "transformers",
    "trl",
    "verl",
    "veomni",
    "transformer_engine_torch",
    "nvidia_resiliency_ext",
    "torch_npu",
    "tensordict",
    "megatron_patch",
    "mbridge",
    "mlite",
});

// Modules and whole packages of which any name does more than make a value.
constexpr std::array kRunningModules = std::to_array<std::string_view>({"_aix_support",
                                                                        "_osx_support",
                                                                        "_posixsubprocess",
                                                                        "_pickle",
                                                                        "_socket",
                                                                        "_ssl",
                                                                        "_thread",
                                                                        "_winapi",
                                                                        "antigravity",
                                                                        "atexit",
                                                                        "bdb",
                                                                        "cPickle",
                                                                        "cProfile",
                                                                        "cgi",
                                                                        "code",
                                                                        "codeop",
                                                                        "commands",
                                                                        "crypt",
                                                                        "doctest",
                                                                        "faulthandler",
                                                                        "fileinput",
                                                                        "ftplib",
                                                                        "glob",
                                                                        "httplib",
                                                                        "imaplib",
                                                                        "imp",
                                                                        "inspect",
                                                                        "linecache",
                                                                        "logging.config",
                                                                        "marshal",
                                                                        "mmap",
                                                                        "msvcrt",
                                                                        "nt",
                                                                        "ntpath",
                                                                        "nturl2path",
                                                                        "os",
                                                                        "os.path",
                                                                        "pdb",
                                                                        "pickle",
                                                                        "pickletools",
                                                                        "pkgutil",
                                                                        "platform",
                                                                        "poplib",
                                                                        "popen2",
                                                                        "posix",
                                                                        "posixpath",
                                                                        "profile",
                                                                        "pstats",
                                                                        "pty",
                                                                        "py_compile",
                                                                        "pydoc",
                                                                        "readline",
                                                                        "runpy",
                                                                        "sched",
                                                                        "select",
                                                                        "selectors",
                                                                        "shelve",
                                                                        "shlex",
                                                                        "shutil",
                                                                        "site",
                                                                        "smtplib",
                                                                        "socket",
                                                                        "socketserver",
                                                                        "ssl",
                                                                        "subprocess",
                                                                        "sys",
                                                                        "sysconfig",
                                                                        "syslog",
                                                                        "telnetlib",
                                                                        "tempfile",
                                                                        "this",
                                                                        "threading",
                                                                        "timeit",
                                                                        "trace",
                                                                        "tty",
                                                                        "urllib2",
                                                                        "webbrowser",
                                                                        "winreg",
                                                                        "zipapp",
                                                                        "zipfile",
                                                                        "zipimport",
                                                                        "zlib"});
constexpr std::array kRunningPackages = std::to_array<std::string_view>(
    {"IPython",    "_pyrepl",  "asyncio",    "cffi",      "cloudpickle",
     "concurrent", "ctypes",   "dill",       "distutils", "ensurepip",
     "fabric",     "http",     "httpx",      "idlelib",   "importlib",
     "ipykernel",  "joblib",   "jsonpickle", "lib2to3",   "multiprocessing",
     "nose",       "paramiko", "pexpect",    "pip",       "pkg_resources",
     "pytest",     "requests", "setuptools", "sqlite3",   "tensorflow",
     "unittest",   "urllib",   "urllib3",    "venv",      "wsgiref",
     "xmlrpc",     "yaml"});

// Of modules that also make values: what runs code, fetches or opens files. What is a value above
// is none of these.
constexpr std::array kRunningNames = std::to_array<Names>({
    {"_codecs", " * "},
    {"_io", " * "},
    {"_operator", " * "},
    {"builtins", " * "},
    {"codecs", " * "},
    {"copyreg", " * "},
    {"functools", " * "},
    {"io", " * "},
    {"operator", " * "},
    {"signal", " * "},
    {"types", " * "},
    {"torch",
     " load save compile hub jit package utils ops classes import_ir_module os sys importlib "
     "builtins ctypes platform subprocess inspect threading textwrap functools "},
    {"torch._dynamo", " * "},
    {"torch._inductor", " * "},
    {"torch._export", " * "},
    {"torch.distributed.rpc", " * "},
    {"torch.export", " * "},
    {"torch.fx", " * "},
    {"torch.hub", " * "},
    {"torch.jit", " * "},
    {"torch.multiprocessing", " * "},
    {"torch.onnx", " * "},
    {"torch.package", " * "},
    {"torch.serialization", " load save _load _legacy_load load_module "},
    {"torch.storage", " _load_from_bytes "},
    {"torch.testing", " * "},
    {"torch.utils", " * "},
    {"torch._utils_internal", " * "},
    {"torch._tensor", " _rebuild_from_type "},
    {"numpy", " load loadtxt save fromfile genfromtxt memmap lookfor f2py testing "},
    {"numpy.f2py", " * "},
    {"numpy.testing", " * "},
    {"numpy.distutils", " * "},
    {"numpy.lib", " * "},
    {"numpy.ma", " mrecords "},
    {"transformers.utils", " * "},
    {"transformers.dynamic_module_utils", " * "},
    {"datasets.load", " * "},
    {"deepspeed.launcher", " * "},
    {"nemo_run", " * "},
    {"torch_npu.utils", " * "},
});

bool lists(std::string_view names, std::string_view name) {
  return names == " * " || names.find(" " + std::string(name) + " ") != std::string_view::npos;
}

bool is_in(std::string_view module, std::string_view outer) {
  return module == outer || (module.starts_with(outer) && module[outer.size()] == '.');
}

template <std::size_t N>
bool any_lists(const std::array<Names, N>& table, std::string_view module, std::string_view name) {
  return std::ranges::any_of(table, [&](const Names& entry) {
    const bool here = entry.names == " * " ? is_in(module, entry.module) : module == entry.module;
    return here && lists(entry.names, name);
  });
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A class by its name's style: `RunConfig`, `_StorageInfo`, also as a part of another, `A.B`.
bool looks_like_class(std::string_view name) {
  while (!name.empty()) {
    std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    while (part.starts_with('_')) part.remove_prefix(1);
    if (part.empty() || part.front() < 'A' || part.front() > 'Z') return false;
  }
  return true;
}

bool is_torch_type(std::string_view module, std::string_view name) {
  return module == "torch" && (dtype_from_torch(name) || dtype_of_storage_class(name));
}

// The members of signal's enums, which Python 3.11 and newer pickle by their names in the module:
// Megatron's args.exit_signal is one.
bool is_signal(std::string_view module, std::string_view name) {
  return module == "signal" && name.starts_with("SIG") &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

// Python 2's names for what Python 3 has elsewhere.
std::string_view modern_module(std::string_view module) {
  if (module == "__builtin__") return "builtins";
  return module == "copy_reg" ? "copyreg" : module;
}

}  // namespace

NameMeaning meaning_of(std::string_view module, std::string_view name) {
  module = modern_module(module);
  const std::size_t last_dot = name.rfind('.');
  const bool has_dots = last_dot != std::string_view::npos;
  if (any_lists(kValues, module, name) && !has_dots) return NameMeaning::kValue;
  if (is_torch_type(module, name) || is_signal(module, name)) return NameMeaning::kValue;
  // From attribute to attribute: through classes to what is theirs, but not through a module to
  // what it imported.
  if (has_dots && !looks_like_class(name.substr(0, last_dot))) return NameMeaning::kRunsCode;
  const std::string_view package = module.substr(0, module.find('.'));
  if (contains(kRunningModules, module) || contains(kRunningPackages, package) ||
      any_lists(kRunningNames, module, name)) {
    return NameMeaning::kRunsCode;
  }
  return contains(kTraining, package) ? NameMeaning::kTraining : NameMeaning::kUnknown;
}

GlobalName name_in_python3(GlobalName stored, int protocol) {
  if (protocol >= 3) return stored;
  for (const RenamedGlobal& renamed : kRenamed) {
    if (stored.module != renamed.old_module) continue;
    if (!renamed.old_name.empty() && stored.name != renamed.old_name) continue;
    return {renamed.module, renamed.name.empty() ? stored.name : renamed.name};
  }
  return stored;
}

}  // namespace shardwright::pickle
