// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <string>

#include "shardwright/error.h"

namespace shardwright {

/// The functions of libcurl that are used. It is loaded when a remote path is first met: with the
/// thirty libraries that it needs itself it would double the time of every start, and programs that
/// are carried to machines without it must start there.
struct CurlLibrary {
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
  unsigned version = 0;      ///< as in 0x075801
  std::string version_text;  ///< as in 7.88.1
};

/// Error: kNotFound where this machine has none that can be used.
[[nodiscard]] Result<const CurlLibrary*> load_curl();

}  // namespace shardwright
