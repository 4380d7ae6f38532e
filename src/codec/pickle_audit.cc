// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_audit.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "base/translated.h"
#include "codec/pickle_decoder.h"
#include "codec/pickle_names.h"

namespace shardwright::pickle {
namespace {

constexpr std::size_t kMostNames = 100;  // of each kind
constexpr std::size_t kMostShown = 3;
constexpr std::size_t kMostNameBytes = 100;
constexpr int kDeepestNested = 4;

bool is_getattr(Value value) { return value.is_global("builtins", "getattr"); }

// An attribute of a class: how members of enums are pickled.
bool gets_from_class(Value call) {
  const Value args = call.args();
  if (args.size() != 2 || !args[0].is(Kind::kGlobal) || !args[1].as_string()) return false;
  if (meaning_of(args[0].module(), args[0].name()) == NameMeaning::kRunsCode) return false;
  // Not from a module to what it imported, wherever it lies.
  const std::string path = std::string(args[0].name()) + "." + std::string(args[1].text());
  return meaning_of("", path) != NameMeaning::kRunsCode;
}

Audit nested(std::string_view bytes, int depth);

class Auditor {
 public:
  Auditor(const Document& document, int depth) : document_(document), depth_(depth) {}

  Audit run() {
    for (std::uint32_t node = 0; node < document_.node_count(); ++node) judge(document_.at(node));
    return std::move(audit_);
  }

 private:
  void judge(Value value) {
    switch (value.kind()) {
      case Kind::kGlobal:
        // Of getattr the calls are judged.
        if (!is_getattr(value)) audit_.add_name(value.module(), value.name());
        if (value.state()) add(translated("a change of {}.{}", value.module(), value.name()));
        return;
      case Kind::kExtension:
        add(extension_text(value.as_int().value_or(0)));
        return;
      case Kind::kReduce:
      case Kind::kObject:
        judge_call(value);
        return;
      case Kind::kBytes:
      case Kind::kByteArray:
        if (depth_ < kDeepestNested) audit_.merge(nested(value.text(), depth_ + 1));
        return;
      default:
        return;
    }
  }

  void judge_call(Value call) {
    const Value callable = call.callable();
    if (is_getattr(callable)) {
      if (!gets_from_class(call)) add("builtins.getattr");
    } else if (!callable.is(Kind::kGlobal) && !callable.is(Kind::kPersistentId) &&
               !is_made_of_nested_class(call)) {
      // Torch before 1.6 names a module's class by a persistent id, which holds the global.
      add("a call of what another call returned");
    }
    if (call.state().is(Kind::kTuple) && sets_class(call.state())) {
      add("a change of an object's __class__ or methods");
    }
  }

  // What torch keeps beside the shards of FSDP1: a class within a class, which has no constructor
  // that does anything, and pickles name it by getattr.
  static bool is_made_of_nested_class(Value call) {
    const Value getter = call.callable();
    return call.is(Kind::kObject) && getter.is(Kind::kReduce) && is_getattr(getter.callable()) &&
           getter.args()[0].is_global("torch.distributed._shard.sharded_tensor.api",
                                      "ShardedTensor") &&
           getter.args()[1].as_string() == "ProcessGroupState";
  }

  // Slots, which BUILD sets one by one with setattr.
  static bool sets_class(Value state) {
    const Value slots = state.size() == 2 ? state[1] : Value();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots.key(i).text().starts_with("__")) return true;
    }
    return false;
  }

  void add(std::string what) {
    if (audit_.runs.size() < kMostNames) audit_.runs.insert(shown(what));
  }
  static std::string shown(std::string_view text) {
    return printable(text.substr(0, kMostNameBytes));
  }

  const Document& document_;
  int depth_;
  Audit audit_;
};

// Bytes that are a pickle, as those that torch.storage._load_from_bytes takes. Only names count, so
// what looks like a pickle by chance does no harm.
Audit nested(std::string_view bytes, int depth) {
  constexpr std::size_t kShortest = 4;
  const bool may_be = bytes.size() >= kShortest && bytes.ends_with('.') &&
                      (bytes.front() == '\x80' || bytes.find('\n') != std::string_view::npos);
  if (!may_be) return {};
  Decoder decoder(as_bytes(bytes), Limits{.bytes = std::uint64_t{64} << 20});
  return decoder.run() ? Auditor(decoder.document(), depth).run() : Audit();
}

}  // namespace

Audit audit_bytes(std::string_view bytes) { return nested(bytes, 1); }

std::string extension_text(std::int64_t code) {
  return translated("an extension of the copyreg registry (code {})", code);
}

void Audit::add_name(std::string_view module, std::string_view name) {
  const NameMeaning meaning = meaning_of(module, name);
  if (meaning == NameMeaning::kValue) return;
  std::set<std::string>& names = meaning == NameMeaning::kRunsCode  ? runs
                                 : meaning == NameMeaning::kUnknown ? unknown
                                                                    : classes;
  if (names.size() >= kMostNames) return;
  names.insert(printable(fmt::format("{}.{}", module, name).substr(0, kMostNameBytes)));
}

void Audit::merge(const Audit& other) {
  const auto add_all = [](std::set<std::string>& to, const std::set<std::string>& from) {
    for (const std::string& name : from) {
      if (to.size() < kMostNames) to.insert(name);
    }
  };
  add_all(runs, other.runs);
  add_all(unknown, other.unknown);
  add_all(classes, other.classes);
  trailing_bytes += other.trailing_bytes;
  if (!error) error = other.error;
}

Audit audit_document(const Document& document) { return Auditor(document, 0).run(); }

Audit audit_pickle(std::span<const std::byte> bytes, const Limits& limits) {
  Decoder decoder(bytes, limits);
  const Result<std::uint64_t> end = decoder.run();
  Audit audit = audit_document(decoder.document());
  if (end) {
    audit.trailing_bytes = bytes.size() - *end;
  } else {
    audit.error = end.error();
  }
  return audit;
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count++ == kMostShown) break;
    text += (text.empty() ? "" : ", ") + name;
  }
  if (names.size() > kMostShown) text += fmt::format(", … {} more", names.size() - kMostShown);
  return text;
}

Error refuse_code(const Audit& audit, std::string_view where) {
  return {
      Code::kPickleRunsCode,
      translated("{}: a loader that obeys this pickle runs {}; nothing was run here, but do not "
                 "load the file with torch or Python, and ask who wrote it",
                 where, listed(audit.runs)),
      0};
}

}  // namespace shardwright::pickle
