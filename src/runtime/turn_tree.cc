#include "runtime/turn_tree.h"

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
      const bool steady = p.fetches[i] == p.feeds[i];
      tree_->steady[p.feeds[i]] = steady;
      if (value(p.feeds[i]).dtype == DType::kVariant) {
        tree_->list_of[p.feeds[i]] = static_cast<int>(tree_->lists.size());
        tree_->lists.push_back({static_cast<int>(i)});
        current_.push_back(p.feeds[i]);
      } else if (!steady && !tree_->IsSmall(p.feeds[i])) {
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
      const int list = tree_->list_of[p.feeds[i]];
      const bool fits = list >= 0 ? p.fetches[i] == current_[list]
                                  : SameKind(p.feeds[i], p.fetches[i]);
      if (!fits) return nullptr;
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
    tree_->list_of.push_back(-1);
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
  bool HasList(const Call& call) const {
    return !AllInputs(call, [&](ValueId v) { return tree_->list_of[v] < 0; });
  }
  bool IsOnce(const Call& call, const Place& at) const {
    return at.once && !HasList(call) && AllInputs(call, [&](ValueId v) {
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
    const bool steady = at.outermost && IsSteady(call);
    if (!steady && HasList(call)) return ReadListCall(p, item, ids, at);
    const bool once = IsOnce(call, at);
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
    if (steady) {
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

  // A call that reads or changes a list.
  bool ReadListCall(const Program& p, TurnItem& item, Ids& ids,
                    const Place& at) {
    Call& call = item.call;
    if (!BindCall(call).ok()) return false;
    const auto* calls = dynamic_cast<const BindsRows*>(call.kernel.get());
    const int number = tree_->list_of[call.inputs[0]];
    if (!calls || number < 0 || current_[number] != call.inputs[0]) {
      return false;
    }
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      if (tree_->list_of[call.inputs[i]] >= 0) return false;
    }
    TurnTree::List& list = tree_->lists[number];
    for (ValueId& v : call.outputs) {
      v = IdOf(p, v, ids);
      tree_->home[v] = at.block->id;
      if (value(v).dtype == DType::kVariant) {
        tree_->list_of[v] = number;
        current_[number] = v;
      }
    }
    const BindsRows::Element element = calls->element();
    if (element.input >= 0 || element.output >= 0) {
      const ValueId row = element.input >= 0 ? call.inputs[element.input]
                                             : call.outputs[element.output];
      if (!IsElement(row, &list)) return false;
    }
    list.writes = list.writes || element.input >= 0;
    list.kernel = call.kernel;
    list.calls = calls;
    at.block->items.push_back(std::move(item));
    return true;
  }
  // Of the type and shape of the list's other ones.
  bool IsElement(ValueId row, TurnTree::List* list) {
    ProgramValue& v = tree_->program.values[row];
    const bool first = list->dtype == DType::kInvalid;
    // Where no rule knows what comes out of a list, what goes in tells.
    if (!first && v.shape.CompatibleWith(list->shape)) v.shape = list->shape;
    if (!tree_->IsSmall(row)) return false;
    if (first) {
      list->dtype = v.dtype;
      list->shape = v.shape;
    }
    return v.dtype == list->dtype && v.shape == list->shape;
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
    const std::vector<ValueId> before = current_;
    std::vector<std::vector<ValueId>> left;  // the lists, one a way
    for (Program body : *from.bodies) {
      current_ = before;
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
      left.push_back(current_);
    }
    current_ = before;
    return SetOutputs(from, item, left, ids, at);
  }

  // A branch's outputs, but for those that are the same value in all ways.
  bool SetOutputs(const Call& from, TurnItem& item,
                  const std::vector<std::vector<ValueId>>& left, Ids& ids,
                  const Place& at) {
    std::vector<TurnWay>& ways = item.ways;
    const std::vector<ValueId> before = current_;
    item.call.outputs.clear();
    size_t kept = 0;
    for (size_t o = 0; o < from.outputs.size(); ++o) {
      const ValueId r = ways[0].results[o];
      bool same = true;
      const int list = tree_->list_of[r];
      for (size_t w = 0; w < ways.size(); ++w) {
        const ValueId other = ways[w].results[o];
        if (tree_->list_of[other] != list ||
            (list >= 0 ? left[w][list] != other : !SameKind(other, r))) {
          return false;
        }
        same = same && other == r;
      }
      if (same) {
        ids[from.outputs[o]] = r;
        continue;
      }
      ProgramValue out = value(r);
      out.constant = Tensor();
      const ValueId v = NewValue(out, at.block->id);
      ids[from.outputs[o]] = v;
      if (list >= 0) {
        if (current_[list] != before[list]) return false;  // twice
        tree_->list_of[v] = list;
        current_[list] = v;
        continue;
      }
      if (!tree_->IsSmall(v)) return false;
      item.call.outputs.push_back(v);
      for (TurnWay& way : ways) way.results[kept] = way.results[o];
      ++kept;
    }
    for (TurnWay& way : ways) way.results.resize(kept);
    // No way may have changed what it does not give.
    for (size_t l = 0; l < current_.size(); ++l) {
      for (const std::vector<ValueId>& way : left) {
        if (way[l] != before[l] && current_[l] == before[l]) return false;
      }
    }
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
    const std::vector<ValueId> before = current_;
    if (!ReadCalls(test, test_ids, inner) || current_ != before) return false;
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
    const std::vector<ValueId> before = current_;
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
      turn_ids[turn.feeds[i]] = v;
      if (const int list = tree_->list_of[given[i]]; list >= 0) {
        if (current_[list] != given[i]) return false;
        tree_->list_of[v] = list;
        current_[list] = v;
        continue;
      }
      if (!tree_->IsSmall(v)) return false;
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
    std::vector<bool> is_variable(current_.size());
    for (size_t i = 0; i < n; ++i) {
      if (steady(i)) continue;
      const ValueId next = IdOf(turn, turn.fetches[i], turn_ids);
      if (const int list = tree_->list_of[given[i]]; list >= 0) {
        if (current_[list] != next) return false;
        const ValueId last = NewValue(value(given[i]), at.block->id);
        ids[from.outputs[i]] = last;
        tree_->list_of[last] = list;
        current_[list] = last;
        is_variable[list] = true;
        continue;
      }
      if (!SameKind(next, given[i])) return false;
      loop.next.push_back(next);
    }
    for (size_t l = 0; l < current_.size(); ++l) {
      if (current_[l] != before[l] && !is_variable[l]) return false;
    }
    loop.truth = IdOf(turn, turn.fetches[n], turn_ids);
    return IsTruth(loop.truth);
  }

  const Program& turn_;
  std::unique_ptr<TurnTree> tree_ = std::make_unique<TurnTree>();
  std::vector<ValueId> current_;  // per list: its latest value
  std::vector<bool> once_;        // per value: made once, before a loop's turns
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
