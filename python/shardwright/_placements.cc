// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_values.h"
#include "canonical/placement_families.h"
#include "layout/device_mesh.h"
#include "layout/merged_placement.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

using Numbers = std::vector<std::int64_t>;
using MeshArgument = std::pair<Numbers, Numbers>;               // sizes, ranks in row-major order
using Pairs = std::vector<std::pair<int, std::int64_t>>;        // axis or -1, stride factor
using Own = std::tuple<MeshArgument, Pairs, Numbers>;           // FSDP's mesh, placements, shape
using Reports = std::vector<std::pair<std::int64_t, Numbers>>;  // rank, shape

DeviceMesh to_mesh(const MeshArgument& mesh) {
  return take(DeviceMesh::make(to_dims(mesh.first), mesh.second));
}

MeshPlacements to_placements(const Pairs& pairs) {
  MeshPlacements placements;
  for (const auto& [axis, factor] : pairs) {
    placements.push_back(axis < 0      ? MeshPlacement::replicate()
                         : factor == 1 ? MeshPlacement::shard(axis)
                                       : MeshPlacement::strided_shard(axis, factor));
  }
  return placements;
}

Pairs to_pairs(const MeshPlacements& placements) {
  Pairs pairs;
  for (const MeshPlacement& placement : placements) {
    pairs.emplace_back(placement.is_shard() ? placement.axis : -1, placement.factor);
  }
  return pairs;
}

struct Target {
  std::string name;
  MeshArgument mesh;
  Pairs placements;
  bool fsdp_first = false;
};

// None where the parameter keeps its own mesh; else placements, shape and strides, which give the
// rank the box that it holds.
nb::object place(const Target& target, const std::optional<Own>& own, const Numbers& local,
                 std::int64_t rank) {
  const DeviceMesh mesh = to_mesh(target.mesh);
  const MeshPlacements placements = to_placements(target.placements);
  const Dims local_shape = to_dims(local);
  CheckpointPlacement placed = take([&]() -> Result<CheckpointPlacement> {
    if (!own) return place_plain(target.name, mesh, placements, local_shape);
    const auto& [own_mesh, own_placements, logical] = *own;
    const FsdpParameter parameter{to_mesh(own_mesh), to_placements(own_placements), local_shape,
                                  to_dims(logical)};
    const FsdpOrder order = target.fsdp_first ? FsdpOrder::kOutside : FsdpOrder::kInside;
    return merge_placement(target.name, mesh, placements, parameter, order);
  }());
  if (own && !shards_something(mesh.sizes(), placements)) return nb::none();
  take(placed_box(target.name, placed, rank, local_shape));
  return nb::make_tuple(to_pairs(placed.placements), to_tuple(placed.shape),
                        to_tuple(placed.strides));
}

void check_agreed(const std::string& name, const Reports& reports) {
  std::vector<ReportedShape> shapes;
  for (const auto& [rank, shape] : reports) shapes.push_back({rank, to_dims(shape)});
  if (!shapes.empty()) take(agreed_shape(name, shapes));
}

bool copies_back(const std::string& name, const Numbers& target, const Numbers& source) {
  return take(copy_back(name, to_dims(target), to_dims(source))) == CopyBack::kCopy;
}

// Whether it is an expert's, and its placements.
std::pair<bool, Pairs> placements_of(const PlacementRules& rules, const std::string& name) {
  return {rules.is_expert(name), to_pairs(rules.placements_of(name))};
}

}  // namespace

void bind_placements(nb::module_& module) {
  nb::class_<PlacementRules>(module, "PlacementRules")
      .def(nb::new_([](const std::string& family) { return take(placement_rules_of(family)); }),
           nb::arg("family"))
      .def("placements_of", &placements_of, nb::arg("name"));
  module.def(
      "place",
      [](std::string name, MeshArgument mesh, Pairs placements, bool fsdp_first,
         const std::optional<Own>& own, const Numbers& local, std::int64_t rank) {
        return place({std::move(name), std::move(mesh), std::move(placements), fsdp_first}, own,
                     local, rank);
      },
      nb::arg("name"), nb::arg("mesh"), nb::arg("placements"), nb::arg("fsdp_first"),
      nb::arg("own").none(), nb::arg("local"), nb::arg("rank"));
  module.def("check_agreed", &check_agreed, nb::arg("name"), nb::arg("reports"));
  module.def("copies_back", &copies_back, nb::arg("name"), nb::arg("target"), nb::arg("source"));
  module.def(
      "run_mesh",
      [](std::int64_t world, std::int64_t pp, std::int64_t cp, std::int64_t tp, std::int64_t ep,
         std::int64_t etp, bool experts) {
        const RunMeshSizes run{world, pp, cp, tp, ep, etp};
        return to_tuple(take(experts ? expert_mesh(run) : dense_mesh(run)).sizes());
      },
      nb::arg("world"), nb::arg("pp"), nb::arg("cp"), nb::arg("tp"), nb::arg("ep"), nb::arg("etp"),
      nb::arg("experts"));
}

}  // namespace shardwright::python
