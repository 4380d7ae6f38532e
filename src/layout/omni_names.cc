// SPDX-License-Identifier: Apache-2.0
#include "layout/omni_names.h"

#include <array>

namespace shardwright {
namespace {

struct Route {
  std::string_view omni;
  std::string_view core;
};

constexpr std::array kRoutes = {
    Route{"encoder_model.image_encoder.", "vision_model."},
    Route{"encoder_model.image_projector.", "adapter."},
    Route{"encoder_model.text_encoder.word_embeddings.",
          "language_model.embedding.word_embeddings."},
    Route{"foundation_model.", "language_model."},
};

}  // namespace

std::string core_name_of_omni(std::string_view name) {
  for (const Route& route : kRoutes) {
    if (!name.starts_with(route.omni)) continue;
    return std::string(route.core) + std::string(name.substr(route.omni.size()));
  }
  return std::string(name);
}

}  // namespace shardwright
