// Batches of matrix products take their operands as they lie: transpositions
// before and behind them, and the parts of what was stacked, are folded into
// strides. Attention is full of these.
#include "op/registry.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// The batch of products that takes its operands through strides; null where it
// is not linked.
const OpDef* ViewedProduct() {
  static const OpDef* const viewed = [] {
    for (const OpDef* op : OpsOfRole(OpRole::kBatchMatMul)) {
      if (op->FindAttr("x_order")) return op;
    }
    return static_cast<const OpDef*>(nullptr);
  }();
  return viewed;
}

class Viewer {
 public:
  explicit Viewer(Program& p)
      : p_(p),
        uses_(p.values.size()),
        products_(p.values.size()),
        maker_(p.values.size(), -1),
        reader_(p.values.size(), -1) {
    for (size_t i = 0; i < p.calls.size(); ++i) {
      const Call& call = p.calls[i];
      for (ValueId v : call.inputs) {
        ++uses_[v];
        reader_[v] = static_cast<int>(i);
        if (IsBatch(call)) ++products_[v];
      }
      for (ValueId v : call.outputs) maker_[v] = static_cast<int>(i);
    }
    for (ValueId v : p.fetches) ++uses_[v];
  }

  void Run() {
    bool any = false;
    for (Call& call : p_.calls) {
      if (!call.dead && IsBatch(call)) any = Rewrite(call) || any;
    }
    if (any) DropUnused(p_);
  }

 private:
  // How an operand comes about.
  struct Look {
    ValueId from;
    int64_t axis = -1, index = 0;
    std::vector<int64_t> order;
  };

  const Shape& shape(ValueId v) const { return p_.values[v].shape; }

  // Batches of known, equal batch dimensions.
  bool IsBatch(const Call& call) const {
    const OpDef& def = call.op->def();
    if (!def.Is(OpRole::kBatchMatMul) || &def == ViewedProduct() ||
        call.effect || call.kernel) {
      return false;
    }
    const DType d = call.op->type_attr("T");
    if (d != DType::kFloat && d != DType::kDouble) return false;
    const Shape &x = shape(call.inputs[0]), &y = shape(call.inputs[1]);
    return x.fully_known() && y.fully_known() && x.rank() == y.rank() &&
           x.rank() > 2 && shape(call.outputs[0]).fully_known() &&
           x.Sub(0, -2) == y.Sub(0, -2);
  }

  // The constant order of a transposition of a known shape.
  bool OrderOf(const Call& call, std::vector<int64_t>* order) const {
    if (!call.op->def().Is(OpRole::kTranspose) || call.effect) return false;
    const Tensor& t = p_.values[call.inputs[1]].constant;
    const Shape& s = shape(call.inputs[0]);
    if (!t.has_buffer() || !s.fully_known() || t.num_elements() != s.rank() ||
        !shape(call.outputs[0]).fully_known()) {
      return false;
    }
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      order->push_back(t.IntAt(i) < 0 ? t.IntAt(i) + s.rank() : t.IntAt(i));
    }
    return true;
  }

  Look LookAt(ValueId v) const {
    Look look{v};
    // Read by something else as well, the transposed operand is made anyhow;
    // then it is the faster one.
    if (maker_[v] < 0 || uses_[v] != products_[v]) return look;
    const Call* call = &p_.calls[maker_[v]];
    if (call->dead) return look;  // its product was the first to take it
    std::vector<int64_t> order;
    if (OrderOf(*call, &order)) {
      // Rows or columns stay contiguous.
      const auto last = static_cast<int64_t>(order.size()) - 1;
      if (order[last] != last && order[last - 1] != last) return look;
      look.from = call->inputs[0];
      look.order = std::move(order);
      if (maker_[look.from] < 0) return look;
      call = &p_.calls[maker_[look.from]];
    }
    if (!call->op->def().Is(OpRole::kUnpack) || call->effect) return look;
    const Shape& all = shape(call->inputs[0]);
    if (!all.fully_known() || !shape(call->outputs[0]).fully_known()) {
      return look;
    }
    int64_t axis = call->op->int_attr("axis");
    if (axis < 0) axis += all.rank();
    // Columns of what was stacked along the last axis are not contiguous.
    if (axis == all.rank() - 1) return look;
    for (size_t i = 0; i < call->outputs.size(); ++i) {
      if (call->outputs[i] == look.from) look.index = static_cast<int64_t>(i);
    }
    look.axis = axis;
    look.from = call->inputs[0];
    return look;
  }

  // The one transposition that reads the product, columns staying last; -1
  // for none.
  int Behind(ValueId product, std::vector<int64_t>* order) const {
    const int reader = reader_[product];
    if (uses_[product] != 1 || reader < 0) return -1;
    if (!OrderOf(p_.calls[reader], order)) return -1;
    const auto last = static_cast<int64_t>(order->size()) - 1;
    return order->back() == last && !p_.calls[reader].dead ? reader : -1;
  }

  bool Rewrite(Call& call) {
    Look x = LookAt(call.inputs[0]), y = LookAt(call.inputs[1]);
    std::vector<int64_t> order;
    const int behind = Behind(call.outputs[0], &order);
    if (behind < 0) order.clear();
    if (x.from == call.inputs[0] && y.from == call.inputs[1] && behind < 0) {
      return false;
    }
    const OpDef* def = ViewedProduct();
    if (def == nullptr) return false;
    auto op = ResolveOp(*def, call.op->input_types(),
                        {{"adj_x", call.op->bool_attr("adj_x")},
                         {"adj_y", call.op->bool_attr("adj_y")},
                         {"x_axis", x.axis},
                         {"x_index", x.index},
                         {"x_order", std::move(x.order)},
                         {"y_axis", y.axis},
                         {"y_index", y.index},
                         {"y_order", std::move(y.order)},
                         {"out_order", order}});
    if (!op.ok()) return false;
    call.op = *std::move(op);
    call.inputs = {x.from, y.from};
    if (behind >= 0) {
      call.outputs[0] = p_.calls[behind].outputs[0];
      p_.calls[behind].dead = true;
      p_.calls[behind].outputs.clear();
    }
    return true;
  }

  Program& p_;
  std::vector<int> uses_;
  std::vector<int> products_;  // uses by batches of products
  std::vector<int> maker_;
  std::vector<int> reader_;  // the last call that reads a value
};

}  // namespace

void ViewOperands(Program& p) { Viewer(p).Run(); }

}  // namespace headrace
