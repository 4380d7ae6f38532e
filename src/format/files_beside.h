// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Notes what trainers keep beside the weights of a Hugging Face model and that is not read with
/// them: an adapter that is not merged in, and the optimizer of transformers' Trainer
/// (`optimizer.pt`) or of accelerate (`optimizer.bin`); who asks for its states will be refused.
void tell_files_beside(Checkpoint& checkpoint);

/// Notes the folders of a model that no conversion takes along.
/// REQUIRES: its artifacts have been read.
[[nodiscard]] Status tell_folders_beside(Checkpoint& checkpoint);

/// What tells ModelOpt which of a model's modules it has changed: a folder of a torch_dist
/// iteration, a key of rank files. (modelopt.torch.opt.plugins.megatron)
inline constexpr std::string_view kModelOptState = "modelopt_state";

/// That `where` is left out, which is or has a kModelOptState.
[[nodiscard]] std::string modelopt_note(std::string_view where);

/// Notes what a run of Megatron keeps in an iteration's folder beside the model's files and no
/// conversion takes along: ModelOpt's state, and those of data loaders (`--dataloader-save`).
[[nodiscard]] Status tell_run_beside(Checkpoint& checkpoint);

/// What the folders of models in a save of accelerate's FSDP begin with; a number follows.
inline constexpr std::string_view kAccelerateModel = "pytorch_model_fsdp_";

/// The same of the optimizer that accelerate saves beside such a folder, in `optimizer_N`.
void tell_optimizer_beside(Checkpoint& checkpoint);

}  // namespace shardwright
