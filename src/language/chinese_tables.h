// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace shardwright {

struct Sentence {
  std::string_view english;
  std::string_view chinese;
};

// One table for the sentences of each layer, or of a part of it, in chinese_*.cc. A sentence that
// several layers say is in the table of the first. tests/check_texts.py compares them with the
// sources.
[[nodiscard]] std::span<const Sentence> chinese_of_adapters();
[[nodiscard]] std::span<const Sentence> chinese_of_arguments();
[[nodiscard]] std::span<const Sentence> chinese_of_base();
[[nodiscard]] std::span<const Sentence> chinese_of_canonical();
[[nodiscard]] std::span<const Sentence> chinese_of_cli();
[[nodiscard]] std::span<const Sentence> chinese_of_comm();
[[nodiscard]] std::span<const Sentence> chinese_of_compare();
[[nodiscard]] std::span<const Sentence> chinese_of_components();
[[nodiscard]] std::span<const Sentence> chinese_of_convert();
[[nodiscard]] std::span<const Sentence> chinese_of_dcp();
[[nodiscard]] std::span<const Sentence> chinese_of_dcp_metadata();
[[nodiscard]] std::span<const Sentence> chinese_of_deepspeed();
[[nodiscard]] std::span<const Sentence> chinese_of_diagnose();
[[nodiscard]] std::span<const Sentence> chinese_of_format();
[[nodiscard]] std::span<const Sentence> chinese_of_fsdp();
[[nodiscard]] std::span<const Sentence> chinese_of_io();
[[nodiscard]] std::span<const Sentence> chinese_of_layout();
[[nodiscard]] std::span<const Sentence> chinese_of_legacy();
[[nodiscard]] std::span<const Sentence> chinese_of_mapping();
[[nodiscard]] std::span<const Sentence> chinese_of_merge();
[[nodiscard]] std::span<const Sentence> chinese_of_mimo();
[[nodiscard]] std::span<const Sentence> chinese_of_model();
[[nodiscard]] std::span<const Sentence> chinese_of_pickle();
[[nodiscard]] std::span<const Sentence> chinese_of_plan();
[[nodiscard]] std::span<const Sentence> chinese_of_publish();
[[nodiscard]] std::span<const Sentence> chinese_of_quantisation();
[[nodiscard]] std::span<const Sentence> chinese_of_remote();
[[nodiscard]] std::span<const Sentence> chinese_of_safetensors();
[[nodiscard]] std::span<const Sentence> chinese_of_state();
[[nodiscard]] std::span<const Sentence> chinese_of_system();
[[nodiscard]] std::span<const Sentence> chinese_of_torch_archives();
[[nodiscard]] std::span<const Sentence> chinese_of_verify();

}  // namespace shardwright
