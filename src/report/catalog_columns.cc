// SPDX-License-Identifier: Apache-2.0
#include "report/catalog_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>

#include "base/text.h"
#include "layout/rank_folder.h"
#include "layout/rank_order.h"
#include "report/tensor_place.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

// Values that many tensors have, each with a number.
template <class T>
class Shared {
 public:
  // nullopt where it is new and there is no room for it.
  std::optional<std::size_t> number(const T& value, bool has_room = true) {
    const auto found = numbers_.find(value);
    if (found != numbers_.end()) return found->second;
    if (!has_room) return std::nullopt;
    numbers_.emplace(value, values_.size());
    values_.push_back(value);
    return values_.size() - 1;
  }
  [[nodiscard]] const std::vector<T>& values() const { return values_; }

 private:
  std::map<T, std::size_t> numbers_;
  std::vector<T> values_;
};

using Numbers = std::vector<std::int64_t>;

// Origins and shapes, one chunk behind another; nothing where each chunk is the whole tensor.
Numbers boxes_of(const StoredTensor& tensor) {
  const Box whole = Box::whole(tensor.desc.shape);
  Numbers numbers;
  bool all_whole = true;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Box box = tensor.chunks.box(i);
    all_whole = all_whole && box == whole;
    numbers.insert(numbers.end(), box.origin.begin(), box.origin.end());
    numbers.insert(numbers.end(), box.shape.begin(), box.shape.end());
  }
  return all_whole ? Numbers{} : numbers;
}

// The columns while they grow.
class Columns {
 public:
  Columns(const Catalog& catalog, const CatalogColumns& limits)
      : catalog_(catalog), limits_(limits), holders_(holders_of(catalog.files)) {}

  void add(const StoredTensor& tensor) {
    const TensorPlace place = place_of_tensor(tensor.desc.name);
    names_.push_back(tensor.desc.name);
    dtype_.push_back(*dtypes_.number(std::string(torch_name(tensor.desc.dtype))));
    shape_.push_back(*shapes_.number(Numbers(tensor.desc.shape.begin(), tensor.desc.shape.end())));
    role_.push_back(static_cast<int>(place.role));
    component_.push_back(*components_.number(place.component));
    layer_.push_back(place.layer_number());
    kind_.push_back(*kinds_.number(place.kind));
    add_chunks(tensor);
    const Status covered = check_coverage(tensor);
    if (!covered) defects_.push_back({names_.size() - 1, covered.error().message});
  }

  Json take() {
    Json json;
    json["files"] = catalog_.files;
    json["holders"] = holders_.labels;
    json["dtypes"] = dtypes_.values();
    Json sizes = Json::array();
    for (const std::string& name : dtypes_.values()) {
      sizes.push_back(bytes_of(*dtype_from_torch(name)));
    }
    json["dtype_bytes"] = std::move(sizes);
    json["shapes"] = shapes_.values();
    json["boxes"] = boxes_.values();
    json["held"] = held_.values();
    json["components"] = components_.values();
    json["kinds"] = kinds_.values();
    json["names"] = name_column(names_);
    json["dtype"] = dtype_;
    json["shape"] = shape_;
    json["box"] = box_;
    json["holder"] = holder_;
    json["role"] = role_;
    json["component"] = component_;
    json["layer"] = layer_;
    json["kind"] = kind_;
    json["defects"] = Json::array();
    for (const auto& [tensor, message] : defects_) json["defects"].push_back({tensor, message});
    json["without_boxes"] = without_boxes_;
    std::uint64_t bytes = 0;
    for (const StoredObject& object : catalog_.objects) bytes += object.range.length;
    json["objects"] = {{"count", catalog_.objects.size()}, {"bytes", bytes}};
    return json;
  }

 private:
  void add_chunks(const StoredTensor& tensor) {
    Numbers holders;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      holders.push_back(static_cast<std::int64_t>(holders_.of_file[tensor.chunks.file(i)]));
    }
    const Numbers boxes = boxes_of(tensor);
    const bool has_room = kept_ + boxes.size() + holders.size() <= limits_.most_chunk_numbers;
    const std::size_t before = boxes_.values().size() + held_.values().size();
    const auto box = boxes_.number(boxes, has_room);
    const auto holder = held_.number(holders, has_room);
    if (!box || !holder) {
      ++without_boxes_;
      box_.push_back(-1);
      holder_.push_back(-1);
      return;
    }
    if (boxes_.values().size() + held_.values().size() > before) {
      kept_ += boxes.size() + holders.size();
    }
    box_.push_back(static_cast<std::int64_t>(*box));
    holder_.push_back(static_cast<std::int64_t>(*holder));
  }

  const Catalog& catalog_;
  CatalogColumns limits_;
  Holders holders_;
  std::vector<std::string> names_;
  Shared<std::string> dtypes_, components_, kinds_;
  Shared<Numbers> shapes_, boxes_, held_;
  std::vector<std::size_t> dtype_, shape_, component_, kind_;
  std::vector<std::int64_t> box_, holder_, layer_;
  std::vector<int> role_;
  std::vector<std::pair<std::size_t, std::string>> defects_;
  std::size_t kept_ = 0;
  std::size_t without_boxes_ = 0;
};

}  // namespace

std::vector<std::size_t> shown_order(const Catalog& catalog) {
  std::vector<std::size_t> order(catalog.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return natural_less(catalog.tensors[a].desc.name, catalog.tensors[b].desc.name);
  });
  return order;
}

Json catalog_columns(const Catalog& catalog, const std::vector<std::size_t>& order,
                     const CatalogColumns& limits) {
  Columns columns(catalog, limits);
  for (const std::size_t index : order) columns.add(catalog.tensors[index]);
  return columns.take();
}

Json name_column(const std::vector<std::string>& names) {
  Json shared = Json::array();
  Json rest = Json::array();
  std::string_view before;
  for (const std::string& name : names) {
    std::size_t same = 0;
    // Beyond ASCII nothing is shared: a character is never cut, and the page counts UTF-16.
    while (same < std::min(before.size(), name.size()) && before[same] == name[same] &&
           static_cast<unsigned char>(name[same]) < 0x80) {
      ++same;
    }
    shared.push_back(same);
    rest.push_back(name.substr(same));
    before = name;
  }
  return {{"shared", std::move(shared)}, {"rest", std::move(rest)}};
}

Holders holders_of(const std::vector<std::string>& files) {
  Shared<std::string> labels;
  Holders holders;
  for (const std::string& file : files) {
    std::string label = file;
    const std::string_view folder = std::string_view(file).substr(0, file.find('/'));
    if (const auto rank = rank_of_file(file)) {
      label = fmt::format("rank {}", *rank);
    } else if (parse_rank_folder(folder)) {
      label = folder;
    }
    holders.of_file.push_back(*labels.number(label));
  }
  holders.labels = labels.values();
  return holders;
}

}  // namespace shardwright
