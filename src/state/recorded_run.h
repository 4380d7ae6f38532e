// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "layout/legacy_evidence.h"
#include "layout/optimizer_groups.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The first of these arguments that is a whole number.
[[nodiscard]] std::optional<std::int64_t> number_of(const Arguments& arguments,
                                                    std::initializer_list<std::string_view> names);

/// The sizes in a run's arguments, in Megatron's spellings and in those of AIAK's tools.
[[nodiscard]] RecordedRun recorded_run(const Arguments& arguments);

/// What runs of Megatron-Core 0.9 to 0.11 call the number of pipeline stages that their encoders
/// have in front of the decoder's.
inline constexpr const char* kEncoderStages = "encoder_pipeline_model_parallel_size";

/// What names a schedule that folds the stages (DualPipeV): MindSpeed's and FlagScale's.
inline constexpr std::string_view kScheduleMethod = "schedules_method";
inline constexpr std::string_view kDualPipeV = "dualpipev";
inline constexpr std::string_view kUsesDualPipeV = "use_dualpipev";

/// What MindSpeed calls sharing whole experts out among tensor ranks too.
inline constexpr std::string_view kExtendsExperts = "moe_tp_extend_ep";

/// What Megatron calls keeping all of a rank's experts in one parameter.
inline constexpr std::string_view kGroupedExpertWeight = "moe_single_grouped_weight";
inline constexpr std::string_view kGroupedExpertBias = "moe_single_grouped_bias";

/// What MindSpeed calls the layers that have a number among `num_layers` and no weights.
inline constexpr std::string_view kNoopLayers = "noop_layers";
[[nodiscard]] std::set<std::int64_t> noop_layers_of(const Arguments& arguments);

/// What runs call the tensor parallel size of their encoders, where it may be another one.
[[nodiscard]] std::span<const std::string_view> encoder_size_names();

/// Where a rank of a run cuts the buckets of its distributed optimizer, if it does, given the
/// elements of its parameters. Source: resolve_ddp_bucket_size in megatron/training,
/// DistributedDataParallel.
[[nodiscard]] std::optional<std::int64_t> recorded_bucket_size(const Arguments& arguments,
                                                               std::int64_t pipeline_rank,
                                                               std::int64_t elements);

/// What the run names as its optimizer. Source: get_megatron_optimizer in
/// megatron/core/optimizer/__init__.py, where all but Adam and SGD are for linears.
[[nodiscard]] NamedOptimizer named_optimizer(const Arguments& arguments);

/// The tools that leave arguments of their own: `AIAK's converter`; empty for plain Megatron.
[[nodiscard]] std::string_view writer_of(const Arguments& arguments);

}  // namespace shardwright
