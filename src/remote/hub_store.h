// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "remote/http_client.h"
#include "remote/remote_store.h"

namespace shardwright {

/// `hf://owner/name[@revision][/folder]`, taken apart.
struct HubPath {
  std::string model;     ///< owner/name
  std::string revision;  ///< main, where none is named
  std::string folder;    ///< in the repository; "" for itself
};

/// Also of the address of a model's page at `endpoint`: `…/owner/name[/tree/revision][/folder]`.
/// nullopt for a path that is neither. Error: kUsage for one that names no model.
[[nodiscard]] Result<std::optional<HubPath>> parse_hub_path(std::string_view path,
                                                            std::string_view endpoint);

struct HubSettings {
  std::string endpoint;  ///< $HF_ENDPOINT
  std::string token;     ///< $HF_TOKEN, or that of `hf auth login`; "" where there is none

  [[nodiscard]] static Result<HubSettings> from_environment();
};

/// A model of the Hugging Face Hub, at the commit that the revision is of now: what is read is of
/// one commit, whatever is uploaded meanwhile. `shown` is what the user calls it. Errors: kNotFound
/// also for a folder that isn't in it, kPermission, kRemote.
[[nodiscard]] Result<std::unique_ptr<RemoteStore>> open_hub_store(
    std::shared_ptr<HttpClient> client, const HubSettings& settings, const HubPath& path,
    std::string shown);

}  // namespace shardwright
