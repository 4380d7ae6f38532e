// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "remote/http_client.h"
#include "remote/remote_store.h"
#include "remote/url.h"

namespace shardwright {

/// A folder of a web server. What lies in it is what the server's own list of it shows, else those
/// of the names that checkpoints have which are there, and the files that an index names. `shown`
/// is what the user calls it. Asks nothing yet. Error: kUsage for an address with a query.
[[nodiscard]] Result<std::unique_ptr<RemoteStore>> make_web_store(
    std::shared_ptr<HttpClient> client, const Url& url, std::string shown);

}  // namespace shardwright
