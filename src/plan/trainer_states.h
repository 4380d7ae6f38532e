// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/wrong_states.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Holds the optimizer states of a catalog with any trainer's names against each other: those of
/// torch's state dicts (`app.optim.state.W.exp_avg`), and `optimizer.state.exp_avg.W` of a tensor W
/// of the catalog. Where parameter groups have betas and eps, each parameter with states has two,
/// as Adam and its kin keep them; and what others of an optimizer have of the moments, the step and
/// the master weights, each has. `keeps_two_moments`: the optimizer's own files say that it keeps
/// two of each parameter that it trains and has made a step.
[[nodiscard]] StateFindings find_wrong_trainer_states(const Catalog& catalog,
                                                      bool keeps_two_moments);

}  // namespace shardwright
