// SPDX-License-Identifier: Apache-2.0
#include "cli/json_output.h"

#include <fmt/format.h>

#include <variant>

#include "cli/rank_map.h"
#include "cli/summary.h"
#include "convert/conversion_output.h"
#include "format/formats.h"
#include "format/targets.h"

namespace shardwright::cli {
namespace {

void write_place(JsonWriter& json, std::string_view file, ByteRange range) {
  json.text("file", file).number("offset", range.offset).number("bytes", range.length);
}

void write_objects(JsonWriter& json, const Catalog& catalog) {
  json.key("objects").open_list();
  for (const StoredObject& object : catalog.objects) {
    json.open_object().text("name", object.name);
    write_place(json, catalog.files[object.file], object.range);
    json.close();
  }
  json.close();
}

struct ValueWriter {
  JsonWriter& json;

  void operator()(std::monostate /*none*/) const { json.null(); }
  void operator()(bool value) const { json.flag(value); }
  void operator()(std::int64_t value) const { json.number(value); }
  void operator()(double value) const { json.real(value); }
  void operator()(const std::string& value) const { json.text(value); }
  void operator()(const std::vector<std::int64_t>& values) const {
    json.open_row();
    for (const std::int64_t value : values) json.number(value);
    json.close();
  }
  void operator()(const std::vector<double>& values) const {
    json.open_row();
    for (const double value : values) json.real(value);
    json.close();
  }
  void operator()(const std::vector<std::string>& values) const {
    json.open_row();
    for (const std::string& value : values) json.text(value);
    json.close();
  }
};

void write_summary(JsonWriter& json, const CatalogSummary& summary) {
  json.key("totals").open_object();
  json.number("tensors", summary.tensors).number("optimizer_tensors", summary.optimizer_tensors);
  json.number("elements", summary.elements).number("bytes", summary.bytes);
  json.number("chunks", summary.chunks).number("chunk_bytes", summary.chunk_bytes);
  json.number("objects", summary.objects);
  json.number("files", summary.files);
  json.key("dtypes").open_object();
  for (const auto& [dtype, share] : summary.dtypes) {
    json.key(torch_name(dtype)).open_object();
    json.number("tensors", share.tensors).number("bytes", share.bytes).close();
  }
  json.close().close();
}

void write_files(JsonWriter& json, const Plan& plan) {
  json.key("files").open_list();
  for (std::size_t i = 0; i < plan.target.files.size(); ++i) {
    json.open_object().text("path", plan.target.files[i]);
    json.number("bytes", plan.file_sizes[i]).close();
  }
  json.close();
}

// The job that the files are laid out for, and how it finds what its tensor ranks hold alike.
void write_job(JsonWriter& json, const ConvertRequest& request) {
  const bool expands = request.tp_replicas == TpReplicas::kExpand;
  json.text("tp_replicas", expands ? "expand" : "collapse");
  if (request.data_ranks) {
    json.number("dp", *request.data_ranks).text("for", expands ? "replicas" : "stock");
  }
}

}  // namespace

void write_dims(JsonWriter& json, std::string_view name, const Dims& dims) {
  json.key(name).open_row();
  for (const std::int64_t extent : dims) json.number(extent);
  json.close();
}

void begin_document(JsonWriter& json, std::string_view command) {
  json.open_object().text("schema", fmt::format("shardwright/{}/1", command));
}

std::string error_json(std::string_view command, const Error& error) {
  JsonWriter json;
  begin_document(json, command);
  json.key("error").open_object();
  json.text("code", code_name(error.code)).text("message", error.message).close();
  json.close();
  return json.take();
}

void write_tensors(JsonWriter& json, const Catalog& catalog,
                   const std::vector<std::size_t>& indices) {
  json.key("tensors").open_list();
  for (const std::size_t index : indices) {
    const StoredTensor& tensor = catalog.tensors[index];
    json.open_object().text("name", tensor.desc.name);
    json.text("dtype", torch_name(tensor.desc.dtype));
    write_dims(json, "shape", tensor.desc.shape);
    json.text("encoding", tensor.encoding == Encoding::kRaw ? "raw" : "torch_archive");
    json.number("replicas", replicas_of(tensor));
    json.key("stored_as").open_list();
    for (const StoredCopy& copy : tensor.copies) json.text(copy.name);
    json.close();
    json.key("chunks").open_list();
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      json.open_object();
      write_dims(json, "origin", chunk.box.origin);
      write_dims(json, "shape", chunk.box.shape);
      write_place(json, catalog.files[chunk.file], chunk.range);
      json.close();
    }
    json.close().close();
  }
  json.close();
}

std::string checkpoint_json(const Checkpoint& checkpoint, const std::vector<std::string>& globs,
                            const PickleWarnings& warnings) {
  JsonWriter json;
  begin_document(json, "inspect");
  json.text("path", checkpoint.location.path);
  json.text("format", checkpoint.location.format);
  json.text("container", shown_container(checkpoint.location.format));
  json.texts("reasons", checkpoint.location.reasons);
  json.key("iteration");
  if (checkpoint.location.iteration) {
    json.number(*checkpoint.location.iteration);
  } else {
    json.null();
  }
  write_summary(json, summarize(checkpoint.catalog));
  json.key("arguments").open_object();
  for (const auto& [name, value] : checkpoint.arguments) {
    json.key(name);
    std::visit(ValueWriter{json}, value);
  }
  json.close();
  write_tensors(json, checkpoint.catalog, matching_tensors(checkpoint.catalog, globs));
  write_objects(json, checkpoint.catalog);
  write_warnings(json, warnings);
  json.close();
  return json.take();
}

std::string file_json(const FileReport& report, const std::vector<std::string>& globs) {
  JsonWriter json;
  begin_document(json, "inspect");
  json.text("path", report.path).text("format", report.kind);
  json.key("reasons").open_list().text(report.reason).close();
  json.number("file_bytes", report.bytes);
  json.key("metadata").open_object();
  for (const auto& [name, value] : report.metadata) json.text(name, value);
  json.close().key("counts").open_object();
  for (const auto& [name, count] : report.counts) json.number(name, count);
  json.close();
  write_summary(json, summarize(report.catalog));
  write_tensors(json, report.catalog, matching_tensors(report.catalog, globs));
  write_objects(json, report.catalog);
  json.key("values").open_list();
  for (const ValueNode& value : report.values) write_tree(json, value);
  json.close();
  write_warnings(json, report.warnings);
  json.close();
  return json.take();
}

std::string plan_json(const PreparedConversion& conversion, const ReplacedOutput& replaced,
                      std::optional<std::uint64_t> free_bytes) {
  const Plan& plan = conversion.plan;
  const PlanCost cost = cost_of(plan);
  JsonWriter json;
  begin_document(json, "plan");
  json.key("source").open_object().text("path", conversion.source.location.path);
  json.text("format", conversion.source.location.format);
  json.text("container", shown_container(conversion.source.location.format));
  json.close();
  json.key("target").open_object().text("path", conversion.request.output);
  json.text("format", traits_of(conversion.request.format).name);
  write_layout(json, conversion.request.parallel);
  if (!conversion.components.empty()) write_rank_map(json, conversion.components);
  if (traits_of(conversion.request.format).is_for_a_job) {
    write_job(json, conversion.request);
  }
  json.close();
  json.text("family", conversion.family);
  json.key("cost").open_object().number("bytes_read", cost.payload_bytes_read);
  json.number("bytes_written", cost.bytes_written).number("source_files", cost.source_files);
  json.number("target_files", cost.target_files);
  json.number("peak_memory_bytes", conversion.peak_memory_bytes);
  json.number("replicas", conversion.replicas.chunks);
  json.number("replica_bytes", conversion.replicas.bytes);
  json.number("master_weight_bytes", conversion.master_weight_bytes);
  if (free_bytes) json.number("free_disk_bytes", *free_bytes);
  json.close();
  json.texts("replaced", replaced.entries).flag("keeps_others", replaced.keeps_others);
  json.texts("notes", conversion.notes);
  json.key("renames").open_list();
  for (const RenamedTensor& rename : conversion.renames) {
    json.open_object().texts("source", rename.source).text("target", rename.target).close();
  }
  json.close();
  write_files(json, plan);
  json.texts("digest_files", guard_paths(conversion));
  write_tensors(json, plan.target, matching_tensors(plan.target, {}));
  write_objects(json, plan.target);
  json.close();
  return json.take();
}

void write_layout(JsonWriter& json, const ParallelConfig& parallel) {
  json.key("parallel").open_object();
  json.number("tp", parallel.tensor).number("pp", parallel.pipeline);
  json.number("vpp", parallel.virtual_pipeline).number("ep", parallel.expert);
  json.number("etp", parallel.expert_tensor);
  if (parallel.encoder_tensor > 0) json.number("encoder_tp", parallel.encoder_tensor);
  json.close();
}

}  // namespace shardwright::cli
