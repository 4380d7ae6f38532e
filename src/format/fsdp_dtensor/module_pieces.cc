// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/module_pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/fail.h"
#include "base/translated.h"
#include "layout/latent_fusion.h"
#include "layout/mixer_parts.h"
#include "plan/slice.h"

namespace shardwright {
namespace {

using Role = FsdpName::Role;

// The pieces of one tensor of a module, by their place in it.
struct ModuleParts {
  std::map<int, FsdpPiece> by_place;
  bool is_latent = false;
};

class Joining {
 public:
  Joining(std::vector<FsdpPiece>& pieces, const ModuleForm& form)
      : form_(form),
        fusion_(form.modules.fused_latent && !form.names.has_latents_apart
                    ? weights_of(pieces)
                    : std::vector<TensorDesc>()) {}

  // A tensor that was put together; empty where none was.
  [[nodiscard]] std::string first_joined() const {
    return parts_.empty() ? std::string() : parts_.begin()->first.second;
  }

  Result<std::vector<FsdpPiece>> run(std::vector<FsdpPiece> pieces) {
    std::vector<FsdpPiece> out;
    for (FsdpPiece& piece : pieces) {
      piece.canonical = piece.name.parameter;
      add(std::move(piece), out);
    }
    for (const auto& [key, place] : places_) {
      out[place] = SW_TRY(joined(key.second, parts_.at(key)));
    }
    return out;
  }

 private:
  using Key = std::pair<Role, std::string>;

  void add(FsdpPiece piece, std::vector<FsdpPiece>& out) {
    const std::string& parameter = piece.name.parameter;
    const auto fused = fusion_.place_of(parameter);
    if (fused && fused->order < 0) {
      piece.name.parameter = fused->name;
      return out.push_back(std::move(piece));
    }
    std::pair<std::string, int> place(parameter, -1);
    if (fused) {
      place = {fused->name, fused->order};
    } else if (!form_.names.has_mixers_apart) {
      const auto [whole, part] = split_mixer_part(parameter);
      place = {std::string(whole), part};
    }
    if (place.second < 0) return out.push_back(std::move(piece));
    const Key key(piece.name.role, place.first);
    ModuleParts& parts = parts_[key];
    parts.is_latent = fused.has_value();
    if (parts.by_place.empty()) {
      places_[key] = out.size();
      out.push_back(piece);  // until all parts are there
    }
    parts.by_place.emplace(place.second, std::move(piece));
  }

  static std::string_view lacking_part(const std::string& whole, const ModuleParts& parts) {
    std::vector<int> places;
    for (const auto& [place, piece] : parts.by_place) places.push_back(place);
    if (!parts.is_latent) return lacking_mixer_part(whole, places);
    if (!parts.by_place.contains(0)) return "linear_q_down_proj";
    return parts.by_place.contains(1) ? "" : "linear_kv_down_proj";
  }

  Result<FsdpPiece> joined(const std::string& whole, const ModuleParts& parts) const {
    const std::string_view lacking = lacking_part(whole, parts);
    if (!lacking.empty()) {
      return fail(Code::kUnmatchedSource,
                  "tensor {}: its part {} is missing, and Megatron-FSDP has all of them in one; "
                  "leave all of them out, or none",
                  whole, lacking);
    }
    FsdpPiece piece = parts.by_place.begin()->second;
    piece.name.parameter = whole;
    if (!parts.is_latent) piece.canonical = whole;
    piece.tensor = slice_rows(piece.tensor, 0, 0);
    for (std::int64_t rank = 0; rank < form_.tensor_parallel; ++rank) {
      for (const auto& [place, part] : parts.by_place) {
        const std::int64_t rows = part.tensor.desc.shape.empty() ? 0 : part.tensor.desc.shape[0];
        if (rows == 0 || rows % form_.tensor_parallel != 0) {
          return fail(Code::kNotDivisible,
                      "tensor {}: found {} rows, expected a multiple of --tp {}", part.canonical,
                      rows, form_.tensor_parallel);
        }
        const std::int64_t own = rows / form_.tensor_parallel;
        append_rows(piece.tensor, slice_rows(part.tensor, rank * own, own));
      }
    }
    return piece;
  }

  const ModuleForm& form_;
  LatentFusion fusion_;
  std::map<Key, ModuleParts> parts_;
  std::map<Key, std::size_t> places_;  // in the output
};

}  // namespace

std::vector<TensorDesc> weights_of(const std::vector<FsdpPiece>& pieces) {
  std::vector<TensorDesc> weights;
  for (const FsdpPiece& piece : pieces) {
    if (piece.name.role != Role::kModel) continue;
    weights.push_back(piece.tensor.desc);
    weights.back().name = piece.name.parameter;
  }
  return weights;
}

Result<std::vector<FsdpPiece>> put_into_modules(std::vector<FsdpPiece> pieces,
                                                const ModuleForm& form,
                                                std::vector<std::string>& notes) {
  Joining joining(pieces, form);
  pieces = SW_TRY(joining.run(std::move(pieces)));
  if (!joining.first_joined().empty()) {
    notes.push_back(translated(
        "the rows of {} and its like lie as {} tensor-parallel ranks have them: a run of "
        "another size would take them for others; convert with its size (--tp)",
        joining.first_joined(), form.tensor_parallel));
  }
  return pieces;
}

void name_for_modules(const ModuleForm& form, FsdpPiece& piece) {
  FsdpName& name = piece.name;
  const FsdpName stored{name.role, piece.canonical, name.expert, name.half};
  piece.settings = fsdp_settings_of(stored).front();
  name.parameter = legacy_from_canonical(name.parameter, {}, name.expert, form.modules);
  name.expert.reset();
}

}  // namespace shardwright
