#include "runtime/bound/turn_tree.h"

#include <algorithm>

#include "runtime/loop_plan.h"

namespace headrace {
namespace {

// Elements of what a turn makes. A tile of the fused kernel: what is larger
// spends its time in the loops, and some of it on several threads.
constexpr int64_t kMostElements = 512;
// Each jumps to the next, or calls it where code is not optimised.
constexpr int kMostCalls = 1000;
// Of loops within loops: each is bound twice for every one around it.
constexpr int kDeepest = 4;

class TreeReader {
 public:
  explicit TreeReader(const Program& turn) : turn_(turn) {}

  std::unique_ptr<TurnTree> Run() {
    const size_t n = turn_.feeds.size();
    if (turn_.fetches.size() != n + 1) return nullptr;
    Program& p = tree_->program;
    p.values = turn_.values;
    p.feeds = turn_.feeds;
    p.fetches = turn_.fetches;
    Ids ids(p.values.size());
    for (size_t v = 0; v < ids.size(); ++v) {
      ids[v] = static_cast<ValueId>(v);
      Note(ids[v], -1);
    }
    for (size_t i = 0; i < n; ++i) {
      if (p.fetches[i] == p.feeds[i]) {
        tree_->steady[p.feeds[i]] = true;
      } else if (!tree_->IsSmall(p.feeds[i])) {
        return nullptr;
      }
    }
    tree_->turn.id = next_block_++;
    if (!ReadCalls(turn_, ids, {.block = &tree_->turn, .outermost = true})) {
      return nullptr;
    }
    // Reading a branch may have shown that its result is another value.
    for (ValueId& v : p.fetches) v = ids[v];
    for (size_t i = 0; i < n; ++i) {
      if (!SameKind(p.feeds[i], p.fetches[i])) return nullptr;
    }
    return IsTruth(p.fetches[n]) ? std::move(tree_) : nullptr;
  }

 private:
  using Ids = std::vector<ValueId>;  // of a program's values in the tree

  // Where calls are written.
  struct Place {
    TurnBlock* block;
    // Takes what only reads values older than `since`; null: nothing does.
    TurnBlock* once = nullptr;
    ValueId since = 0;
    bool outermost = false;  // what is steady is made before the turns
    int depth = 1;
  };

  const ProgramValue& value(ValueId v) const {
    return tree_->program.values[v];
  }
  bool SameKind(ValueId a, ValueId b) const {
    return value(a).dtype == value(b).dtype && value(a).shape == value(b).shape;
  }
  bool IsTruth(ValueId v) const {
    return value(v).dtype == DType::kBool && value(v).shape.IsScalar();
  }

  void Note(ValueId v, int home) {
    tree_->base.push_back(v);
    tree_->steady.push_back(value(v).constant.has_buffer());
    tree_->home.push_back(home);
    once_.push_back(false);
  }
  ValueId NewValue(const ProgramValue& like, int home) {
    tree_->program.values.push_back(like);
    const auto v = static_cast<ValueId>(tree_->program.values.size()) - 1;
    Note(v, home);
    return v;
  }
  ValueId IdOf(const Program& p, ValueId v, Ids& ids) {
    if (ids[v] == kNoValue) ids[v] = NewValue(p.values[v], -1);
    return ids[v];
  }

  // What is known of `in` is known of the program's feeds; `constants`: their
  // values too, unless they are null.
  bool Tell(Program* p, absl::Span<const ValueId> in, bool values) {
    for (size_t i = 0; i < in.size(); ++i) {
      ProgramValue& feed = p->values[p->feeds[i]];
      const ProgramValue& given = value(in[i]);
      if (feed.dtype != given.dtype ||
          !feed.shape.CompatibleWith(given.shape)) {
        return false;
      }
      if (given.shape.fully_known()) feed.shape = given.shape;
      if (values) feed.constant = given.constant;
    }
    return Optimise(*p).ok();
  }
  static Ids IdsOf(const Program& p, absl::Span<const ValueId> feeds) {
    Ids ids(p.values.size(), kNoValue);
    for (size_t i = 0; i < feeds.size(); ++i) ids[p.feeds[i]] = feeds[i];
    return ids;
  }

  bool ReadCalls(const Program& p, Ids& ids, const Place& at) {
    for (const Call& from : p.calls) {
      if (++num_calls_ > kMostCalls) return false;
      TurnItem item;
      item.call = from;
      for (ValueId& v : item.call.inputs) v = IdOf(p, v, ids);
      const bool read = IsFunctionCall(from.op->def())
                            ? ReadFunctionCall(p, from, item, ids, at)
                            : ReadCall(p, from, item, ids, at);
      if (!read) return false;
    }
    return true;
  }

  bool AllInputs(const Call& call, const auto& which) const {
    return std::all_of(call.inputs.begin(), call.inputs.end(), which);
  }
  bool IsSteady(const Call& call) const {
    return AllInputs(call, [&](ValueId v) { return tree_->steady[v]; });
  }
  bool IsOnce(const Call& call, const Place& at) const {
    return at.once && AllInputs(call, [&](ValueId v) {
             return v < at.since || once_[v] || tree_->steady[v];
           });
  }
  // Makes the call before the turns.
  void MoveOut(const Program& p, const Call& from, TurnItem& item, Ids& ids) {
    for (ValueId& v : item.call.outputs) {
      v = IdOf(p, v, ids);
      tree_->steady[v] = true;
    }
    item.call.bodies = nullptr;
    tree_->program.calls.push_back(std::move(item.call));
  }

  bool ReadCall(const Program& p, const Call& from, TurnItem& item, Ids& ids,
                const Place& at) {
    Call& call = item.call;
    if (from.effect || from.op->def().is_stateful) return false;
    const bool steady = IsSteady(call), once = IsOnce(call, at);
    TurnBlock& to = once ? *at.once : *at.block;
    bool known = true;
    for (ValueId& v : call.outputs) {
      v = IdOf(p, v, ids);
      tree_->home[v] = to.id;
      once_[v] = once;
      known = known && value(v).shape.fully_known();
    }
    // Shapes that only the branches before show.
    if (!known && FoldCall(tree_->program, call)) {
      for (ValueId v : call.outputs) tree_->steady[v] = true;
      return true;
    }
    const bool reshapes = Reshapes(call);
    if (reshapes) {
      const ValueId in = call.inputs[0], out = call.outputs[0];
      tree_->base[out] = tree_->base[in];
      tree_->steady[out] = tree_->steady[in];
      once_[out] = in < at.since || once_[in];
      if (!tree_->steady[in]) return tree_->IsSmall(out);
    }
    if (at.outermost && steady) {
      for (ValueId v : call.outputs) tree_->steady[v] = true;
      tree_->program.calls.push_back(std::move(call));
      return true;
    }
    if (reshapes) return true;
    for (ValueId v : call.outputs) {
      if (!tree_->IsSmall(v)) return false;
    }
    to.items.push_back(std::move(item));
    return true;
  }

  // Reshapes of known shapes lie where what they look at lies.
  bool Reshapes(Call& call) const {
    if (!call.op->def().Has(OpTrait::kReshapes) || !BindCall(call).ok() ||
        IsGuess(tree_->program, call)) {
      return false;
    }
    const ProgramValue &in = value(call.inputs[0]),
                       &out = value(call.outputs[0]);
    return out.shape.fully_known() && in.dtype == out.dtype &&
           in.shape.num_elements() == out.shape.num_elements();
  }

  bool ReadFunctionCall(const Program& p, const Call& from, TurnItem& item,
                        Ids& ids, const Place& at) {
    const OpDef& def = from.op->def();
    if (at.outermost && IsSteady(item.call) && !from.effect &&
        !def.is_stateful) {
      MoveOut(p, from, item, ids);
      return true;
    }
    if (!from.bodies) return false;
    Place inner = at;
    if (IsOnce(item.call, at)) inner.block = at.once;
    inner.once = nullptr;
    inner.outermost = false;
    return def.Is(OpRole::kLoop) ? ReadLoop(from, item, ids, inner)
                                 : ReadBranch(from, item, ids, inner);
  }

  bool ReadBranch(const Call& from, TurnItem& item, Ids& ids, const Place& at) {
    const absl::Span<const ValueId> given =
        absl::MakeConstSpan(item.call.inputs).subspan(1);
    const ProgramValue& which = value(item.call.inputs[0]);
    const bool by_index = ChoosesByIndex(*from.op);
    if (which.dtype != (by_index ? DType::kInt32 : DType::kBool) ||
        !which.shape.IsScalar()) {
      return false;
    }
    for (Program body : *from.bodies) {
      TurnWay& way = item.ways.emplace_back();
      way.block.id = next_block_++;
      Place inner = at;
      inner.block = &way.block;
      if (!Tell(&body, given, /*values=*/true)) return false;
      Ids inner_ids = IdsOf(body, given);
      if (!ReadCalls(body, inner_ids, inner)) return false;
      for (ValueId v : body.fetches) {
        way.results.push_back(IdOf(body, v, inner_ids));
      }
    }
    return SetOutputs(from, item, ids, at);
  }

  // A branch's outputs, but for those that are the same value in all ways.
  bool SetOutputs(const Call& from, TurnItem& item, Ids& ids, const Place& at) {
    std::vector<TurnWay>& ways = item.ways;
    item.call.outputs.clear();
    size_t kept = 0;
    for (size_t o = 0; o < from.outputs.size(); ++o) {
      const ValueId r = ways[0].results[o];
      bool same = true;
      for (TurnWay& way : ways) {
        if (!SameKind(way.results[o], r)) return false;
        same = same && way.results[o] == r;
      }
      if (same) {
        ids[from.outputs[o]] = r;
        continue;
      }
      ProgramValue out = value(r);
      out.constant = Tensor();
      const ValueId v = NewValue(out, at.block->id);
      if (!tree_->IsSmall(v)) return false;
      ids[from.outputs[o]] = v;
      item.call.outputs.push_back(v);
      for (TurnWay& way : ways) way.results[kept] = way.results[o];
      ++kept;
    }
    for (TurnWay& way : ways) way.results.resize(kept);
    at.block->items.push_back(std::move(item));
    return true;
  }

  bool ReadLoop(const Call& from, TurnItem& item, Ids& ids, const Place& at) {
    if (at.depth >= kDeepest) return false;
    tree_->depth = std::max(tree_->depth, at.depth + 1);
    item.loop = std::make_unique<TurnLoop>();
    TurnLoop& loop = *item.loop;
    for (TurnBlock* b : {&loop.test, &loop.once, &loop.turn}) {
      b->id = next_block_++;
    }
    const absl::Span<const ValueId> given = item.call.inputs;
    Program test = from.bodies->at(0), turn = from.bodies->at(1);
    AppendCondition(test, &turn);
    Place inner = at;
    inner.block = &loop.test;
    if (!Tell(&test, given, /*values=*/true)) return false;
    Ids test_ids = IdsOf(test, given);
    if (!ReadCalls(test, test_ids, inner)) return false;
    loop.first_truth = IdOf(test, test.fetches[0], test_ids);
    return IsTruth(loop.first_truth) &&
           ReadTurn(from, std::move(turn), given, loop, ids, at) &&
           Push(std::move(item), at);
  }
  static bool Push(TurnItem item, const Place& at) {
    item.call.outputs.assign(item.loop->last.begin(), item.loop->last.end());
    at.block->items.push_back(std::move(item));
    return true;
  }

  bool ReadTurn(const Call& from, Program turn, absl::Span<const ValueId> given,
                TurnLoop& loop, Ids& ids, const Place& at) {
    const size_t n = given.size();
    // What the variables are first says what they are in all turns only of
    // those that stay the same.
    if (!Tell(&turn, given, /*values=*/false)) return false;
    auto steady = [&](size_t i) { return turn.fetches[i] == turn.feeds[i]; };
    for (size_t i = 0; i < n; ++i) {
      if (steady(i)) {
        turn.values[turn.feeds[i]].constant = value(given[i]).constant;
      }
    }
    if (!Optimise(turn).ok()) return false;
    const auto since = static_cast<ValueId>(tree_->program.values.size());
    Ids turn_ids = IdsOf(turn, given);
    for (size_t i = 0; i < n; ++i) {
      if (steady(i)) {
        ids[from.outputs[i]] = given[i];
        continue;
      }
      ProgramValue like = value(given[i]);
      like.constant = Tensor();
      const ValueId v = NewValue(like, -1);
      if (!tree_->IsSmall(v)) return false;
      turn_ids[turn.feeds[i]] = v;
      loop.first.push_back(given[i]);
      loop.variables.push_back(v);
      loop.last.push_back(NewValue(like, at.block->id));
      ids[from.outputs[i]] = loop.last.back();
    }
    Place inner = at;
    inner.block = &loop.turn;
    inner.once = &loop.once;
    inner.since = since;
    ++inner.depth;
    if (!ReadCalls(turn, turn_ids, inner)) return false;
    for (size_t i = 0; i < n; ++i) {
      if (steady(i)) continue;
      const ValueId next = IdOf(turn, turn.fetches[i], turn_ids);
      if (!SameKind(next, given[i])) return false;
      loop.next.push_back(next);
    }
    loop.truth = IdOf(turn, turn.fetches[n], turn_ids);
    return IsTruth(loop.truth);
  }

  const Program& turn_;
  std::unique_ptr<TurnTree> tree_ = std::make_unique<TurnTree>();
  std::vector<bool> once_;  // per value: made once, before a loop's turns
  int next_block_ = 0;
  int num_calls_ = 0;
};

}  // namespace

bool ChoosesByIndex(const ResolvedOp& op) {
  return op.attrs().Find("branches") != nullptr;
}

std::unique_ptr<TurnTree> TurnTree::Read(const Program& turn) {
  return TreeReader(turn).Run();
}

bool TurnTree::IsSmall(ValueId v) const {
  const ProgramValue& value = program.values[v];
  if (!IsPlain(value.dtype) || IsRef(value.dtype)) return false;
  return value.shape.fully_known() && value.shape.num_elements() > 0 &&
         value.shape.num_elements() <= kMostElements;
}

}  // namespace headrace
