// SPDX-License-Identifier: Apache-2.0
#include "remote/curl_library.h"

#include <dlfcn.h>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr const char* kLibrary = "libcurl.so.4";

template <class Function>
bool load_symbol(void* library, const char* name, Function& function) {
  // The one conversion that POSIX promises for it.
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<CurlLibrary> open_library() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(Code::kNotFound,
                "remote paths are read with {}, which is not here; install it (Debian, Ubuntu: "
                "libcurl4, Fedora: libcurl)",
                kLibrary);
  }
  CurlLibrary curl;
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_version_info) version_info = nullptr;
  const bool has_all = load_symbol(library, "curl_global_init", global_init) &&
                       load_symbol(library, "curl_version_info", version_info) &&
                       load_symbol(library, "curl_easy_init", curl.easy_init) &&
                       load_symbol(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                       load_symbol(library, "curl_easy_reset", curl.easy_reset) &&
                       load_symbol(library, "curl_easy_setopt", curl.easy_setopt) &&
                       load_symbol(library, "curl_easy_perform", curl.easy_perform) &&
                       load_symbol(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                       load_symbol(library, "curl_easy_strerror", curl.easy_strerror) &&
                       load_symbol(library, "curl_slist_append", curl.slist_append) &&
                       load_symbol(library, "curl_slist_free_all", curl.slist_free_all);
  if (!has_all || global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return fail(Code::kNotFound, "{} can't be used here; reinstall it", kLibrary);
  }
  const curl_version_info_data* info = version_info(CURLVERSION_NOW);
  curl.version = info->version_num;
  curl.version_text = info->version;
  return curl;
}

}  // namespace

Result<const CurlLibrary*> load_curl() {
  static const Result<CurlLibrary> curl = open_library();
  if (!curl) return std::unexpected(curl.error());
  return &*curl;
}

}  // namespace shardwright
