// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwright/error.h"

namespace shardwright::pickle {

/// What a node is. Nothing here is ever called or imported: a callable is a pair of names.
enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,  ///< beyond int64: text() is little-endian two's complement
  kFloat,
  kString,  ///< text() is UTF-8; lone surrogates are kept as their three bytes
  kBytes,
  kByteArray,
  kList,
  kTuple,
  kSet,
  kFrozenSet,
  kDict,          ///< pairs in order; a repeated key is kept twice and the last one counts
  kGlobal,        ///< module() and name()
  kReduce,        ///< callable()(*args()), then appended(), items(), state()
  kObject,        ///< callable().__new__(callable(), *args(), **kwargs()), then the same
  kPersistentId,  ///< element 0 is the id
  kExtension,     ///< as_int() is copyreg's extension code
};

[[nodiscard]] std::string_view kind_name(Kind kind);

/// Whether it is a list, a tuple or a set of either kind.
[[nodiscard]] bool is_sequence(Kind kind);

class Document;

/// A handle to one node of a Document: two words, valid while the document lives. Equality is
/// identity, so that shared nodes and cycles can be told. A default-made handle is "nothing": it
/// tests false and every reader answers it with nothing.
class Value {
 public:
  Value() = default;
  [[nodiscard]] explicit operator bool() const { return document_ != nullptr; }
  /// REQUIRES: not nothing.
  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is(Kind kind) const { return *this && this->kind() == kind; }
  [[nodiscard]] bool is_none() const { return is(Kind::kNone); }
  [[nodiscard]] bool is_global(std::string_view module, std::string_view name) const;
  /// Elements of a list, tuple or set; pairs of a dict; else 0.
  [[nodiscard]] std::size_t size() const;
  /// Element of a list, tuple or set, or nothing.
  [[nodiscard]] Value operator[](std::size_t index) const;
  [[nodiscard]] Value key(std::size_t index) const;    ///< of a dict's pair
  [[nodiscard]] Value value(std::size_t index) const;  ///< of a dict's pair
  /// Raw payload of a string, bytes, bytearray or big int; else empty.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] std::string_view module() const;  ///< of a global
  [[nodiscard]] std::string_view name() const;    ///< of a global
  [[nodiscard]] Value callable() const;           ///< of a reduce; the class of an object
  [[nodiscard]] Value args() const;               ///< of a reduce or object: a tuple
  [[nodiscard]] Value kwargs() const;             ///< of an object: a dict, or nothing
  [[nodiscard]] Value appended() const;           ///< list of APPENDS onto a reduce or object
  [[nodiscard]] Value items() const;              ///< dict of SETITEMS onto a reduce or object
  [[nodiscard]] Value state() const;              ///< what BUILD was given, for any node
  [[nodiscard]] std::optional<bool> as_bool() const;
  /// Int or bool.
  [[nodiscard]] std::optional<std::int64_t> as_int() const;
  /// Float or int.
  [[nodiscard]] std::optional<double> as_double() const;
  [[nodiscard]] std::optional<std::string_view> as_string() const;
  [[nodiscard]] std::optional<std::string_view> as_bytes() const;
  /// The value under a string key: in a dict, or in the items() of an OrderedDict and its like.
  [[nodiscard]] Value find(std::string_view key) const;
  /// The value under an integer key.
  [[nodiscard]] Value find(std::int64_t key) const;
  /// An attribute as BUILD sets it: `state` is a dict, or a tuple of two dicts (slots second).
  [[nodiscard]] Value attribute(std::string_view name) const;
  [[nodiscard]] friend bool operator==(Value a, Value b) = default;
  /// Number of the node in its document, for visited sets.
  [[nodiscard]] std::uint32_t id() const { return id_; }

 private:
  friend class Document;
  Value(const Document* document, std::uint32_t id) : document_(document), id_(id) {}
  const Document* document_ = nullptr;
  std::uint32_t id_ = 0;
};

/// Owns the nodes of a pickle's value graph: a tree with shared nodes, possibly with cycles, so
/// a walk keeps a visited set and a depth limit. Nodes live in arrays: building, moving
/// and destroying never recurse. Not thread-safe while it is changed.
class Document {
 public:
  Document();
  Document(Document&&) = default;
  Document& operator=(Document&&) = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  // A handle made before the document was moved is dead; take root() again.
  [[nodiscard]] Value root() const { return at(root_); }
  void set_root(Value value) { root_ = value.id_; }
  [[nodiscard]] Value at(std::uint32_t id) const { return {this, id}; }
  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t text_bytes() const { return text_.size(); }
  /// About what the nodes and texts take, with the room that growing arrays need for a moment.
  [[nodiscard]] std::uint64_t memory_bytes() const {
    constexpr std::uint64_t kGrowing = 3;  // an array that moves to twice its size
    return nodes_.size() * sizeof(Node) +
           kGrowing * (children_.size() * sizeof(std::uint32_t) + extras_.size() * sizeof(Extra) +
                       text_.size()) +
           shared_bytes_;
  }
  /// Appends every node that `from` refers to directly, for walks over the graph.
  void append_references(Value from, std::vector<Value>& out) const;

  // Makers. Strings up to 64 bytes and globals are shared: the same text gives the same node.
  [[nodiscard]] Value none() const { return at(0); }
  [[nodiscard]] Value boolean(bool value) const { return at(value ? 2 : 1); }
  [[nodiscard]] Value empty_tuple() const { return at(3); }
  Value integer(std::int64_t value);
  /// Little-endian two's complement; becomes an int where it fits.
  Value big_integer(std::string_view little_endian);
  Value real(double value);
  /// REQUIRES: UTF-8 (surrogates allowed).
  Value string(std::string_view text);
  Value bytes(std::string_view bytes, Kind kind = Kind::kBytes);
  /// List, tuple, set or frozenset.
  Value sequence(Kind kind, std::span<const Value> elements = {});
  Value list(std::span<const Value> elements = {}) { return sequence(Kind::kList, elements); }
  Value tuple(std::span<const Value> elements) { return sequence(Kind::kTuple, elements); }
  Value tuple(std::initializer_list<Value> elements) { return tuple(std::span(elements)); }
  Value dict() { return sequence(Kind::kDict); }
  Value global(std::string_view module, std::string_view name);
  Value reduce(Value callable, Value args);
  /// An object made without its constructor; give it its attributes with set_state.
  Value object(Value cls);
  Value object(Value cls, Value args, Value kwargs = {});
  Value persistent_id(Value id);
  Value extension(std::int64_t code);
  /// `collections.OrderedDict()`; fill it with set().
  Value ordered_dict();

  // Changes.
  /// To a list or set; to a reduce or object it is recorded in appended().
  void append(Value target, Value element);
  /// Adds a pair behind the others; to a reduce or object it is recorded in items().
  void add_pair(Value target, Value key, Value value);
  /// Replaces the value under a string key (the last one), or adds the pair.
  void set(Value target, std::string_view key, Value value);
  /// Replaces what BUILD gives the node.
  void set_state(Value target, Value state);
  /// Sets an attribute of an object whose state is a dict or missing.
  void set_attribute(Value object, std::string_view name, Value value);
  /// Replaces element `index` of a list, tuple or set. REQUIRES: index < size().
  void set_element(Value target, std::size_t index, Value element);
  /// Removes the pairs with this string key. Returns whether there were any.
  bool erase(Value target, std::string_view key);

 private:
  friend class Value;
  struct Span {
    std::uint32_t begin;
    std::uint32_t size;
  };
  struct Node {
    Kind kind = Kind::kNone;
    std::uint32_t capacity = 0;  // children that fit at span.begin
    std::uint32_t extra = 0;     // index into extras_ plus 1; 0 for none
    union {
      std::int64_t integer;
      double real;
      Span span;
    };
  };
  struct Extra {
    std::uint32_t appended = 0;  // node ids; 0 (the None node) stands for nothing
    std::uint32_t items = 0;
    std::uint32_t kwargs = 0;
    std::uint32_t state = 0;
    bool has_state = false;
  };
  [[nodiscard]] const Node& node(Value value) const { return nodes_[value.id_]; }
  Value add(Kind kind);
  Value add_text(Kind kind, std::string_view text);
  Extra& extra(std::uint32_t id);
  [[nodiscard]] const Extra* find_extra(std::uint32_t id) const;
  void push_child(std::uint32_t id, std::uint32_t child);
  [[nodiscard]] Value pairs_of(Value target) const;

  void count_shared(std::size_t text_bytes);

  std::deque<Node> nodes_;  // grows without moving
  std::vector<std::uint32_t> children_;
  std::vector<Extra> extras_;
  std::string text_;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Shared = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;
  Shared strings_;
  Shared globals_;  // by "module\nname"
  std::uint64_t shared_bytes_ = 0;
  std::uint32_t root_ = 0;
};

}  // namespace shardwright::pickle
