// CollectiveInitializeCommunicator, CollectiveReduceV3, CollectiveAllToAllV3:
// groups whose members say their ranks; CollectiveAssignGroupV2, which says
// what group of several a device is in.
#include <atomic>

#include "absl/strings/str_join.h"
#include "op/op.h"
#include "op/processor.h"
#include "op/resource.h"
#include "ops/collective/collective.h"

namespace headrace {
namespace {

// A member's door to its group. Calls of one kind meet in the order in which
// members make them.
class Communicator : public Resource {
 public:
  explicit Communicator(const GroupMember& member) : member_(member) {}
  std::string DebugString() const override {
    return absl::StrCat("CollectiveGroup ", member_.group_key);
  }
  // A further call.
  CollectiveCall Next(CollectiveKind kind) {
    CollectiveCall call;
    call.kind = kind;
    call.member = member_;
    call.instance_key =
        static_cast<int64_t>(kind) << 40 | next_[static_cast<int>(kind)]++;
    return call;
  }

 private:
  const GroupMember member_;
  std::array<std::atomic<int64_t>, 8> next_{};
};

Status MakeCommunicator(KernelContext& c) {
  const char* names[] = {"group_key", "rank", "group_size"};
  int32_t values[3];
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).rank() != 0) {
      return InvalidArgument("Unexpected dimensions on input ", names[i],
                             ". It should be a scalar, got tensor with shape ",
                             c.input(i).shape());
    }
    values[i] = c.input(i).scalar<int32_t>();
  }
  const auto [key, rank, size] = values;
  if (size <= 0) {
    return InvalidArgument("group_size must be positive integer but got ",
                           size);
  }
  if (rank < 0) {
    return InvalidArgument("rank must be non-negative integer but got ", rank);
  }
  if (rank >= size) {
    return InvalidArgument("rank must be less than group size but got ", rank,
                           " >= ", size);
  }
  const GroupMember member{key, size, rank, ThisProcessor(),
                           c.op().float_attr("timeout_seconds")};
  HR_RETURN_IF_ERROR(EngineOf(c.services())->Join(member));
  ResourceHandle handle;
  handle.device = ProcessorName(member.processor);
  handle.container = "collective_op_group";
  handle.name = absl::StrCat(key, ":r", absl::Dec(rank, absl::kZeroPad4));
  handle.resource = std::make_shared<Communicator>(member);
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

HR_OP(CollectiveInitializeCommunicator)
    .Input("group_key: int32")
    .Input("rank: int32")
    .Input("group_size: int32")
    .Output("communicator: resource")
    .Attr("communication_hint: string = 'auto'")
    .Attr("timeout_seconds: float = 0")
    .Doc("Joins a group, when all of its members do.")
    .Traits({kMayWait, kMeetsOthers})
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeCommunicator>);

StatusOr<CollectiveCall> NextCall(const KernelContext& c, CollectiveKind kind) {
  HR_ASSIGN_OR_RETURN(
      auto communicator,
      ResourceAs<Communicator>(c.input(1), c.services().resources));
  if (c.input(2).num_elements() > 0) {
    return absl::UnimplementedError("Group assignments are not supported yet.");
  }
  CollectiveCall call = communicator->Next(kind);
  if (const float s = c.op().float_attr("timeout_seconds"); s > 0) {
    call.member.timeout_seconds = s;
  }
  call.dtype = c.input(0).dtype();
  call.input = c.input(0);
  call.shape = call.input.shape();
  return call;
}

Status RunNext(KernelContext& c, const CollectiveCall& call) {
  HR_ASSIGN_OR_RETURN(Tensor result, EngineOf(c.services())->Run(call));
  c.set_output(0, std::move(result));
  return OkStatus();
}

Status ReduceNext(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(CollectiveCall call,
                      NextCall(c, CollectiveKind::kReduce));
  call.merge_op = c.op().string_attr("reduction");
  call.final_op = "Id";
  return RunNext(c, call);
}

Status AllToAllNext(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(CollectiveCall call,
                      NextCall(c, CollectiveKind::kAllToAll));
  HR_RETURN_IF_ERROR(CheckAllToAll(call));
  return RunNext(c, call);
}

OpBuilder ThirdVersion(const char* name) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("communicator: resource")
      .Input("group_assignment: int32")
      .Output("data: T")
      .Attr("T: {bfloat16, float, half, double, int32, int64}")
      .Traits({kMayWait, kMeetsOthers})
      .Stateful()
      .Shape(UnchangedShape);
  return b;
}
const OpRegistrar reduce_v3 =
    ThirdVersion("CollectiveReduceV3")
        .Attr("reduction: {'Min', 'Max', 'Mul', 'Add'}")
        .Attr("timeout_seconds: float = 0")
        .Doc("Merges the tensors of all members of a communicator.")
        .Cpu(ComputeOwn<ReduceNext>);
const OpRegistrar all_to_all_v3 =
    ThirdVersion("CollectiveAllToAllV3")
        .Attr("timeout_seconds: float = 0")
        .Doc("Row i of each member of a communicator, for that of rank i.")
        .Cpu(ComputeOwn<AllToAllNext>);

std::string Show(const Tensor& t) {
  // As many as upstream shows.
  constexpr int64_t kShown = 3;
  std::string text = absl::StrCat(
      "Tensor<type: int32 shape: ", t.shape().ToString(), " values: ");
  const int32_t* v = t.data<int32_t>();
  const int64_t n = std::min(t.num_elements(), kShown);
  absl::StrAppend(&text, "[", absl::StrJoin(v, v + n, " "),
                  n < t.num_elements() ? "..." : "", "]>");
  return text;
}

Status AssignGroup(KernelContext& c) {
  const Tensor& groups = c.input(0);
  if (groups.rank() != 2) {
    return InvalidArgument(
        "group_assignment must be a 2-d Tensor, but received tensor of shape: ",
        groups.shape());
  }
  for (int i = 1; i < 3; ++i) {
    if (c.input(i).rank() == 0) continue;
    return InvalidArgument(c.op().def().inputs[i].name,
                           " must be a scalar, but received tensor of shape: ",
                           c.input(i).shape());
  }
  const int32_t device = c.input(1).scalar<int32_t>();
  int64_t found = -1;
  for (int64_t i = 0; i < groups.num_elements(); ++i) {
    const int32_t v = groups.data<int32_t>()[i];
    if (v < 0 || v >= groups.num_elements()) {
      return InvalidArgument("Not all items in group_assignment ", Show(groups),
                             " is within [0, number of devices)");
    }
    if (v == device && found < 0) found = i / groups.dim(1);
  }
  if (found < 0) {
    return InvalidArgument("device_index ", device,
                           " is not found in group_assignment ", Show(groups));
  }
  c.set_output(0, Tensor::Scalar<int32_t>(static_cast<int32_t>(groups.dim(1))));
  // Keys may wrap round.
  c.set_output(1, Tensor::Scalar<int32_t>(static_cast<int32_t>(
                      c.input(2).scalar<int32_t>() + found)));
  return OkStatus();
}

HR_OP(CollectiveAssignGroupV2)
    .Input("group_assignment: int32")
    .Input("device_index: int32")
    .Input("base_key: int32")
    .Output("group_size: int32")
    .Output("group_key: int32")
    .Doc("Which row of a table of groups a device is in.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<AssignGroup>);

}  // namespace
}  // namespace headrace
