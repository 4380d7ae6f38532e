// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwright/error.h"

namespace shardwright::cli {

/// The folder in which a demonstration makes its checkpoints.
class DemoPlace {
 public:
  /// `keep`, which is made where it is missing and stays; or, where that is empty, a new temporary
  /// folder that goes with this object. Error: kPermission, kNotFound, kIo.
  [[nodiscard]] static Result<DemoPlace> make(const std::string& keep);
  ~DemoPlace();
  DemoPlace(DemoPlace&& other) noexcept;
  DemoPlace& operator=(DemoPlace&&) = delete;
  DemoPlace(const DemoPlace&) = delete;
  DemoPlace& operator=(const DemoPlace&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  DemoPlace(std::string path, bool is_temporary)
      : path_(std::move(path)), is_temporary_(is_temporary) {}

  std::string path_;
  bool is_temporary_;
};

/// The model that comes with the program: installed beside it, or in its sources. Error: kNotFound.
[[nodiscard]] Result<std::string> find_demo_checkpoint();

}  // namespace shardwright::cli
