// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_value.h"

#include <algorithm>
#include <array>

#include "base/endian.h"

namespace shardwright::pickle {
namespace {

constexpr std::size_t kSharedTextBytes = 64;

bool has_children(Kind kind) {
  switch (kind) {
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSet:
    case Kind::kFrozenSet:
    case Kind::kDict:
    case Kind::kGlobal:
    case Kind::kReduce:
    case Kind::kObject:
    case Kind::kPersistentId:
      return true;
    default:
      return false;
  }
}

bool has_text(Kind kind) {
  return kind == Kind::kString || kind == Kind::kBytes || kind == Kind::kByteArray ||
         kind == Kind::kBigInt;
}

}  // namespace

bool is_sequence(Kind kind) {
  return kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kSet ||
         kind == Kind::kFrozenSet;
}

std::string_view kind_name(Kind kind) {
  constexpr std::array<std::string_view, 18> kNames = {
      "None",  "bool",      "int",  "big int", "float",         "string",
      "bytes", "bytearray", "list", "tuple",   "set",           "frozenset",
      "dict",  "global",    "call", "object",  "persistent id", "extension"};
  return kNames[static_cast<std::size_t>(kind)];
}

// ---- reading ----

Kind Value::kind() const { return document_->node(*this).kind; }

bool Value::is_global(std::string_view module, std::string_view name) const {
  return is(Kind::kGlobal) && this->module() == module && this->name() == name;
}

std::size_t Value::size() const {
  if (!*this) return 0;
  const Document::Node& node = document_->node(*this);
  if (is_sequence(node.kind)) return node.span.size;
  return node.kind == Kind::kDict ? node.span.size / 2 : 0;
}

Value Value::operator[](std::size_t index) const {
  if (!*this) return {};
  const Document::Node& node = document_->node(*this);
  const bool has_element = is_sequence(node.kind) || node.kind == Kind::kPersistentId;
  if (!has_element || index >= node.span.size) return {};
  return {document_, document_->children_[node.span.begin + index]};
}

Value Value::key(std::size_t index) const {
  if (!is(Kind::kDict) || index >= size()) return {};
  return {document_, document_->children_[document_->node(*this).span.begin + 2 * index]};
}

Value Value::value(std::size_t index) const {
  if (!is(Kind::kDict) || index >= size()) return {};
  return {document_, document_->children_[document_->node(*this).span.begin + 2 * index + 1]};
}

std::string_view Value::text() const {
  if (!*this) return {};
  const Document::Node& node = document_->node(*this);
  if (!has_text(node.kind)) return {};
  return std::string_view(document_->text_).substr(node.span.begin, node.span.size);
}

std::string_view Value::module() const {
  if (!is(Kind::kGlobal)) return {};
  return Value(document_, document_->children_[document_->node(*this).span.begin]).text();
}

std::string_view Value::name() const {
  if (!is(Kind::kGlobal)) return {};
  return Value(document_, document_->children_[document_->node(*this).span.begin + 1]).text();
}

Value Value::callable() const {
  if (!is(Kind::kReduce) && !is(Kind::kObject)) return {};
  return {document_, document_->children_[document_->node(*this).span.begin]};
}

Value Value::args() const {
  if (!is(Kind::kReduce) && !is(Kind::kObject)) return {};
  return {document_, document_->children_[document_->node(*this).span.begin + 1]};
}

Value Value::kwargs() const {
  const auto* extra = *this ? document_->find_extra(id_) : nullptr;
  return extra != nullptr && extra->kwargs != 0 ? Value(document_, extra->kwargs) : Value();
}

Value Value::appended() const {
  const auto* extra = *this ? document_->find_extra(id_) : nullptr;
  return extra != nullptr && extra->appended != 0 ? Value(document_, extra->appended) : Value();
}

Value Value::items() const {
  const auto* extra = *this ? document_->find_extra(id_) : nullptr;
  return extra != nullptr && extra->items != 0 ? Value(document_, extra->items) : Value();
}

Value Value::state() const {
  const auto* extra = *this ? document_->find_extra(id_) : nullptr;
  return extra != nullptr && extra->has_state ? Value(document_, extra->state) : Value();
}

std::optional<bool> Value::as_bool() const {
  if (!is(Kind::kBool)) return std::nullopt;
  return document_->node(*this).integer != 0;
}

std::optional<std::int64_t> Value::as_int() const {
  if (!is(Kind::kInt) && !is(Kind::kBool) && !is(Kind::kExtension)) return std::nullopt;
  return document_->node(*this).integer;
}

std::optional<double> Value::as_double() const {
  if (is(Kind::kFloat)) return document_->node(*this).real;
  if (is(Kind::kInt)) return static_cast<double>(document_->node(*this).integer);
  return std::nullopt;
}

std::optional<std::string_view> Value::as_string() const {
  if (!is(Kind::kString)) return std::nullopt;
  return text();
}

std::optional<std::string_view> Value::as_bytes() const {
  if (!is(Kind::kBytes) && !is(Kind::kByteArray)) return std::nullopt;
  return text();
}

Value Value::find(std::string_view key) const {
  const Value pairs = is(Kind::kDict) ? *this : items();
  for (std::size_t i = pairs.size(); i-- > 0;) {
    if (pairs.key(i).as_string() == key) return pairs.value(i);
  }
  return {};
}

Value Value::find(std::int64_t key) const {
  const Value pairs = is(Kind::kDict) ? *this : items();
  for (std::size_t i = pairs.size(); i-- > 0;) {
    if (pairs.key(i).is(Kind::kInt) && pairs.key(i).as_int() == key) return pairs.value(i);
  }
  return {};
}

Value Value::attribute(std::string_view name) const {
  const Value state = this->state();
  if (!state.is(Kind::kTuple)) return state.find(name);
  const Value slot = state[1].find(name);
  return slot ? slot : state[0].find(name);
}

// ---- making ----

Document::Document() {
  // Nodes that every document has; their places are fixed by none(), boolean(), empty_tuple().
  add(Kind::kNone);
  add(Kind::kBool);
  nodes_[add(Kind::kBool).id_].integer = 1;
  add(Kind::kTuple);
}

Value Document::add(Kind kind) {
  Node node;
  node.kind = kind;
  node.integer = 0;
  if (has_children(kind)) node.span = {0, 0};
  nodes_.push_back(node);
  return at(static_cast<std::uint32_t>(nodes_.size() - 1));
}

void Document::append_references(Value from, std::vector<Value>& out) const {
  const Node& source = node(from);
  if (has_children(source.kind)) {
    for (std::uint32_t i = 0; i < source.span.size; ++i) {
      out.push_back(at(children_[source.span.begin + i]));
    }
  }
  for (Value extra : {from.kwargs(), from.appended(), from.items(), from.state()}) {
    if (extra) out.push_back(extra);
  }
}

Value Document::add_text(Kind kind, std::string_view text) {
  const Value made = add(kind);
  nodes_[made.id_].span = {static_cast<std::uint32_t>(text_.size()),
                           static_cast<std::uint32_t>(text.size())};
  text_ += text;
  return made;
}

// An entry of a map: the key, what the map links it with, and its place in the table.
void Document::count_shared(std::size_t text_bytes) {
  shared_bytes_ += sizeof(Shared::value_type) + 4 * sizeof(void*) + text_bytes;
}

Value Document::integer(std::int64_t value) {
  const Value made = add(Kind::kInt);
  nodes_[made.id_].integer = value;
  return made;
}

Value Document::big_integer(std::string_view little_endian) {
  const bool negative = !little_endian.empty() && (little_endian.back() & '\x80') != 0;
  const char padding = negative ? '\xff' : '\0';
  std::size_t length = little_endian.size();
  while (length > 8 && little_endian[length - 1] == padding) --length;
  std::array<char, 8> low;
  low.fill(padding);
  std::copy_n(little_endian.begin(), std::min<std::size_t>(length, 8), low.begin());
  const bool sign_fits = ((low[7] & '\x80') != 0) == negative;
  if (length <= 8 && sign_fits) {
    return integer(load_le<std::int64_t>(as_bytes({low.data(), low.size()}).data()));
  }
  // One sign byte more than the magnitude needs would make two encodings of one number.
  if (((little_endian[length - 1] & '\x80') != 0) != negative) ++length;
  return add_text(Kind::kBigInt, little_endian.substr(0, length));
}

Value Document::real(double value) {
  const Value made = add(Kind::kFloat);
  nodes_[made.id_].real = value;
  return made;
}

Value Document::string(std::string_view text) {
  if (text.size() > kSharedTextBytes) return add_text(Kind::kString, text);
  if (const auto found = strings_.find(text); found != strings_.end()) return at(found->second);
  const Value made = add_text(Kind::kString, text);
  strings_.emplace(text, made.id_);
  count_shared(text.size());
  return made;
}

Value Document::bytes(std::string_view bytes, Kind kind) { return add_text(kind, bytes); }

Value Document::sequence(Kind kind, std::span<const Value> elements) {
  if (kind == Kind::kTuple && elements.empty()) return empty_tuple();
  const Value made = add(kind);
  const auto count = static_cast<std::uint32_t>(elements.size());
  nodes_[made.id_].span = {static_cast<std::uint32_t>(children_.size()), count};
  nodes_[made.id_].capacity = count;
  for (Value element : elements) children_.push_back(element.id_);
  return made;
}

Value Document::global(std::string_view module, std::string_view name) {
  const std::size_t module_size = module.size();
  std::string key(module);
  key += '\n';
  key += name;
  if (const auto found = globals_.find(key); found != globals_.end()) return at(found->second);
  // Read from the copy: the arguments may be views of this document's own text, which moves.
  const std::string_view copy = key;
  const Value module_node = string(copy.substr(0, module_size));
  const std::array<Value, 2> names = {module_node, string(copy.substr(module_size + 1))};
  const Value made = sequence(Kind::kGlobal, names);
  count_shared(key.size());
  globals_.emplace(std::move(key), made.id_);
  return made;
}

Value Document::reduce(Value callable, Value args) {
  const std::array<Value, 2> parts = {callable, args};
  return sequence(Kind::kReduce, parts);
}

Value Document::object(Value cls) { return object(cls, empty_tuple()); }

Value Document::object(Value cls, Value args, Value kwargs) {
  const std::array<Value, 2> parts = {cls, args};
  const Value made = sequence(Kind::kObject, parts);
  if (kwargs) extra(made.id_).kwargs = kwargs.id_;
  return made;
}

Value Document::persistent_id(Value id) { return sequence(Kind::kPersistentId, std::span(&id, 1)); }

Value Document::extension(std::int64_t code) {
  const Value made = add(Kind::kExtension);
  nodes_[made.id_].integer = code;
  return made;
}

Value Document::ordered_dict() {
  return reduce(global("collections", "OrderedDict"), empty_tuple());
}

// ---- changing ----

Document::Extra& Document::extra(std::uint32_t id) {
  Node& node = nodes_[id];
  if (node.extra == 0) {
    extras_.emplace_back();
    node.extra = static_cast<std::uint32_t>(extras_.size());
  }
  return extras_[node.extra - 1];
}

const Document::Extra* Document::find_extra(std::uint32_t id) const {
  const Node& node = nodes_[id];
  return node.extra == 0 ? nullptr : &extras_[node.extra - 1];
}

// A list that outgrows its place moves to the end of the array with twice the room, so that the
// places left behind never add up to more than the places in use.
void Document::push_child(std::uint32_t id, std::uint32_t child) {
  Node& node = nodes_[id];
  if (node.span.size == node.capacity) {
    const std::uint32_t grown = std::max<std::uint32_t>(2, node.capacity * 2);
    const auto end = static_cast<std::uint32_t>(children_.size());
    if (node.capacity > 0 && node.span.begin + node.capacity == end) {
      children_.resize(children_.size() + grown - node.capacity);
    } else {
      children_.resize(children_.size() + grown);
      std::copy_n(children_.begin() + node.span.begin, node.span.size, children_.begin() + end);
      node.span.begin = end;
    }
    node.capacity = grown;
  }
  children_[node.span.begin + node.span.size++] = child;
}

void Document::append(Value target, Value element) {
  const Kind kind = node(target).kind;
  if (kind == Kind::kList || kind == Kind::kSet) {
    push_child(target.id_, element.id_);
    return;
  }
  if (extra(target.id_).appended == 0) {
    const std::uint32_t made = list().id_;
    extra(target.id_).appended = made;
  }
  push_child(extra(target.id_).appended, element.id_);
}

// The dict that takes a node's pairs; made on demand for nodes that are no dict themselves.
Value Document::pairs_of(Value target) const {
  return node(target).kind == Kind::kDict ? target : target.items();
}

void Document::add_pair(Value target, Value key, Value value) {
  Value pairs = pairs_of(target);
  if (!pairs) {
    pairs = dict();
    extra(target.id_).items = pairs.id_;
  }
  push_child(pairs.id_, key.id_);
  push_child(pairs.id_, value.id_);
}

void Document::set(Value target, std::string_view key, Value value) {
  const Value pairs = pairs_of(target);
  for (std::size_t i = pairs.size(); i-- > 0;) {
    if (pairs.key(i).as_string() == key) {
      children_[node(pairs).span.begin + 2 * i + 1] = value.id_;
      return;
    }
  }
  add_pair(target, string(key), value);
}

void Document::set_state(Value target, Value state) {
  Extra& changed = extra(target.id_);
  changed.state = state.id_;
  changed.has_state = true;
}

void Document::set_attribute(Value object, std::string_view name, Value value) {
  if (!object.state()) set_state(object, dict());
  set(object.state(), name, value);
}

void Document::set_element(Value target, std::size_t index, Value element) {
  children_[node(target).span.begin + index] = element.id_;
}

bool Document::erase(Value target, std::string_view key) {
  const Value pairs = pairs_of(target);
  if (!pairs) return false;
  const Span span = node(pairs).span;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < span.size; i += 2) {
    const std::uint32_t from = span.begin + i;
    if (at(children_[from]).as_string() == key) continue;
    children_[span.begin + kept] = children_[from];
    children_[span.begin + kept + 1] = children_[from + 1];
    kept += 2;
  }
  nodes_[pairs.id_].span.size = kept;
  return kept != span.size;
}

}  // namespace shardwright::pickle
