// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// A URL of a web server, taken apart. `path` and `query` are percent-encoded.
struct Url {
  std::string scheme;  ///< http or https
  std::string host;    ///< with its port where one is given
  std::string path;    ///< begins with a slash
  std::string query;   ///< what is behind the question mark

  [[nodiscard]] std::string origin() const { return scheme + "://" + host; }
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Url&, const Url&) = default;
};

/// Only http and https; a fragment is dropped. Error: kUsage, which repeats neither a query nor a
/// password, also for a URL that has a user's name in it: it would be shown with every message.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

/// The same path with its scheme in lower case, which means the same: `HTTPS://Host/x` becomes
/// `https://Host/x`. What has none stays as it is.
[[nodiscard]] std::string with_lower_scheme(std::string_view path);

/// Every byte escaped that is no letter, digit or one of `-._~`; slashes only on demand.
[[nodiscard]] std::string percent_encoded(std::string_view text, bool with_slashes = false);

/// Error: kUsage for a percent sign without two hexadecimal digits behind it.
[[nodiscard]] Result<std::string> percent_decoded(std::string_view text);

/// The URL without what may be a secret: the user's name and password, the query.
[[nodiscard]] std::string shown_url(std::string_view text);

}  // namespace shardwright
