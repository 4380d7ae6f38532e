// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_run_fixture.h"

#include <algorithm>
#include <map>

namespace shardwright {
namespace {

std::string padded(std::int64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(digits.size() < width ? width - digits.size() : 0, '0') + digits;
}

std::string name_of(const SimulatedRun& run, std::int64_t t, std::int64_t p, std::int64_t e) {
  std::string name = "mp_rank_" + padded(t, 2);
  if (run.pp > 1) name += "_" + padded(p, 3);
  if (run.ep > 1) name += "_" + padded(e, 3);
  return name;
}

std::string layer(std::int64_t index, const std::string& rest) {
  return "decoder.layers." + std::to_string(index) + "." + rest;
}

}  // namespace

RankFolder rank_folder(std::string name, std::string file, std::uint64_t bytes) {
  return {std::move(name), {{std::move(file), bytes}}};
}

RankSample rank_sample(const std::string& name, const SimulatedRun& run, std::int64_t stage) {
  constexpr std::int64_t kExpertsOfARank = 2;
  RankSample sample;
  sample.folder = name;
  sample.iteration = 10;
  if (run.has_arguments) {
    sample.run.is_present = true;
    sample.run.sizes = {run.tp, run.pp, std::nullopt, run.ep, run.etp, std::nullopt};
    if (run.has_experts) sample.run.experts = run.ep * kExpertsOfARank;
  }
  for (std::int64_t chunk = 0; chunk < run.vpp; ++chunk) {
    auto& tensors = sample.models.emplace_back();
    if (stage == 0 && chunk == 0) {
      tensors.push_back({"embedding.word_embeddings.weight", {128 / run.tp, 16}});
    }
    for (std::int64_t i = 0; i < run.layers_per_stage; ++i) {
      tensors.push_back({layer(i, "self_attention.linear_proj.weight"), {16, 16}});
      if (!run.has_experts) continue;
      tensors.push_back({layer(i, "mlp.router.weight"), {run.ep * kExpertsOfARank, 16}});
      for (std::int64_t expert = 0; expert < kExpertsOfARank; ++expert) {
        tensors.push_back(
            {layer(i, "mlp.experts.linear_fc1.weight" + std::to_string(expert)), {32, 16}});
      }
    }
    if (stage == run.pp - 1 && chunk == run.vpp - 1) {
      tensors.push_back({"decoder.final_layernorm.weight", {16}});
    }
  }
  return sample;
}

SimulatedFolder simulate(const SimulatedRun& run, SimulatedWriter writer) {
  SimulatedFolder folder;
  std::map<std::string, std::int64_t> stages;
  std::set<std::pair<std::int64_t, std::int64_t>> dense;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> experts;
  const std::int64_t width = run.tp * run.ep * run.etp;  // a stage's ranks: both grids fit
  for (std::int64_t rank = 0; rank < width * run.pp; ++rank) {
    const std::int64_t p = rank / width;
    const std::int64_t r = rank % width;
    const std::int64_t t = r % run.tp;
    const std::int64_t dense_replica = r / run.tp;
    const std::int64_t etp = r % run.etp;
    const std::int64_t e = r / run.etp % run.ep;
    const std::int64_t expert_replica = r / run.etp / run.ep;
    const std::string name = name_of(run, t, p, e);
    const bool writes_today = dense_replica == 0 || expert_replica == 0;
    if (writes_today) folder.first_writers.insert(name);
    const bool writes = writer == SimulatedWriter::kEveryRank ||
                        (writer == SimulatedWriter::kToday && writes_today) ||
                        (writer == SimulatedWriter::kBeforeCore19 && expert_replica == 0);
    if (!writes) continue;
    dense.emplace(p, t);
    experts.emplace(p, e, etp);
    stages[name] = p;
  }
  for (const auto& [name, stage] : stages) {
    folder.names.insert(name);
    folder.evidence.folders.push_back(rank_folder(name));
    folder.evidence.samples.push_back(rank_sample(name, run, stage));
  }
  for (std::int64_t t = 0; t < run.tp; ++t) {
    if (!dense.contains({0, t})) folder.lost_tensor_ranks.insert(t);
  }
  folder.is_complete = static_cast<std::int64_t>(dense.size()) == run.pp * run.tp &&
                       static_cast<std::int64_t>(experts.size()) == run.pp * run.ep * run.etp;
  folder.evidence.path = "ckpt";
  return folder;
}

void keep_samples(LegacyEvidence& evidence, const std::vector<std::string>& folders) {
  std::erase_if(evidence.samples, [&](const RankSample& sample) {
    return std::ranges::find(folders, sample.folder) == folders.end();
  });
}

}  // namespace shardwright
