// SPDX-License-Identifier: Apache-2.0
#include "dcp/dcp_metadata.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "codec/stand_in.h"
#include "dcp/dcp_machine.h"
#include "dcp/dcp_references.h"

namespace shardwright {
namespace {

/// Reads a file in windows of 1 MiB, and one of a server at once: there are several passes.
class FileInput final : public pickle::Input {
 public:
  explicit FileInput(const ReadableFile& file) : file_(file) {}
  [[nodiscard]] std::uint64_t size() const override { return file_.size(); }
  [[nodiscard]] Result<std::span<const std::byte>> window(std::uint64_t position,
                                                          std::size_t need) override {
    const std::uint64_t left = file_.size() - position;
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(std::max(need, kWindow), left));
    if (file_.is_remote() && file_.size() <= kMostAtOnce) {
      if (buffer_.empty()) {
        std::vector<std::byte> all(static_cast<std::size_t>(file_.size()));
        SW_TRY(file_.read_at(0, all));
        buffer_ = std::move(all);
      }
      return std::span(buffer_).subspan(static_cast<std::size_t>(position), length);
    }
    if (buffer_.size() < length) buffer_.resize(length);
    const auto bytes = std::span(buffer_).first(length);
    SW_TRY(file_.read_at(position, bytes));
    return bytes;
  }

 private:
  static constexpr std::size_t kWindow = std::size_t{1} << 20;
  static constexpr std::uint64_t kMostAtOnce = std::uint64_t{256} << 20;
  const ReadableFile& file_;
  std::vector<std::byte> buffer_;
};

Result<DcpMetadata> read_once(pickle::Input& input, const DcpMetadataOptions& options,
                              bool may_skip_plans, bool& missed_a_slot) {
  const dcp::References references =
      SW_TRY(dcp::find_references(input, options.limits, may_skip_plans));
  dcp::Machine machine(input, options, references);
  Result<DcpMetadata> found = machine.run();
  missed_a_slot = machine.missed_a_slot() && references.local_plans.has_value();
  const pickle::Audit audit = machine.audit();
  if (found) {
    found->audit = audit;
  } else if (!missed_a_slot && !audit.runs.empty()) {
    Error error = pickle::refuse_code(audit, "");
    error.message += translated(" (and it is not metadata: {})", found.error().message);
    return std::unexpected(std::move(error));
  }
  return found;
}

}  // namespace

Result<DcpMetadata> read_dcp_metadata(const ReadableFile& file, const DcpMetadataOptions& options) {
  FileInput input(file);
  bool missed_a_slot = false;
  Result<DcpMetadata> found = read_once(input, options, !options.all_parts, missed_a_slot);
  if (!found && missed_a_slot) found = read_once(input, options, false, missed_a_slot);
  if (found) return found;
  Error error = found.error();
  // Pickles of protocol 0 are text too.
  SW_TRY(refuse_stand_in(error.code, file, "a pickle of DCP metadata", Contents::kText));
  // What the passes say goes on from the file's name; the tokenizer's errors begin anew, and those
  // of the storage name the file themselves.
  const char first = error.message.empty() ? ':' : error.message.front();
  if (first == '@' || first == ' ' || first == ':') {
    error.message.insert(0, file.name());
  } else if (error.code >= Code::kLimit) {
    return std::unexpected(std::move(error).within(file.name()));
  }
  return std::unexpected(std::move(error));
}

}  // namespace shardwright
