// CollectiveReduce, CollectiveGather, CollectiveBcastSend and -Recv,
// CollectiveAllToAll, CollectiveReduceScatter, in their versions, and how
// groups are named by numbers.
//
// The first version has its keys in attributes, the second in inputs, the third
// in a communicator. communication_hint and max_subdivs_per_device choose among
// the ways of a network, subdiv_offsets and wait_for order them, and
// is_stateless and ordering tokens say what a graph may run at once: none
// changes a result.
#include "absl/strings/match.h"
#include "op/op.h"
#include "op/processor.h"
#include "ops/collective/collective.h"

namespace headrace {
namespace {

constexpr char kNumbers[] = "T: {bfloat16, float, half, double, int32, int64}";
constexpr char kGathered[] = "T: {float, half, double, int32, int64}";
constexpr char kSent[] = "T: {bool, float, half, double, int32, int64}";

Status CheckGroupSize(int64_t size) {
  if (size > 0) return OkStatus();
  return InvalidArgument("group_size must be positive integer but got ", size);
}

// The size, the group and the instance of a call.
struct Keys {
  int64_t group_size = 0, group_key = 0, instance_key = 0;
};

StatusOr<Keys> KeysOfAttrs(const KernelContext& c) {
  const Keys keys{c.op().int_attr("group_size"), c.op().int_attr("group_key"),
                  c.op().int_attr("instance_key")};
  HR_RETURN_IF_ERROR(CheckGroupSize(keys.group_size));
  return keys;
}

// Of three inputs from `first` on.
StatusOr<Keys> KeysOfInputs(const KernelContext& c, int first) {
  int64_t values[3];
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = c.input(first + i);
    if (t.rank() != 0) {
      return InvalidArgument("Unexpected dimensions on input ",
                             c.op().def().inputs[first + i].name, ", got ",
                             t.shape());
    }
    values[i] = t.scalar<int32_t>();
  }
  const Keys keys{values[0], values[1], values[2]};
  HR_RETURN_IF_ERROR(CheckGroupSize(keys.group_size));
  return keys;
}

template <int first>
StatusOr<Keys> KeysFrom(const KernelContext& c) {
  return KeysOfInputs(c, first);
}

CollectiveCall CallOf(const KernelContext& c, CollectiveKind kind,
                      const Keys& keys) {
  CollectiveCall call;
  call.kind = kind;
  call.member = {keys.group_key, keys.group_size, -1, ThisProcessor(),
                 c.op().float_attr("timeout_seconds")};
  call.instance_key = keys.instance_key;
  call.dtype = c.op().output_types()[0];
  const std::string& hint = c.op().string_attr("communication_hint");
  call.ring = absl::EqualsIgnoreCase(hint, "ring");
  call.nccl = absl::EqualsIgnoreCase(hint, "nccl");
  return call;
}

Status RunCollective(KernelContext& c, const CollectiveCall& call) {
  HR_ASSIGN_OR_RETURN(Tensor result, EngineOf(c.services())->Run(call));
  c.set_output(0, std::move(result));
  return OkStatus();
}

using KeysFn = StatusOr<Keys> (*)(const KernelContext& c);

template <KeysFn keys_of>
Status Reduce(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Keys keys, keys_of(c));
  CollectiveCall call = CallOf(c, CollectiveKind::kReduce, keys);
  call.merge_op = c.op().string_attr("merge_op");
  call.final_op = c.op().string_attr("final_op");
  call.input = c.input(0);
  call.shape = call.input.shape();
  return RunCollective(c, call);
}

template <KeysFn keys_of>
Status Gather(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Keys keys, keys_of(c));
  CollectiveCall call = CallOf(c, CollectiveKind::kGather, keys);
  call.input = c.input(0);
  call.shape = call.input.shape();
  // Messages speak of the result.
  int64_t rows = 0;
  if (__builtin_mul_overflow(call.shape[0], keys.group_size, &rows)) {
    return InvalidArgument("a gather of ", keys.group_size,
                           " tensors of shape ", call.shape, " is too large");
  }
  call.shape.set_dim(0, rows);
  return RunCollective(c, call);
}

Status ReduceScatter(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Keys keys, KeysOfInputs(c, 1));
  CollectiveCall call = CallOf(c, CollectiveKind::kReduceScatter, keys);
  call.merge_op = c.op().string_attr("merge_op");
  call.final_op = c.op().string_attr("final_op");
  call.input = c.input(0);
  call.shape = call.input.shape();
  if (call.shape[0] % keys.group_size != 0) {
    return InvalidArgument(
        "input to reduce-scatter: first dimension size (", call.shape[0],
        ") must be a multiple of the group size (", keys.group_size, ")");
  }
  return RunCollective(c, call);
}

Status AllToAll(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Keys keys, KeysOfInputs(c, 1));
  CollectiveCall call = CallOf(c, CollectiveKind::kAllToAll, keys);
  call.input = c.input(0);
  call.shape = call.input.shape();
  HR_RETURN_IF_ERROR(CheckAllToAll(call));
  return RunCollective(c, call);
}

// What graphs of the first version declare.
StatusOr<Shape> DeclaredShape(const ResolvedOp& op) {
  const Shape& shape = op.attr<Shape>("shape");
  if (shape.fully_known()) return shape;
  return InvalidArgument("shape must be fully known, but is ", shape);
}

template <KeysFn keys_of>
Status Send(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Keys keys, keys_of(c));
  CollectiveCall call = CallOf(c, CollectiveKind::kBroadcast, keys);
  call.input = c.input(0);
  call.shape = call.input.shape();
  if (c.op().attrs().Find("shape") != nullptr &&
      c.op().attr<Shape>("shape") != call.shape) {
    return Internal("Declared shape of op ", c.op().name(),
                    " does not match shape of input");
  }
  return RunCollective(c, call);
}

template <KeysFn keys_of>
Status Receive(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Keys keys, keys_of(c));
  CollectiveCall call = CallOf(c, CollectiveKind::kBroadcast, keys);
  if (c.num_inputs() == 0) {
    HR_ASSIGN_OR_RETURN(call.shape, DeclaredShape(c.op()));
    return RunCollective(c, call);
  }
  std::vector<int64_t> dims;
  const Tensor& t = c.input(3);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    dims.push_back(t.dtype() == DType::kInt32 ? t.data<int32_t>()[i]
                                              : t.data<int64_t>()[i]);
    if (dims.back() < 0) {
      return InvalidArgument("Dimension ", dims.back(), " must be >= 0");
    }
  }
  HR_ASSIGN_OR_RETURN(call.shape, Shape::Make(dims));
  return RunCollective(c, call);
}

// Output 0 is like the input but for the number of rows.
Status OtherRows(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtLeast(c.input(0), 1));
  if (!c.input(0).known_rank()) return OkStatus();
  Shape s = c.input(0);
  s.set_dim(0, Shape::kUnknown);
  c.set_output(0, std::move(s));
  return OkStatus();
}

// What the attribute says in graphs; the kernel goes by its input.
Status DeclaredRows(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtLeast(c.input(0), 1));
  if (!c.in_graph()) return OtherRows(c);
  c.set_output(0, c.op().attr<Shape>("shape"));
  return OkStatus();
}
Status Declared(ShapeContext& c) {
  if (c.in_graph() || c.num_inputs() == 0) {
    c.set_output(0, c.op().attr<Shape>("shape"));
  }
  return OkStatus();
}

// The key of an instance, whose next call here is made in that turn of a loop.
Status TellTurn(KernelContext& c) {
  GroupMember member;
  member.group_key = c.op().int_attr("group_key");
  member.processor = ThisProcessor();
  const int32_t key = c.input(0).scalar<int32_t>();
  EngineOf(c.services())
      ->TellTurn(member, key,
                 {c.op().string_attr("loop"), c.input(1).scalar<int32_t>()});
  c.set_output(0, c.input(0));
  return OkStatus();
}

// What a row of the table has; further attributes follow in upstream's order.
OpBuilder CollectiveOp(const char* name, const char* doc, ShapeFn shape,
                       KernelFactory kernel) {
  OpBuilder b(name);
  b.Output("data: T")
      .Doc(doc)
      .Traits({kMayWait, kMeetsOthers})
      .Stateful()
      .Shape(shape)
      .Cpu(kernel);
  return b;
}
OpBuilder First(OpBuilder b, const char* types) {
  b.Attr(types)
      .Attr("group_size: int")
      .Attr("group_key: int")
      .Attr("instance_key: int");
  return b;
}
OpBuilder Second(OpBuilder b) {
  b.Input("group_size: int32")
      .Input("group_key: int32")
      .Input("instance_key: int32");
  return b;
}
OpBuilder Merging(OpBuilder b) {
  b.Attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}")
      .Attr("final_op: {'Id', 'Div'}");
  return b;
}
OpBuilder Timed(OpBuilder b) {
  b.Attr("communication_hint: string = 'auto'")
      .Attr("timeout_seconds: float = 0");
  return b;
}
OpBuilder Ordered(OpBuilder b) {
  b.Input("ordering_token: Nordering_token * resource")
      .Attr("is_stateless: bool = false")
      .Attr("Nordering_token: int >= 0 = 0");
  return b;
}
OpBuilder& Divided(OpBuilder&& b) {
  return b.Attr("max_subdivs_per_device: int = -1");
}

constexpr char kReduces[] =
    "Merges the tensors of all members, element by element.";
constexpr char kGathers[] = "The rows of all members, one behind the other.";
constexpr char kSends[] = "Gives a tensor to all members.";
constexpr char kReceives[] = "The tensor that another member gives.";

const OpRegistrar reduce = Timed(
    Merging(First(CollectiveOp("CollectiveReduce", kReduces, UnchangedShape,
                               ComputeOwn<Reduce<KeysOfAttrs>>)
                      .Input("input: T"),
                  kNumbers))
        .Attr("subdiv_offsets: list(int)")
        .Attr("wait_for: list(int) = []"));
const OpRegistrar gather =
    Timed(First(CollectiveOp("CollectiveGather", kGathers, DeclaredRows,
                             ComputeOwn<Gather<KeysOfAttrs>>)
                    .Input("input: T"),
                kGathered)
              .Attr("shape: shape"));
const OpRegistrar send =
    Timed(First(CollectiveOp("CollectiveBcastSend", kSends, Declared,
                             ComputeOwn<Send<KeysOfAttrs>>)
                    .Input("input: T"),
                kSent)
              .Attr("shape: shape"));
const OpRegistrar receive =
    Timed(First(CollectiveOp("CollectiveBcastRecv", kReceives, Declared,
                             ComputeOwn<Receive<KeysOfAttrs>>),
                kSent)
              .Attr("shape: shape"));

const OpRegistrar turn = OpBuilder("_CollectiveTurn")
                             .Input("instance_key: int32")
                             .Input("turn: int32")
                             .Output("key: int32")
                             .Attr("group_key: int")
                             .Attr("loop: string")
                             .Doc(
                                 "Says in which turn of a loop the instance's "
                                 "next collective is.")
                             .Stateful()
                             .Shape(ScalarShape)
                             .Cpu(ComputeOwn<TellTurn>);

const OpRegistrar reduce_v2 = Divided(Ordered(Timed(
    Merging(Second(CollectiveOp("CollectiveReduceV2", kReduces, UnchangedShape,
                                ComputeOwn<Reduce<KeysFrom<1>>>)
                       .Input("input: T"))
                .Attr(kNumbers)))));
const OpRegistrar reduce_scatter_v2 = Divided(Ordered(Timed(Merging(
    Second(CollectiveOp("CollectiveReduceScatterV2",
                        "Merges the tensors of all members; each gets some of "
                        "the rows.",
                        OtherRows, ComputeOwn<ReduceScatter>)
               .Input("input: T"))
        .Attr(kNumbers)))));
const OpRegistrar gather_v2 =
    Ordered(Timed(Second(CollectiveOp("CollectiveGatherV2", kGathers, OtherRows,
                                      ComputeOwn<Gather<KeysFrom<1>>>)
                             .Input("input: T"))
                      .Attr(kGathered)));
const OpRegistrar all_to_all_v2 =
    Ordered(Timed(Second(CollectiveOp("CollectiveAllToAllV2",
                                      "Row i of each member, for member i.",
                                      UnchangedShape, ComputeOwn<AllToAll>)
                             .Input("input: T"))
                      .Attr(kNumbers)));
const OpRegistrar send_v2 =
    Timed(Second(CollectiveOp("CollectiveBcastSendV2", kSends, UnchangedShape,
                              ComputeOwn<Send<KeysFrom<1>>>)
                     .Input("input: T"))
              .Attr(kSent));
const OpRegistrar receive_v2 = Timed(
    Second(CollectiveOp("CollectiveBcastRecvV2", kReceives, ShapeFromInput<3>,
                        ComputeOwn<Receive<KeysFrom<0>>>))
        .Input("shape: Tshape")
        .Attr(kSent)
        .Attr("Tshape: {int32, int64} = int32"));

}  // namespace
}  // namespace headrace
