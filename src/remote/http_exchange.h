// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "remote/curl_library.h"
#include "remote/http_client.h"

namespace shardwright {

/// One try of a request.
struct HttpTry {
  std::string url;             ///< where to
  bool is_origin = true;       ///< the server that the request is for: it may see who asks
  std::uint64_t skip = 0;      ///< bytes of the part that an earlier try received
  std::uint64_t received = 0;  ///< what this one received of the part, behind those
  std::string tag;             ///< of the file that the part is of; set by the first try
  const std::atomic<bool>* cancelled = nullptr;  ///< what ends it; may be null
  HttpAnswer answer;
  std::string broken;            ///< why there is no answer, or no whole one; another try may help
  bool is_unreachable = false;   ///< there was no connection
  std::string hopeless;          ///< the same where none will
  std::optional<Error> failure;  ///< what went wrong on this side: reading what is sent, giving up
};

/// Does it. `handle` is one of curl's, whose options are set anew.
void exchange(const CurlLibrary& curl, CURL* handle, const HttpSettings& settings,
              const HttpRequest& request, HttpTry& attempt);

}  // namespace shardwright
