// SPDX-License-Identifier: Apache-2.0
#include "format/bucket_source.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/fail.h"
#include "dcp/guarded_storage.h"
#include "format/rank_modules.h"
#include "layout/bucket_name.h"
#include "layout/layer_name.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_shards.h"
#include "layout/module_order.h"
#include "layout/optimizer_buckets.h"
#include "layout/pipeline_split.h"
#include "layout/placement.h"
#include "layout/shard_contents.h"
#include "layout/state_name.h"
#include "plan/canonical.h"
#include "state/object_archive.h"
#include "state/param_state.h"
#include "state/recorded_run.h"
#include "state/run_split.h"
#include "tensor/chunk_part.h"
#include "tensor/flat_chunks.h"

namespace shardwright {
namespace {

constexpr std::string_view kParamState = "param_state/";
constexpr std::size_t kKinds = kStateKinds.size();

template <class... Args>
std::unexpected<Error> refuse_bucket(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::kOptimizerUnsupported, "optimizer: {}; convert without it (--optimizer drop)",
              translated(format, std::forward<Args>(args)...));
}

// A buffer as it is stored: its buckets, or all of them as one row.
struct StoredBuffer {
  DType dtype = DType::kBF16;
  DType masters = DType::kF32;  // int16 where they are what the weights lack (a MasterForm)
  std::map<std::int64_t, std::array<const StoredTensor*, kKinds>> buckets;
  std::optional<ParamStateBuffer> coalesced;
  std::uint32_t file = 0;  // of the coalesced one
  bool is_used = false;
};

// Part of the optimizer, rank in its group, number of the buffer.
using BufferKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

class StoredBuffers {
 public:
  static Result<StoredBuffers> read(const Catalog& catalog, SourceFiles& files) {
    StoredBuffers buffers;
    for (const StoredTensor& tensor : catalog.tensors) {
      const auto domain = split_domain_name(tensor.desc.name);
      if (domain) SW_TRY(buffers.add(tensor, *domain));
    }
    for (const StoredObject& object : catalog.objects) {
      const auto domain = split_domain_name(object.name);
      if (!domain || !domain->rest.starts_with(kParamState)) continue;
      Status status = buffers.add(object, *domain, files);
      if (!status) return std::unexpected(std::move(status).error().within(object.name));
    }
    return buffers;
  }

  [[nodiscard]] StoredBuffer* find(const BufferKey& key) {
    const auto found = buffers_.find(key);
    return found == buffers_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool is_chained() const { return is_chained_; }
  // How many of kStateKinds there are: Lion has no second moment anywhere.
  [[nodiscard]] std::size_t kinds() const { return kinds_; }
  [[nodiscard]] Status check_used() const {
    for (const auto& [key, buffer] : buffers_) {
      if (buffer.is_used) continue;
      const auto& [part, group, number] = key;
      return refuse_bucket("found buffer {} of rank {}{}, expected none of a run of these sizes",
                           number, group, is_chained_ ? translated(" in part {}", part) : "");
    }
    return {};
  }

 private:
  Status add(const StoredTensor& tensor, const DomainName& domain) {
    const auto name = split_bucket_name(domain.rest);
    const auto kind = std::ranges::find(kStateKinds, name ? name->state : "");
    const bool is_known = name && kind != kStateKinds.end();
    const bool is_remainder = is_known && kind == kStateKinds.begin() &&
                              tensor.desc.dtype == DType::kI16 && name->dtype == DType::kBF16;
    const bool has_type = tensor.desc.dtype == DType::kF32 || is_remainder;
    if (!is_known || !has_type || tensor.desc.shape.size() != 1) {
      return refuse_bucket("tensor {}: found {} {}, expected a bucket of Adam's states in float32",
                           tensor.desc.name, torch_name(tensor.desc.dtype),
                           to_string(tensor.desc.shape));
    }
    is_chained_ |= domain.is_chained;
    StoredBuffer& buffer = buffers_[{domain.part, domain.group, name->buffer}];
    buffer.dtype = name->dtype;
    const auto number = static_cast<std::size_t>(kind - kStateKinds.begin());
    if (number == 0) SW_TRY(take_type_of_masters(tensor.desc, buffer));
    buffer.buckets[name->bucket][number] = &tensor;
    kinds_ = std::max(kinds_, number + 1);
    return {};
  }

  // One in all buckets of a buffer.
  static Status take_type_of_masters(const TensorDesc& masters, StoredBuffer& buffer) {
    const bool is_first = std::ranges::none_of(
        buffer.buckets, [](const auto& bucket) { return bucket.second[0] != nullptr; });
    if (!is_first && buffer.masters != masters.dtype) {
      return refuse_bucket("tensor {}: found {}, expected {} as in the other buckets", masters.name,
                           torch_name(masters.dtype), torch_name(buffer.masters));
    }
    buffer.masters = masters.dtype;
    return {};
  }

  Status add(const StoredObject& object, const DomainName& domain, SourceFiles& files) {
    const TorchArchive archive = SW_TRY(open_object(object, files));
    pickle::Value root = archive.root();
    if (root.is(pickle::Kind::kList) && root.size() == 1) root = root[0];
    const auto locate = [&](pickle::Value tensor) { return archive.locate(tensor); };
    const std::vector<ParamStateBuffer> stored = SW_TRY(read_param_state(root, locate));
    is_chained_ |= domain.is_chained;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      for (const StatePlace& state : stored[i].places) {
        expect_record(files, object.file, state.place, object.name);
      }
      StoredBuffer& buffer = buffers_[{domain.part, domain.group, static_cast<std::int64_t>(i)}];
      buffer.dtype = stored[i].dtype;
      buffer.coalesced = stored[i];
      kinds_ = std::max(kinds_, stored[i].places.size());
      buffer.file = object.file;
    }
    return {};
  }

  std::map<BufferKey, StoredBuffer> buffers_;
  std::size_t kinds_ = kKinds - 1;
  bool is_chained_ = false;
};

// Which of kStateKinds, and how it is stored.
struct KindOfState {
  std::size_t number = 0;
  DType dtype = DType::kF32;
};

// A parameter of a stage's ranks, and where it is in the model.
struct RankShard {
  LegacyShard shard;
  BufferedParameter buffered;
};

class Unbucketing {
 public:
  Unbucketing(const Checkpoint& source, Catalog& catalog, StoredBuffers buffers)
      : source_(source), catalog_(catalog), buffers_(std::move(buffers)) {}

  Status run() {
    SW_TRY(read_layout());
    for (std::int64_t p = 0; p < config_.pipeline; ++p) {
      stages_ = stage_contents(config_, splits_, p, has_mtp_, is_tied_);
      for (std::int64_t t = 0; t < config_.tensor; ++t) {
        SW_TRY(add_rank({0, t + config_.tensor * p, 0}, {t, p, 0, t % config_.expert_tensor}));
      }
      const std::int64_t experts = buffers_.is_chained() ? config_.expert : 0;
      for (std::int64_t e = 0; e < experts; ++e) {
        for (std::int64_t t = 0; t < config_.expert_tensor; ++t) {
          const std::int64_t group = t + config_.expert_tensor * (e + config_.expert * p);
          SW_TRY(add_rank({1, group, 0}, {t, p, e, t}));
        }
      }
    }
    SW_TRY(buffers_.check_used());
    replace_buckets();
    return {};
  }

 private:
  Status read_layout() {
    const AxisSizes sizes = recorded_run(source_.arguments).sizes;
    if (!sizes.tensor || !sizes.pipeline) {
      return refuse_bucket("the run's arguments lack its parallel sizes");
    }
    config_ = {*sizes.tensor, *sizes.pipeline, sizes.virtual_pipeline.value_or(1),
               sizes.expert.value_or(1), sizes.expert_tensor.value_or(*sizes.tensor)};
    if (!is_believable_grid(config_) || config_.virtual_pipeline < 1) {
      return refuse_bucket("found parallel sizes in the run's arguments that no run can have had");
    }
    std::set<std::string, std::less<>> names;
    for (const StoredTensor& tensor : catalog_.tensors) names.insert(tensor.desc.name);
    for (const CanonicalTensor& tensor : canonical_tensors(catalog_)) {
      const std::string_view named = name_with_states(tensor.desc.name);
      const bool is_twice = named != tensor.desc.name && names.contains(named);
      if (is_twice || !is_parameter(tensor.desc.name, tensor.desc.dtype)) continue;
      has_mtp_ |= is_prediction_layer(tensor.desc.name);
      is_tied_ &= !tensor.desc.name.ends_with("output_layer.weight");
      descs_.push_back(tensor.desc);
      tensors_.push_back(tensor);
    }
    if (config_.expert > 1 && !buffers_.is_chained()) {
      return refuse_bucket(
          "found one optimizer for all parameters, expected experts' apart with EP {}",
          config_.expert);
    }
    SW_TRY(read_split());
    const Placement placement = SW_TRY(Placement::make(descs_, tensor_sizes()));
    for (const TensorDesc& desc : descs_) SW_TRY(placement.place(desc));  // all of them divide
    modules_ =
        rank_modules(descs_, source_.arguments,
                     !uses_transformer_engine(source_.arguments, source_.versioned_names, catalog_),
                     source_.versioned_names);
    return {};
  }

  // Those that cut tensors, of one stage.
  [[nodiscard]] ParallelConfig tensor_sizes() const {
    ParallelConfig sizes = config_;
    sizes.pipeline = sizes.virtual_pipeline = 1;
    return sizes;
  }

  // Which layers each stage had, without which nothing says what lies where in its buckets.
  Status read_split() {
    const MainLayers layers = main_layers(descs_);
    const auto split_of = [&](std::int64_t count) {
      return split_of_run(source_.arguments, count, config_);
    };
    auto split = split_of(layers.decoder > 0 ? layers.decoder : layers.encoder);
    if (!split) return refuse_bucket("{}", split.error().message);
    splits_ = StackSplits::of_one(*split);
    if (layers.decoder > 0 && layers.encoder > 0) {
      split = split_of(layers.encoder);
      if (!split) return refuse_bucket("{}", split.error().message);
      splits_.encoder = *std::move(split);
    }
    splits_.prediction_chunk = prediction_chunk_of_run(source_.arguments, config_);
    return {};
  }

  // What a rank trains of one part of the optimizer, in its modules' order.
  [[nodiscard]] Result<std::vector<RankShard>> shards_of(std::int64_t part) const {
    std::vector<RankShard> result;
    for (std::size_t v = 0; v < stages_.size(); ++v) {
      std::vector<LegacyShard> shards = legacy_shards(descs_, config_, stages_[v], modules_);
      if (buffers_.is_chained()) {
        std::erase_if(shards, [&](const LegacyShard& shard) {
          return is_expert_tensor(shard.desc.name) != (part == 1);
        });
      }
      std::vector<std::string> names;
      for (const LegacyShard& shard : shards) names.push_back(shard.desc.name);
      SW_TRY(check_module_order(names));
      for (const std::size_t i : in_module_order(names)) {
        const std::int64_t elements = SW_TRY(element_count(shards[i].desc.shape));
        const DType dtype = shards[i].desc.dtype;
        const bool is_shared = is_shared_parameter(names[i], config_.pipeline, is_tied_, has_mtp_);
        result.push_back({std::move(shards[i]), {names[i], elements, is_shared, v, dtype}});
      }
    }
    return result;
  }

  Status add_rank(BufferKey key, const LegacyRank& rank) {
    const std::vector<RankShard> shards = SW_TRY(shards_of(std::get<0>(key)));
    std::vector<BufferedParameter> all;
    for (const RankShard& shard : shards) all.push_back(shard.buffered);
    const auto buffers = buffers_of(all);
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      std::get<2>(key) = static_cast<std::int64_t>(b);
      StoredBuffer* stored = buffers_.find(key);
      const BufferedParameter& first = all[buffers[b].front()];
      if (stored == nullptr || stored->dtype != first.dtype) {
        return refuse_bucket("found {} buffer {} of rank {}, expected one for {} of {}",
                             stored == nullptr ? std::string_view("no") : torch_name(stored->dtype),
                             b, std::get<1>(key), torch_name(first.dtype), first.name);
      }
      stored->is_used = true;
      std::vector<BufferedParameter> inside;
      for (const std::size_t i : buffers[b]) inside.push_back(all[i]);
      std::array<std::vector<FlatPiece>, kKinds> pieces;
      const auto first_of = SW_TRY(locate(*stored, inside, rank, pieces));
      for (std::size_t kind = 0; kind < buffers_.kinds(); ++kind) {
        for (std::size_t i = 0; i < inside.size(); ++i) {
          const DType dtype = kind == 0 ? stored->masters : DType::kF32;
          SW_TRY(add_shard({kind, dtype}, shards[buffers[b][i]].shard, rank, first_of[i],
                           pieces[kind]));
        }
      }
    }
    return {};
  }

  // The first element of each parameter, buckets standing one behind the other; and which elements
  // lie where.
  Result<std::vector<std::int64_t>> locate(
      const StoredBuffer& stored, const std::vector<BufferedParameter>& inside,
      const LegacyRank& rank, std::array<std::vector<FlatPiece>, kKinds>& pieces) const {
    const std::int64_t elements = SW_TRY(element_sum(inside));
    if (stored.coalesced) {
      if (stored.coalesced->places.size() != buffers_.kinds()) {
        return refuse_bucket("found a buffer of {} states, expected {} as in the others",
                             stored.coalesced->places.size(), buffers_.kinds());
      }
      for (std::size_t kind = 0; kind < buffers_.kinds(); ++kind) {
        const LocatedTensor& place = stored.coalesced->places[kind].place;
        pieces[kind] = {{0, stored.coalesced->elements, stored.file, place.range.offset}};
      }
      return first_coalesced_elements(
          inside, stored.coalesced->elements,
          recorded_bucket_size(source_.arguments, rank.pipeline, elements));
    }
    const std::size_t kinds = buffers_.kinds();
    std::vector<std::int64_t> sizes;
    std::int64_t begin = 0;
    for (const auto& [bucket, tensors] : stored.buckets) {
      if (bucket != static_cast<std::int64_t>(sizes.size())) {
        return refuse_bucket("found bucket {} behind {}, expected all from 0 on", bucket,
                             sizes.size());
      }
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        SW_TRY(append_pieces(tensors[kind], kind, begin, pieces[kind]));
      }
      sizes.push_back(tensors[0]->desc.shape[0]);
      for (const StoredTensor* tensor : std::span(tensors).first(kinds)) {
        if (tensor->desc.shape[0] == sizes.back()) continue;
        return refuse_bucket("tensor {}: found {} elements, expected {} as of its param",
                             tensor->desc.name, tensor->desc.shape[0], sizes.back());
      }
      begin += sizes.back();
    }
    return first_elements(inside, sizes);
  }

  static Status append_pieces(const StoredTensor* tensor, std::size_t kind, std::int64_t begin,
                              std::vector<FlatPiece>& pieces) {
    if (tensor == nullptr) {
      return refuse_bucket("found a bucket without its {}, expected {}, {} and {}",
                           kStateKinds[kind], kStateKinds[0], kStateKinds[1], kStateKinds[2]);
    }
    SW_TRY(check_coverage(*tensor));
    const std::size_t before = pieces.size();
    for (std::size_t i = 0; i < tensor->chunks.size(); ++i) {
      const Chunk chunk = tensor->chunks[i];
      if (!chunk.strides.empty() && chunk.strides[0] != 1) {
        return refuse_bucket("tensor {}: found it stored with strides, expected one row",
                             tensor->desc.name);
      }
      pieces.push_back(
          {begin + chunk.box.origin[0], begin + chunk.box.end(0), chunk.file, chunk.range.offset});
    }
    std::sort(pieces.begin() + static_cast<std::ptrdiff_t>(before), pieces.end(),
              [](const FlatPiece& a, const FlatPiece& b) { return a.from < b.from; });
    return {};
  }

  // A rank's tensor is its runs one behind the other, each row-major.
  Status add_shard(const KindOfState& kind, const LegacyShard& shard, const LegacyRank& rank,
                   std::int64_t first, const std::vector<FlatPiece>& pieces) {
    const auto element = static_cast<std::uint64_t>(bytes_of(kind.dtype));
    for (const ShardRun& run : shard.runs) {
      const CanonicalTensor& canonical = tensors_[run.canonical];
      Box box = box_of(run, rank);
      if (canonical.layer >= 0) box = lifted(box, canonical.layer);
      const std::int64_t elements = box.volume();
      ChunkList chunks(box.axes());
      auto piece = std::ranges::partition_point(
          pieces, [&](const FlatPiece& each) { return each.to <= first; });
      for (; piece != pieces.end() && piece->from < first + elements; ++piece) {
        const std::int64_t from = std::max(piece->from, first);
        const std::int64_t to = std::min(piece->to, first + elements);
        const auto skipped = static_cast<std::uint64_t>(from - piece->from) * element;
        append_flat_piece(box, {from - first, to - first, piece->file, piece->offset + skipped},
                          static_cast<int>(element), chunks);
      }
      SW_TRY(add_chunks(kind, canonical.stored, box, chunks));
      first += elements;
    }
    return {};
  }

  // What other ranks hold too is a replica where it is cut alike, and else left alone.
  Status add_chunks(const KindOfState& kind, std::uint32_t stored, const Box& box,
                    const ChunkList& chunks) {
    const TensorDesc& weight = catalog_.tensors[stored].desc;
    auto [state, is_new] = states_.try_emplace({stored, kind.number});
    if (is_new) {
      state->second = {
          {join_state_name(kStateKinds[kind.number], weight.name), kind.dtype, weight.shape},
          ChunkList(weight.shape.size()),
          Encoding::kRaw};
    }
    if (state->second.desc.dtype != kind.dtype) {
      return refuse_bucket(
          "tensor {}: found {} in the buckets of one rank, expected {} as of the "
          "others",
          state->second.desc.name, torch_name(kind.dtype), torch_name(state->second.desc.dtype));
    }
    ChunkList& all = state->second.chunks;
    const std::vector<std::int64_t> corner(box.origin.begin(), box.origin.end());
    const auto [known, is_first] = places_.try_emplace({stored, kind.number, corner}, all.size());
    bool is_alike = is_first || known->second + chunks.size() <= all.size();
    for (std::size_t i = 0; !is_first && is_alike && i < chunks.size(); ++i) {
      is_alike = all.box(known->second + i) == chunks.box(i);
    }
    for (std::size_t i = 0; is_alike && i < chunks.size(); ++i) all.push_back(chunks[i]);
    return {};
  }

  // States stand where their buckets stood: behind the model.
  void replace_buckets() {
    std::erase_if(catalog_.tensors, [](const StoredTensor& tensor) {
      return split_domain_name(tensor.desc.name).has_value();
    });
    std::erase_if(catalog_.objects, [](const StoredObject& object) {
      return split_domain_name(object.name).has_value();
    });
    for (auto& [key, state] : states_) catalog_.tensors.push_back(std::move(state));
  }

  const Checkpoint& source_;
  Catalog& catalog_;
  StoredBuffers buffers_;
  ParallelConfig config_;
  StackSplits splits_;
  std::vector<CanonicalTensor> tensors_;  // the model's parameters
  std::vector<TensorDesc> descs_;         // of them
  LegacyModules modules_;
  std::vector<StageContents> stages_;  // of the pipeline rank at hand
  bool has_mtp_ = false;
  bool is_tied_ = true;
  std::map<std::pair<std::uint32_t, std::size_t>, StoredTensor> states_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::vector<std::int64_t>>, std::size_t> places_;
};

}  // namespace

bool has_buckets(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors,
                             [](const StoredTensor& tensor) {
                               return split_domain_name(tensor.desc.name).has_value();
                             }) ||
         std::ranges::any_of(catalog.objects, [](const StoredObject& object) {
           const auto domain = split_domain_name(object.name);
           return domain && domain->rest.starts_with(kParamState);
         });
}

Status undo_buckets(const Checkpoint& source, Catalog& catalog) {
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!split_state_name(tensor.desc.name)) continue;
    return refuse_bucket(
        "found {} beside flat buffers, expected all states in these: nothing tells which "
        "parameters they hold where a second optimizer (Muon's, layer by layer) has the others; "
        "save the run with --dist-ckpt-optim-fully-reshardable, whose states have names",
        tensor.desc.name);
  }
  StoredBuffers buffers = SW_TRY(StoredBuffers::read(catalog, *source.files));
  return Unbucketing(source, catalog, std::move(buffers)).run();
}

}  // namespace shardwright
