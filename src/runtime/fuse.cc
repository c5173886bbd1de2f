// The fusing pass: chains of element-wise calls become one call, together with
// a product that they follow. Reshapes between them do not part them.
#include "absl/container/flat_hash_map.h"
#include "op/op.h"
#include "op/registry.h"
#include "runtime/fused_kernel.h"
#include "runtime/product_chain.h"
#include "runtime/program.h"

namespace headrace {
namespace {

constexpr int kMostInstructions = 96;

HR_OP(_FusedElementwise)
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 1")
    .Doc("A chain of element-wise ops, made by the fusing pass.");

HR_OP(_FusedProduct)
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 1")
    .Doc("A product and a chain of element-wise ops, made by the fusing pass.");

// The shape as rows x inner against which operands are rows or columns;
// inner 0: not decided yet (all operands full or scalar so far).
struct Group {
  int64_t count = 0;  // elements of every result
  int64_t inner = 0;
  std::vector<int> calls;
  bool open = true;
  int merged_into = -1;
};

// The operand's layout in a group of `shape`; false when there is none. Sets
// *inner for rows and columns.
bool LayoutOf(const Shape& operand, const Shape& shape, Layout* layout,
              int64_t* inner) {
  int64_t count = operand.num_elements(), all = shape.num_elements();
  *inner = 0;
  int lead = shape.rank() - operand.rank();
  if (lead < 0) return false;
  if (count == all) {
    *layout = Layout::kFull;
    return true;
  }
  if (count == 1) {
    *layout = Layout::kScalar;
    return true;
  }
  // A row: equal trailing dims behind ones. A column: equal leading dims
  // before ones.
  auto dim = [&](int i) { return i < lead ? 1 : operand[i - lead]; };
  int first = 0, last = shape.rank();
  while (first < shape.rank() && dim(first) == 1) ++first;
  while (last > 0 && dim(last - 1) == 1) --last;
  bool row = true, column = true;
  for (int i = first; i < shape.rank(); ++i) row = row && dim(i) == shape[i];
  for (int i = 0; i < last; ++i) column = column && dim(i) == shape[i];
  if (row) {
    *layout = Layout::kRow;
    *inner = count;
    return true;
  }
  if (column) {
    *layout = Layout::kColumn;
    *inner = all / count;
    return true;
  }
  return false;
}

bool IsReshape(const std::string& op) {
  return op == "Reshape" || op == "ExpandDims" || op == "Squeeze";
}

bool IsProduct(const std::string& op) {
  return op == "MatMul" || op == "Conv2D" || op == "DepthwiseConv2dNative";
}

class Fuser {
 public:
  explicit Fuser(Program& p)
      : p_(p),
        group_of_value_(p.values.size(), -1),
        uses_(p.values.size()),
        maker_(p.values.size(), -1),
        base_(p.values.size()) {}

  Status Run() {
    FindBases();
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      HR_RETURN_IF_ERROR(Visit(static_cast<int>(i)));
    }
    for (Group& g : groups_) {
      if (g.merged_into < 0) HR_RETURN_IF_ERROR(Build(g));
    }
    MoveReshapes();
    std::erase_if(p_.calls, [](const Call& c) { return c.dead; });
    return OkStatus();
  }

 private:
  // What is being made of a group.
  struct Parts {
    Call call;
    std::vector<DType> in_types, out_types;
    std::vector<FusedKernel::Input> inputs;
    std::vector<ValueId> loaded;  // per input register
    std::vector<FusedKernel::Instruction> code;
    int registers = 0;
    double cost = 0;
  };

  // Reshapes of known shapes are the value that they look at.
  void FindBases() {
    reshape_.resize(p_.calls.size());
    for (size_t v = 0; v < base_.size(); ++v) {
      base_[v] = static_cast<ValueId>(v);
    }
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      const Call& call = p_.calls[i];
      for (ValueId v : call.outputs) maker_[v] = static_cast<int>(i);
      if (IsReshape(call.op->name())) {
        const ProgramValue& in = p_.values[call.inputs[0]];
        const ProgramValue& out = p_.values[call.outputs[0]];
        reshape_[i] = in.shape.fully_known() && out.shape.fully_known() &&
                      in.shape.num_elements() == out.shape.num_elements() &&
                      IsPlain(in.dtype) && IsKnownReshape(call);
      }
      if (reshape_[i]) {
        base_[call.outputs[0]] = base_[call.inputs[0]];
        if (call.inputs.size() > 1) ++uses_[base_[call.inputs[1]]];
        continue;
      }
      for (ValueId v : call.inputs) ++uses_[base_[v]];
    }
    for (ValueId v : p_.fetches) ++uses_[base_[v]];
  }

  // False where the run may find another shape than tracing guessed.
  bool IsKnownReshape(const Call& call) const {
    return call.inputs.size() == 1 ||
           p_.values[call.inputs[1]].constant.has_buffer();
  }

  int Find(int g) {
    while (g >= 0 && groups_[g].merged_into >= 0) g = groups_[g].merged_into;
    return g;
  }
  int GroupOf(ValueId v) { return Find(group_of_value_[base_[v]]); }

  // Binds the kernel where it may be element-wise or a product.
  Status Candidate(Call& call, bool* yes) {
    *yes = false;
    if (call.outputs.size() != 1 || call.effect) return OkStatus();
    const Shape& shape = p_.values[call.outputs[0]].shape;
    if (!shape.fully_known() || shape.num_elements() == 0) return OkStatus();
    if (!IsPlain(p_.values[call.outputs[0]].dtype)) return OkStatus();
    const bool product = IsProduct(call.op->name());
    if (!call.op->def().in_place_inputs && !product) return OkStatus();
    for (ValueId v : call.inputs) {
      if (!p_.values[v].shape.fully_known()) return OkStatus();
    }
    StatusOr<std::unique_ptr<Kernel>> kernel = BindKernel(*call.op);
    if (!kernel.ok()) return OkStatus();  // reported when all are bound
    call.kernel = *std::move(kernel);
    const ElementwiseLoop* loop = call.kernel->elementwise();
    *yes =
        loop != nullptr && loop->fn != nullptr &&
        call.inputs.size() == (loop->kind == ElementwiseLoop::kUnary ? 1u : 2u);
    return OkStatus();
  }

  // True when every operand of the call fits `g`; *inner is what it needs.
  bool Fits(const Call& call, const Group& g, int64_t* inner) {
    const Shape& shape = p_.values[call.outputs[0]].shape;
    if (shape.num_elements() != g.count) return false;
    *inner = g.inner;
    for (ValueId v : call.inputs) {
      Layout layout;
      int64_t wanted;
      if (!LayoutOf(p_.values[v].shape, shape, &layout, &wanted)) return false;
      if (wanted == 0) continue;
      if (*inner != 0 && *inner != wanted) return false;
      *inner = wanted;
    }
    return true;
  }

  Status Visit(int index) {
    Call& call = p_.calls[index];
    if (reshape_[index]) return OkStatus();
    bool candidate;
    HR_RETURN_IF_ERROR(Candidate(call, &candidate));
    const int joined = candidate ? Join(call) : -1;
    // Who is read from outside must be done by now: nothing joins it later.
    for (ValueId v : call.inputs) {
      int g = GroupOf(v);
      if (g >= 0 && g != joined) groups_[g].open = false;
    }
    if (joined >= 0) {
      groups_[joined].calls.push_back(index);
      group_of_value_[call.outputs[0]] = joined;
    }
    return OkStatus();
  }

  // The group that takes the call: of one of its operands, or a new one; -1
  // for none.
  int Join(const Call& call) {
    int joined = -1;
    int64_t inner = 0;
    for (ValueId v : call.inputs) {
      int g = GroupOf(v);
      if (g < 0 || !groups_[g].open || g == joined) continue;
      if (joined >= 0) {
        Merge(joined, g);
      } else if (groups_[g].calls.size() < kMostInstructions &&
                 Fits(call, groups_[g], &inner)) {
        joined = g;
        groups_[g].inner = inner;
      }
    }
    if (joined >= 0) return joined;
    Group fresh;
    fresh.count = p_.values[call.outputs[0]].shape.num_elements();
    if (!Fits(call, fresh, &inner)) return -1;
    fresh.inner = inner;
    groups_.push_back(std::move(fresh));
    return static_cast<int>(groups_.size()) - 1;
  }

  void Merge(int into, int g) {
    Group &a = groups_[into], &b = groups_[g];
    if (a.count != b.count ||
        a.calls.size() + b.calls.size() > kMostInstructions ||
        (a.inner && b.inner && a.inner != b.inner)) {
      return;
    }
    if (b.inner) a.inner = b.inner;
    a.calls.insert(a.calls.end(), b.calls.begin(), b.calls.end());
    std::sort(a.calls.begin(), a.calls.end());
    b.calls.clear();
    b.merged_into = into;
  }

  // The latest product that only the group reads, fit to have it as its tail;
  // -1 for none. `inside`: uses by the group.
  int HostOf(const Group& g, const absl::flat_hash_map<ValueId, int>& inside) {
    int host = -1;
    for (const auto& [v, count] : inside) {
      const int i = maker_[v];
      if (i <= host || uses_[v] != count || p_.calls[i].dead) continue;
      const Call& call = p_.calls[i];
      if (!IsProduct(call.op->name()) || call.effect || !call.kernel) continue;
      const auto* product = dynamic_cast<ProductKernel*>(call.kernel.get());
      const Shape& shape = p_.values[v].shape;
      if (product == nullptr || !product->tells_rows()) continue;
      const int64_t n = shape[shape.rank() - 1];
      if (shape.num_elements() != g.count || (g.inner && g.inner != n)) {
        continue;
      }
      host = i;
    }
    return host;
  }

  // Replaces the group's last call by the fused one; the others are dead.
  Status Build(const Group& g) {
    absl::flat_hash_map<ValueId, int> inside;  // uses by the group itself
    for (int i : g.calls) {
      for (ValueId v : p_.calls[i].inputs) ++inside[base_[v]];
    }
    const int host = HostOf(g, inside);
    if (g.calls.size() + (host >= 0) < 2) return OkStatus();
    const ValueId product = host < 0 ? kNoValue : p_.calls[host].outputs[0];
    Parts parts;
    absl::flat_hash_map<std::pair<ValueId, Layout>, int16_t> reg;
    Load(g, &parts, &reg);
    for (int i : g.calls) Write(i, inside, &parts, &reg);
    Call& last = p_.calls[g.calls.back()];
    if (parts.call.outputs.empty()) return OkStatus();
    parts.call.name = last.name;
    const int64_t inner = g.inner ? g.inner : g.count;
    auto chain = std::make_unique<FusedKernel>(
        std::move(parts.inputs), std::move(parts.code), parts.registers,
        g.count / inner, inner, parts.cost);
    if (host >= 0) {
      AddProduct(p_.calls[host], product, std::move(chain), &parts);
    } else {
      parts.call.kernel = std::move(chain);
      parts.call.inputs.assign(parts.loaded.begin(), parts.loaded.end());
    }
    for (ValueId v : parts.call.inputs) {
      parts.in_types.push_back(p_.values[v].dtype);
    }
    HR_ASSIGN_OR_RETURN(
        const OpDef* def,
        LookUpOp(host >= 0 ? "_FusedProduct" : "_FusedElementwise"));
    HR_ASSIGN_OR_RETURN(parts.call.op, ResolveOp(*def, parts.in_types,
                                                 {{"Tout", parts.out_types}}));
    for (ValueId v : parts.call.outputs) moved_to_[v] = g.calls.back();
    last = std::move(parts.call);
    return OkStatus();
  }

  // Registers of what the group reads and does not make.
  void Load(const Group& g, Parts* parts,
            absl::flat_hash_map<std::pair<ValueId, Layout>, int16_t>* reg) {
    absl::flat_hash_map<ValueId, bool> made;
    for (int i : g.calls) made[p_.calls[i].outputs[0]] = true;
    for (int i : g.calls) {
      const Call& call = p_.calls[i];
      for (ValueId v : call.inputs) {
        if (made.contains(base_[v])) continue;
        const auto key = std::make_pair(base_[v], LayoutIn(call, v));
        auto [it, added] =
            reg->emplace(key, static_cast<int16_t>(parts->loaded.size()));
        if (!added) continue;
        parts->loaded.push_back(base_[v]);
        parts->inputs.push_back(
            {key.second, static_cast<uint8_t>(DTypeSize(p_.values[v].dtype))});
      }
    }
    parts->registers = static_cast<int>(parts->loaded.size());
  }

  Layout LayoutIn(const Call& call, ValueId operand) {
    Layout layout = Layout::kFull;
    int64_t inner;
    LayoutOf(p_.values[operand].shape, p_.values[call.outputs[0]].shape,
             &layout, &inner);
    return layout;
  }

  // Call i as an instruction.
  void Write(int i, const absl::flat_hash_map<ValueId, int>& inside,
             Parts* parts,
             absl::flat_hash_map<std::pair<ValueId, Layout>, int16_t>* reg) {
    Call& call = p_.calls[i];
    const ValueId out = call.outputs[0];
    const ElementwiseLoop* loop = call.kernel->elementwise();
    auto of = [&](ValueId v) { return reg->at({base_[v], LayoutIn(call, v)}); };
    FusedKernel::Instruction ins;
    ins.fn = const_cast<void*>(loop->fn);  // casts to its type drop const
    ins.kind = loop->kind;
    ins.a = of(call.inputs[0]);
    ins.b = loop->kind == ElementwiseLoop::kBinary ? of(call.inputs[1]) : ins.a;
    ins.y = static_cast<int16_t>(parts->registers++);
    (*reg)[{out, Layout::kFull}] = ins.y;
    ins.bytes = static_cast<uint8_t>(DTypeSize(p_.values[out].dtype));
    ins.output = -1;
    auto used = inside.find(out);
    if (uses_[out] > (used == inside.end() ? 0 : used->second)) {
      ins.output = static_cast<int16_t>(parts->call.outputs.size());
      parts->call.outputs.push_back(out);
      parts->out_types.push_back(p_.values[out].dtype);
    }
    parts->cost += loop->cost;
    ins.kernel = call.kernel;
    parts->code.push_back(std::move(ins));
    call.dead = true;
  }

  // Puts the product before the chain.
  void AddProduct(Call& host, ValueId product,
                  std::unique_ptr<FusedKernel> chain, Parts* parts) {
    ProductChain::Parts made;
    made.op = host.op;
    made.product = std::dynamic_pointer_cast<ProductKernel>(host.kernel);
    made.shape = p_.values[product].shape;
    made.host = HostOutput(*chain, parts->loaded, product);
    parts->call.inputs = host.inputs;
    for (ValueId v : parts->loaded) {
      if (v == product) {
        made.chain_inputs.push_back(-1);
        continue;
      }
      made.chain_inputs.push_back(static_cast<int>(parts->call.inputs.size()));
      parts->call.inputs.push_back(v);
    }
    made.chain = std::move(chain);
    parts->call.kernel = std::make_shared<ProductChain>(std::move(made));
    host.dead = true;
  }

  // An output of the chain that is not stored before the product was last
  // read; -1 for none.
  static int HostOutput(const FusedKernel& chain,
                        const std::vector<ValueId>& loaded, ValueId product) {
    int last_read = -1, host = -1;
    const auto& code = chain.code();
    for (size_t i = 0; i < code.size(); ++i) {
      for (int16_t r : {code[i].a, code[i].b}) {
        if (r < static_cast<int16_t>(loaded.size()) && loaded[r] == product) {
          last_read = static_cast<int>(i);
        }
      }
    }
    for (size_t i = std::max(last_read, 0); i < code.size(); ++i) {
      if (code[i].output >= 0 && code[i].bytes == sizeof(float)) {
        host = code[i].output;
      }
    }
    return host;
  }

  // Reshapes of what fused calls make now follow these.
  void MoveReshapes() {
    std::vector<std::vector<int>> behind(p_.calls.size());
    bool any = false;
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      if (!reshape_[i]) continue;
      auto to = moved_to_.find(base_[p_.calls[i].outputs[0]]);
      if (to == moved_to_.end() || to->second < static_cast<int>(i)) continue;
      behind[to->second].push_back(static_cast<int>(i));
      any = true;
    }
    if (!any) return;
    std::vector<bool> moves(p_.calls.size());
    for (const auto& list : behind) {
      for (int i : list) moves[i] = true;
    }
    std::vector<Call> ordered;
    ordered.reserve(p_.calls.size());
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      if (!moves[i]) ordered.push_back(std::move(p_.calls[i]));
      for (int r : behind[i]) ordered.push_back(std::move(p_.calls[r]));
    }
    p_.calls = std::move(ordered);
  }

  Program& p_;
  std::vector<Group> groups_;
  std::vector<int> group_of_value_;
  std::vector<int> uses_;      // of a value or reshapes of it
  std::vector<int> maker_;     // the call that makes a value
  std::vector<ValueId> base_;  // what a reshape looks at, else itself
  std::vector<bool> reshape_;  // per call
  absl::flat_hash_map<ValueId, int> moved_to_;  // where a fused call makes it
};

}  // namespace

Status FuseElementwise(Program& p) {
  HR_RETURN_IF_ERROR(Fuser(p).Run());
  DropUnused(p);  // reshapes that nobody reads any more
  return OkStatus();
}

}  // namespace headrace
