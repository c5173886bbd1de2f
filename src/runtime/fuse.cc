// The fusing pass: chains of element-wise calls and reductions of their rows
// become one call, together with a product that they follow. Reshapes between
// them do not part them; columns that are split off are read where they lie.
#include "base/hash_map.h"
#include "runtime/column_parts.h"
#include "runtime/fused_kernel.h"
#include "runtime/plan_op.h"
#include "runtime/prepared_weights.h"
#include "runtime/product_chain.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// Registers of a tile must fit in the cache: 96 instructions of 512 floats are
// 192 KiB at worst. Longer chains become several calls.
constexpr int kMostInstructions = 96;
// Rows that are reduced while they are in the cache: elements of one, and how
// many there are at least. (Few rows are cut by the reduction itself.)
constexpr double kReduceNs = 0.1;  // an element
// Short rows spend their time in the beginnings and ends of their loops; 8,192
// floats are 32 KiB, a core's first cache.
constexpr int64_t kLeastRow = 48, kMostRow = 8192, kLeastRows = 16;

// What a call is to a group.
enum class Role : uint8_t {
  kNone,
  kFull,    // one element an element
  kColumn,  // one a row
  kReduce,  // a row to one element
};

// A chain of element-wise ops, without and with a product before it.
const OpDef& FusedOp(bool with_product) {
  static const OpDef* const chain = NewPlanOp("_FusedElementwise");
  static const OpDef* const product = NewPlanOp("_FusedProduct");
  return with_product ? *product : *chain;
}

// The shape as rows x inner against which operands are rows or columns;
// inner 0: not decided yet (all operands full or scalar so far).
struct Group {
  int64_t count = 0;  // elements of every result
  int64_t inner = 0;
  std::vector<int> calls;
  bool open = true;
  bool reduces = false;         // inner is decided
  int join = -1;                // the call that joins some of its results
  std::vector<ValueId> joined;  // these, in order
  int merged_into = -1;
};

bool IsReduction(const Call& call) {
  return call.op->def().Has(OpTrait::kRowReduction);
}

class Fuser {
 public:
  explicit Fuser(Program& p)
      : p_(p),
        group_of_value_(p.values.size(), -1),
        uses_(p.values.size()),
        maker_(p.values.size(), -1),
        base_(p.values.size()),
        is_column_(p.values.size()),
        steady_(SteadyValues(p)),
        role_(p.calls.size(), Role::kNone) {}

  Status Run() {
    FindBases();
    part_ = ColumnParts(p_);
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
      if (call.op->def().Has(OpTrait::kReshapes)) {
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
    // Effects keep their order among one another, which a fused call would
    // change.
    if (call.outputs.size() != 1 || call.effect) return OkStatus();
    const Shape& shape = p_.values[call.outputs[0]].shape;
    // Layouts, tiles and the reductions' rows are decided now, once.
    if (!shape.fully_known() || shape.num_elements() == 0) return OkStatus();
    if (!IsPlain(p_.values[call.outputs[0]].dtype)) return OkStatus();
    const OpDef& def = call.op->def();
    if (!def.in_place_inputs && !def.Has(OpTrait::kTakesTail) &&
        !IsReduction(call)) {
      return OkStatus();
    }
    for (ValueId v : call.inputs) {
      if (!p_.values[v].shape.fully_known()) return OkStatus();
    }
    if (!BindCall(call).ok()) return OkStatus();  // reported by the last bind
    if (IsRowReduction(call)) {
      *yes = true;
      return OkStatus();
    }
    const ElementwiseLoop* loop = call.kernel->elementwise();
    *yes =
        loop != nullptr && loop->fn != nullptr &&
        call.inputs.size() == (loop->kind == ElementwiseLoop::kUnary ? 1u : 2u);
    return OkStatus();
  }

  // True for a reduction of the last dimension that may join a group. Its
  // kernel is bound.
  bool IsRowReduction(const Call& call) const {
    if (dynamic_cast<RowReducer*>(call.kernel.get()) == nullptr) return false;
    const Shape& shape = p_.values[call.inputs[0]].shape;
    const Tensor& axes = p_.values[call.inputs[1]].constant;
    if (!axes.has_buffer() || axes.num_elements() != 1 || shape.rank() < 1) {
      return false;
    }
    const int64_t axis = axes.IntAt(0), row = shape[shape.rank() - 1];
    return (axis == -1 || axis == shape.rank() - 1) && row >= kLeastRow &&
           row <= kMostRow && shape.num_elements() / row >= kLeastRows;
  }

  // What the call could be to `g`; *inner is what it needs.
  Role RoleIn(const Call& call, const Group& g, int64_t* inner) {
    const Shape& shape = p_.values[call.outputs[0]].shape;
    *inner = g.inner;
    if (IsReduction(call)) {
      const Shape& in = p_.values[call.inputs[0]].shape;
      const int64_t row = in[in.rank() - 1];
      if (in.num_elements() != g.count || (g.inner && g.inner != row)) {
        return Role::kNone;
      }
      *inner = row;
      return Role::kReduce;
    }
    if (shape.num_elements() == g.count) {
      return FitsFull(call, g.count, inner) ? Role::kFull : Role::kNone;
    }
    return g.reduces && FitsColumn(call, g.count / g.inner) ? Role::kColumn
                                                            : Role::kNone;
  }

  // True when every operand fits a result of the group's own shape.
  bool FitsFull(const Call& call, int64_t count, int64_t* inner) {
    const Shape& shape = p_.values[call.outputs[0]].shape;
    for (ValueId v : call.inputs) {
      Layout layout;
      int64_t wanted;
      if (!LayoutOf(p_.values[v].shape, shape, &layout, &wanted)) return false;
      // A column of this group, or of one that may be merged with it.
      if (is_column_[base_[v]] && layout != Layout::kColumn &&
          groups_[GroupOf(v)].count == count) {
        return false;
      }
      if (wanted == 0) continue;
      if (*inner != 0 && *inner != wanted) return false;
      *inner = wanted;
    }
    return true;
  }

  // True when every operand has an element a row, or only one.
  bool FitsColumn(const Call& call, int64_t rows) {
    const Shape& shape = p_.values[call.outputs[0]].shape;
    if (shape.num_elements() != rows) return false;
    for (ValueId v : call.inputs) {
      const int64_t count = p_.values[v].shape.num_elements();
      if (count != rows && count != 1) return false;
    }
    return true;
  }

  Status Visit(int index) {
    Call& call = p_.calls[index];
    if (reshape_[index] || TakeJoin(index)) return OkStatus();
    bool candidate;
    HR_RETURN_IF_ERROR(Candidate(call, &candidate));
    const int joined = candidate ? Join(call, &role_[index]) : -1;
    // Who is read from outside must be done by now: nothing joins it later.
    for (ValueId v : call.inputs) {
      int g = GroupOf(v);
      if (g >= 0 && g != joined) groups_[g].open = false;
    }
    if (joined >= 0) {
      groups_[joined].calls.push_back(index);
      group_of_value_[call.outputs[0]] = joined;
      is_column_[call.outputs[0]] = role_[index] != Role::kFull;
    }
    return OkStatus();
  }

  // The group that takes the call in *role: of one of its operands, or a new
  // one; -1 for none.
  int Join(const Call& call, Role* role) {
    int joined = -1;
    int64_t inner = 0;
    for (ValueId v : Operands(call)) {
      int g = GroupOf(v);
      if (g < 0 || !groups_[g].open || g == joined) continue;
      if (joined >= 0) {
        if (!EachHasAProduct(groups_[joined], groups_[g])) Merge(joined, g);
        continue;
      }
      if (groups_[g].calls.size() >= kMostInstructions) continue;
      *role = RoleIn(call, groups_[g], &inner);
      if (*role == Role::kNone) continue;
      joined = g;
      groups_[g].inner = inner;
    }
    if (joined < 0) {
      Group fresh;
      const bool reduces = IsReduction(call);
      fresh.count = p_.values[reduces ? call.inputs[0] : call.outputs[0]]
                        .shape.num_elements();
      *role = RoleIn(call, fresh, &inner);
      if (*role == Role::kNone) return -1;
      fresh.inner = inner;
      groups_.push_back(std::move(fresh));
      joined = static_cast<int>(groups_.size()) - 1;
    }
    if (*role == Role::kReduce) groups_[joined].reduces = true;
    return joined;
  }

  // What the call computes with: not a reduction's axes.
  static absl::Span<const ValueId> Operands(const Call& call) {
    absl::Span<const ValueId> all = call.inputs;
    return IsReduction(call) ? all.subspan(0, 1) : all;
  }

  // Takes call `index`, which joins results of groups by columns, as the end of
  // their group: these are stored where it wants them.
  bool TakeJoin(int index) {
    std::vector<ValueId> values = JoinedColumns(p_, p_.calls[index]);
    int hosts = 0;
    std::vector<int> found;
    for (ValueId v : values) {
      const int g = GroupOf(v);
      if (g < 0 || !groups_[g].open || is_column_[base_[v]] ||
          std::count(values.begin(), values.end(), v) > 1) {
        return false;
      }
      const Shape& shape = p_.values[v].shape;
      const int64_t width = shape[shape.rank() - 1];
      if (shape.num_elements() != groups_[g].count ||
          (groups_[g].inner && groups_[g].inner != width)) {
        return false;
      }
      if (std::find(found.begin(), found.end(), g) == found.end()) {
        found.push_back(g);
        hosts += ReadsProduct(groups_[g]);
      }
    }
    // A group is the tail of one product at most.
    if (values.empty() || (found.size() > 1 && hosts > 0)) return false;
    const int group = found[0];
    for (int g : found) {
      if (g != group) Merge(group, g);
    }
    for (int g : found) {
      if (Find(g) != group) return false;  // they are too long together
    }
    const Shape& shape = p_.values[values[0]].shape;
    groups_[group].inner = shape[shape.rank() - 1];
    groups_[group].join = index;
    groups_[group].joined = std::move(values);
    groups_[group].open = false;
    return true;
  }

  bool ReadsProduct(const Group& g, bool handed = false) const {
    for (int i : g.calls) {
      for (ValueId v : Operands(p_.calls[i])) {
        const int made = maker_[base_[v]];
        if (made < 0 || !p_.calls[made].op->def().Has(OpTrait::kTakesTail)) {
          continue;
        }
        const auto* product =
            dynamic_cast<ProductKernel*>(p_.calls[made].kernel.get());
        if (!handed || (product && product->hands_rows())) return true;
      }
    }
    return false;
  }
  // Two convolutions do what is behind each of them by themselves.
  bool EachHasAProduct(const Group& a, const Group& b) const {
    return ReadsProduct(a, true) && ReadsProduct(b, true);
  }

  void Merge(int into, int g) {
    Group &a = groups_[into], &b = groups_[g];
    if (a.count != b.count ||
        a.calls.size() + b.calls.size() > kMostInstructions ||
        (a.inner && b.inner && a.inner != b.inner)) {
      return;
    }
    if (b.inner) a.inner = b.inner;
    a.reduces = a.reduces || b.reduces;
    a.calls.insert(a.calls.end(), b.calls.begin(), b.calls.end());
    std::sort(a.calls.begin(), a.calls.end());
    b.calls.clear();
    b.merged_into = into;
  }

  // The latest product that only the group reads, fit to have it as its tail;
  // -1 for none. `inside`: uses by the group.
  int HostOf(const Group& g, const HashMap<ValueId, int>& inside) {
    int host = -1;
    for (const auto& [v, count] : inside) {
      const int i = maker_[v];
      // The latest, as all that the chain reads must be made before it; read by
      // nobody else, as its result is never stored as a whole.
      if (i <= host || uses_[v] != count || p_.calls[i].dead) continue;
      const Call& call = p_.calls[i];
      if (!call.op->def().Has(OpTrait::kTakesTail) || call.effect ||
          !call.kernel) {
        continue;
      }
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

  // Makes the group one call; its others are dead.
  Status Build(const Group& g) {
    HashMap<ValueId, int> inside;  // uses by the group itself
    for (int i : g.calls) {
      for (ValueId v : Operands(p_.calls[i])) ++inside[base_[v]];
    }
    for (ValueId v : g.joined) ++inside[base_[v]];
    const int host = HostOf(g, inside);
    // A chain of one gains nothing: its own kernel is as fast, and reports
    // under its own name.
    if (g.calls.size() + (host >= 0) < 2) return OkStatus();
    const ValueId product = host < 0 ? kNoValue : p_.calls[host].outputs[0];
    Parts parts;
    HashMap<std::pair<ValueId, Layout>, int16_t> reg;
    const int64_t inner = InnerOf(g);
    Load(g, inner, &parts, &reg);
    for (int i : g.calls) Write(i, inside, &parts, &reg);
    if (g.join >= 0) WriteJoin(g, reg, &parts);
    const int place = PlaceOf(g, host, product, parts.loaded);
    if (parts.call.outputs.empty()) return OkStatus();
    parts.call.name = p_.calls[g.calls.back()].name;
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
    HR_ASSIGN_OR_RETURN(parts.call.op,
                        ResolveOp(FusedOp(host >= 0), parts.in_types,
                                  {{"Tout", parts.out_types}}));
    for (ValueId v : parts.call.outputs) moved_to_[v] = place;
    p_.calls[place] = std::move(parts.call);
    return OkStatus();
  }

  // Where the fused call goes: to its product's place when all that the chain
  // reads is made by then, as the product's operands are in the cache there
  // and need not be kept for long; else to the place of the last call.
  int PlaceOf(const Group& g, int host, ValueId product,
              const std::vector<ValueId>& loaded) {
    const int last = g.calls.back();
    if (host < 0) return last;
    for (ValueId v : loaded) {
      const int from = GroupOf(v);
      const int made = from >= 0 ? groups_[from].calls.back() : maker_[v];
      if (v != product && made > host) return last;
    }
    return host;
  }

  // Elements of a row: what operands want; else what parts of rows are, if the
  // group reads such; else all.
  int64_t InnerOf(const Group& g) const {
    if (g.inner) return g.inner;
    for (int i : g.calls) {
      for (ValueId v : Operands(p_.calls[i])) {
        const ColumnPart& part = part_[base_[v]];
        const Shape& shape = p_.values[base_[v]].shape;
        if (part.whole != kNoValue && shape.num_elements() == g.count) {
          return shape[shape.rank() - 1];
        }
      }
    }
    return g.count;
  }

  // How `v` is read in the layout `layout` by a group of rows of `inner`
  // elements; *from: what is to be loaded for that.
  FusedKernel::Input InputFor(ValueId v, Layout layout, int64_t inner,
                              ValueId* from) const {
    const Shape& shape = p_.values[v].shape;
    const auto bytes = static_cast<uint8_t>(DTypeSize(p_.values[v].dtype));
    const ColumnPart& part = part_[v];
    if (layout != Layout::kFull || part.whole == kNoValue ||
        shape[shape.rank() - 1] != inner) {
      *from = v;
      return {layout, bytes};
    }
    *from = base_[part.whole];
    return {Layout::kPart, bytes, part.first, part.width};
  }

  // Registers of what the group reads and does not make.
  void Load(const Group& g, int64_t inner, Parts* parts,
            HashMap<std::pair<ValueId, Layout>, int16_t>* reg) {
    HashMap<ValueId, bool> made;
    for (int i : g.calls) made[p_.calls[i].outputs[0]] = true;
    for (int i : g.calls) {
      const Call& call = p_.calls[i];
      for (ValueId v : Operands(call)) {
        if (made.contains(base_[v])) continue;
        const auto key = std::make_pair(base_[v], LayoutIn(i, v));
        auto [it, added] =
            reg->emplace(key, static_cast<int16_t>(parts->loaded.size()));
        if (!added) continue;
        ValueId from;
        parts->inputs.push_back(InputFor(base_[v], key.second, inner, &from));
        parts->loaded.push_back(from);
      }
    }
    parts->registers = static_cast<int>(parts->loaded.size());
  }

  // How call i, which is in a group, takes an operand.
  Layout LayoutIn(int i, ValueId operand) {
    const Shape& shape = p_.values[operand].shape;
    if (role_[i] == Role::kReduce) return Layout::kFull;
    if (role_[i] == Role::kColumn) {
      return shape.num_elements() == 1 ? Layout::kScalar : Layout::kColumn;
    }
    Layout layout = Layout::kFull;
    int64_t inner;
    LayoutOf(shape, p_.values[p_.calls[i].outputs[0]].shape, &layout, &inner);
    return layout;
  }

  // Call i as an instruction.
  void Write(int i, const HashMap<ValueId, int>& inside, Parts* parts,
             HashMap<std::pair<ValueId, Layout>, int16_t>* reg) {
    Call& call = p_.calls[i];
    const ValueId out = call.outputs[0];
    auto of = [&](ValueId v) { return reg->at({base_[v], LayoutIn(i, v)}); };
    FusedKernel::Instruction ins{};
    ins.a = ins.b = of(call.inputs[0]);
    ins.column = role_[i] != Role::kFull;
    ins.role = call.op->def().role;
    if (role_[i] == Role::kReduce) {
      ins.reducer = dynamic_cast<RowReducer*>(call.kernel.get());
      parts->cost += kReduceNs;
    } else {
      const ElementwiseLoop* loop = call.kernel->elementwise();
      ins.fn = const_cast<void*>(loop->fn);  // casts to its type drop const
      ins.kind = loop->kind;
      if (loop->kind == ElementwiseLoop::kBinary) ins.b = of(call.inputs[1]);
      if (!ins.column) parts->cost += loop->cost;
    }
    ins.y = static_cast<int16_t>(parts->registers++);
    (*reg)[{out, ins.column ? Layout::kColumn : Layout::kFull}] = ins.y;
    ins.bytes = static_cast<uint8_t>(DTypeSize(p_.values[out].dtype));
    ins.output = -1;
    auto used = inside.find(out);
    if (uses_[out] > (used == inside.end() ? 0 : used->second)) {
      ins.output = static_cast<int16_t>(parts->call.outputs.size());
      parts->call.outputs.push_back(out);
      parts->out_types.push_back(p_.values[out].dtype);
    }
    ins.kernel = call.kernel;
    parts->code.push_back(std::move(ins));
    call.dead = true;
  }

  // Has what the group's join reads stored where that wants it.
  void WriteJoin(const Group& g,
                 const HashMap<std::pair<ValueId, Layout>, int16_t>& reg,
                 Parts* parts) {
    Call& join = p_.calls[g.join];
    int64_t first = 0;
    for (ValueId v : g.joined) {
      const int16_t y = reg.at({base_[v], Layout::kFull});
      auto made = std::find_if(parts->code.begin(), parts->code.end(),
                               [&](const auto& i) { return i.y == y; });
      made->joined = static_cast<int16_t>(parts->call.outputs.size());
      made->first = first;
      made->width = g.inner * static_cast<int64_t>(g.joined.size());
      first += g.inner;
    }
    parts->call.outputs.push_back(join.outputs[0]);
    parts->out_types.push_back(p_.values[join.outputs[0]].dtype);
    join.dead = true;
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
    made.hands =
        made.product->hands_rows() && TakesOver(*chain, parts->loaded, product);
    const auto at =
        std::find(parts->loaded.begin(), parts->loaded.end(), product);
    const bool weights = steady_[host.inputs[made.product->weights()]];
    made.steps =
        FinishOf(*chain, static_cast<int>(at - parts->loaded.begin()),
                 [&](int r) { return weights && steady_[parts->loaded[r]]; });
    if (!made.steps.empty()) made.finished = made.product->Finished(made.steps);
    made.chain = std::move(chain);
    parts->call.kernel = std::make_shared<ProductChain>(std::move(made));
    host.dead = true;
  }

  // Whether output 0 could have the memory of an operand besides the product.
  static bool TakesOver(const FusedKernel& chain,
                        const std::vector<ValueId>& loaded, ValueId product) {
    const uint32_t may = chain.in_place_inputs();
    for (size_t r = 0; r < loaded.size() && r < 32; ++r) {
      if ((may >> r & 1) && loaded[r] != product) return true;
    }
    return false;
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
      if (code[i].output >= 0 && !code[i].column &&
          code[i].bytes == sizeof(float)) {
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
  std::vector<int> uses_;           // of a value or reshapes of it
  std::vector<int> maker_;          // the call that makes a value
  std::vector<ValueId> base_;       // what a reshape looks at, else itself
  std::vector<bool> is_column_;     // made as one element a row of its group
  const std::vector<bool> steady_;  // per value
  std::vector<ColumnPart> part_;    // per value
  std::vector<Role> role_;          // per call that is in a group
  std::vector<bool> reshape_;       // per call
  HashMap<ValueId, int> moved_to_;  // where a fused call makes it
};

}  // namespace

Status FuseElementwise(Program& p) {
  HR_RETURN_IF_ERROR(Fuser(p).Run());
  DropUnused(p);  // reshapes that nobody reads any more
  return OkStatus();
}

}  // namespace headrace
