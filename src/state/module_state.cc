// SPDX-License-Identifier: Apache-2.0
#include "state/module_state.h"

#include "base/translated.h"
#include "codec/torch_tensor.h"
#include "shardwright/tensor.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

// Protocol 2 has no bytes: it calls for their text's encoding, and for nothing of no bytes.
bool is_filled(Value bytes) {
  if (bytes.is(Kind::kReduce)) return !bytes.args()[0].text().empty();
  return !bytes.text().empty();
}

}  // namespace

bool holds_module_state(Value saved) {
  // torch_dist's entries are lists of one. What writes a file may nest a list in itself.
  if (saved.is(Kind::kList)) saved = saved[0];
  if (is_tensor(saved)) {
    const auto tensor = read_torch_tensor(saved);
    return tensor && Box::whole(tensor->shape).volume() > 0;
  }
  const bool is_stream = saved && (saved.callable().is_global("_io", "BytesIO") ||
                                   saved.callable().is_global("io", "BytesIO"));
  return is_stream && is_filled(saved.state()[0]);
}

std::string module_state_note(std::string_view where) {
  return translated(
      "{} and others hold scales and amax histories of fp8, or what ModelOpt's quantizers are, "
      "which "
      "is left out: scaling begins anew where the run goes on",
      where);
}

}  // namespace shardwright
